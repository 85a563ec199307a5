// Sends e-mails to the user, to verify the current or a new address.

import Foundation

extension User {
  /// Sends an e-mail with a link that verifies the user's address.
  ///
  /// - Parameter actionCodeSettings: the continue URL and the apps that open the link; nil for the server's
  ///   default page.
  /// - Throws: `missingEmail`, `userNotFound`, `invalidContinueURI`, `unauthorizedDomain`, `tooManyRequests`.
  public func sendEmailVerification(with actionCodeSettings: ActionCodeSettings? = nil) async throws {
    try await withToken { token, auth in
      var request = SendCodeRequest(.verifyEmail, settings: actionCodeSettings)
      request.idToken = token
      _ = try await auth.backend.call(request)
    }
  }

  /// Sends an e-mail with a link that verifies the user's address.
  ///
  /// - Parameters:
  ///   - actionCodeSettings: the continue URL and the apps that open the link; nil for the server's default
  ///     page.
  ///   - completion: receives nil or the error, on the main queue.
  public func sendEmailVerification(
    with actionCodeSettings: ActionCodeSettings? = nil, completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) { try await self.sendEmailVerification(with: actionCodeSettings) }
  }

  /// Sends an e-mail with a link to a new address. The link sets the address as the user's verified address.
  ///
  /// - Parameters:
  ///   - newEmail: the new address.
  ///   - actionCodeSettings: the continue URL and the apps that open the link; nil for the server's default
  ///     page.
  /// - Throws: `emailAlreadyInUse`, `invalidEmail`, `requiresRecentLogin`, `tooManyRequests`.
  public func sendEmailVerification(
    beforeUpdatingEmail newEmail: String, actionCodeSettings: ActionCodeSettings? = nil
  ) async throws {
    try await withToken { token, auth in
      var request = SendCodeRequest(.verifyAndChangeEmail, settings: actionCodeSettings)
      request.idToken = token
      request.newEmail = newEmail
      _ = try await auth.backend.call(request)
    }
  }

  /// Sends an e-mail with a link to a new address. The link sets the address as the user's verified address.
  ///
  /// - Parameters:
  ///   - email: the new address.
  ///   - actionCodeSettings: the continue URL and the apps that open the link; nil for the server's default
  ///     page.
  ///   - completion: receives nil or the error, on the main queue.
  public func sendEmailVerification(
    beforeUpdatingEmail email: String, actionCodeSettings: ActionCodeSettings? = nil,
    completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) {
      try await self.sendEmailVerification(beforeUpdatingEmail: email, actionCodeSettings: actionCodeSettings)
    }
  }
}
