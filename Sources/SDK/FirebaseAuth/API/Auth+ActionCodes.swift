// Sends password resets, and applies the action codes from links in e-mails.

import Foundation

extension Auth {
  /// Sends an e-mail with a link that resets the password.
  ///
  /// - Parameters:
  ///   - email: the address of the account.
  ///   - actionCodeSettings: the continue URL and the apps that open the link; nil for the server's default
  ///     page.
  /// - Throws: `missingEmail`, `invalidEmail`, `userNotFound` unless the project protects against account enumeration,
  ///   `invalidContinueURI`, `unauthorizedDomain`, `tooManyRequests`, `networkError`.
  public func sendPasswordReset(
    withEmail email: String, actionCodeSettings: ActionCodeSettings? = nil
  ) async throws {
    var request = SendCodeRequest(.passwordReset, settings: actionCodeSettings)
    request.email = email
    _ = try await backend.call(request)
  }

  /// Sends an e-mail with a link that resets the password.
  ///
  /// - Parameters:
  ///   - email: the address of the account.
  ///   - completion: receives nil or the error, on the main queue.
  public func sendPasswordReset(withEmail email: String, completion: (((any Error)?) -> Void)? = nil) {
    sendPasswordReset(withEmail: email, actionCodeSettings: nil, completion: completion)
  }

  /// Sends an e-mail with a link that resets the password.
  ///
  /// - Parameters:
  ///   - email: the address of the account.
  ///   - actionCodeSettings: the continue URL and the apps that open the link; nil for the server's default
  ///     page.
  ///   - completion: receives nil or the error, on the main queue.
  public func sendPasswordReset(
    withEmail email: String, actionCodeSettings: ActionCodeSettings?,
    completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) {
      try await self.sendPasswordReset(withEmail: email, actionCodeSettings: actionCodeSettings)
    }
  }

  /// Sets a new password with the code of a password reset.
  ///
  /// - Throws: `invalidActionCode`, `expiredActionCode`, `weakPassword`, `operationNotAllowed`, `userDisabled`.
  public func confirmPasswordReset(withCode code: String, newPassword: String) async throws {
    _ = try await backend.call(ResetPasswordRequest(oobCode: code, newPassword: newPassword))
  }

  /// Sets a new password with the code of a password reset.
  ///
  /// - Parameters:
  ///   - code: the code of the link.
  ///   - newPassword: the password.
  ///   - completion: receives nil or the error, on the main queue.
  public func confirmPasswordReset(
    withCode code: String, newPassword: String, completion: @escaping ((any Error)?) -> Void
  ) {
    completeVoid(completion) { try await self.confirmPasswordReset(withCode: code, newPassword: newPassword) }
  }

  /// Gets the operation of an action code, without applying the code.
  ///
  /// - Throws: `invalidActionCode`, `expiredActionCode`, `networkError`.
  public func checkActionCode(_ code: String) async throws -> ActionCodeInfo {
    let response = try await backend.call(ResetPasswordRequest(oobCode: code))
    return ActionCodeInfo(
      operation: ActionCodeOperation(requestType: response.requestType ?? ""),
      email: response.email ?? "", newEmail: response.newEmail)
  }

  /// Gets the operation of an action code, without applying the code.
  ///
  /// - Parameters:
  ///   - code: the code of the link.
  ///   - completion: receives the operation or the error, on the main queue.
  public func checkActionCode(_ code: String, completion: @escaping (ActionCodeInfo?, (any Error)?) -> Void) {
    complete(completion) { try await self.checkActionCode(code) }
  }

  /// Verifies the action code of a password reset, without applying it.
  ///
  /// - Returns: the e-mail address of the account.
  /// - Throws: `invalidActionCode`, `expiredActionCode`, `networkError`.
  public func verifyPasswordResetCode(_ code: String) async throws -> String {
    try await checkActionCode(code).email
  }

  /// Verifies the action code of a password reset, without applying it.
  ///
  /// - Parameters:
  ///   - code: the code of the link.
  ///   - completion: receives the e-mail address of the account or the error, on the main queue.
  public func verifyPasswordResetCode(_ code: String, completion: @escaping (String?, (any Error)?) -> Void) {
    complete(completion) { try await self.verifyPasswordResetCode(code) }
  }

  /// Applies the code of an e-mail: verifies an address, changes it, or restores the previous one.
  ///
  /// The `User` object shows the change after `reload()`.
  ///
  /// - Throws: `invalidActionCode`, `expiredActionCode`, `userDisabled`, `networkError`.
  public func applyActionCode(_ code: String) async throws {
    _ = try await backend.call(UpdateRequest(oobCode: code))
  }

  /// Applies the code of an e-mail: verifies an address, changes it, or restores the previous one.
  ///
  /// - Parameters:
  ///   - code: the code of the link.
  ///   - completion: receives nil or the error, on the main queue.
  public func applyActionCode(_ code: String, completion: @escaping ((any Error)?) -> Void) {
    completeVoid(completion) { try await self.applyActionCode(code) }
  }

  /// Revokes the token of Sign in with Apple, for instance before the account is deleted.
  ///
  /// - Parameter authorizationCode: the authorization code that Apple issued.
  /// - Throws: `nullUser` if no user is signed in, and the errors of the request.
  public func revokeToken(withAuthorizationCode authorizationCode: String) async throws {
    guard let user = currentUser else { throw AuthErrorCode.nullUser.error() }
    try await user.withToken { token, auth in
      _ = try await auth.backend.call(
        RevokeTokenRequest(
          providerId: AuthProviderID.apple.rawValue, token: authorizationCode, idToken: token))
    }
  }

  /// Revokes the token of Sign in with Apple, for instance before the account is deleted.
  ///
  /// - Parameters:
  ///   - authorizationCode: the authorization code that Apple issued.
  ///   - completion: receives nil or the error, on the main queue.
  public func revokeToken(
    withAuthorizationCode authorizationCode: String, completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) { try await self.revokeToken(withAuthorizationCode: authorizationCode) }
  }
}
