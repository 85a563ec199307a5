// Reads, changes and deletes the user's account.

import FirebaseCore
import Foundation

extension User {
  /// Reads the account from the server again.
  ///
  /// - Throws: `networkError`; or `userDisabled`, `userNotFound`, `userTokenExpired` or `invalidUserToken`,
  ///   which also sign the user out.
  public func reload() async throws {
    try await updates.run { try await self.loadAccount() }
  }

  /// Reads the account from the server again.
  ///
  /// - Parameter completion: receives nil or the error, on the main queue.
  public func reload(completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) { try await self.reload() }
  }

  /// Changes the e-mail address without verifying it. Projects that protect against account enumeration do
  /// not allow this. For them use `sendEmailVerification(beforeUpdatingEmail:)`.
  ///
  /// - Throws: `emailAlreadyInUse`, `invalidEmail`, `operationNotAllowed`, `requiresRecentLogin`.
  @available(*, deprecated, message: "Use sendEmailVerification(beforeUpdatingEmail:) instead.")
  public func updateEmail(to email: String) async throws {
    try await update { $0.email = email }
  }

  /// Changes the e-mail address without verifying it.
  ///
  /// - Parameters:
  ///   - email: the new address.
  ///   - completion: receives nil or the error, on the main queue.
  @available(*, deprecated, message: "Use sendEmailVerification(beforeUpdatingEmail:) instead.")
  public func updateEmail(to email: String, completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) { try await self.update { $0.email = email } }
  }

  /// Changes the password, or sets the first password. Other devices must sign in again.
  ///
  /// - Throws: `weakPassword`, `operationNotAllowed`, `requiresRecentLogin`.
  public func updatePassword(to password: String) async throws {
    guard !password.isEmpty else { throw AuthErrorCode.weakPassword.error("The password is empty.") }
    try await update { $0.password = password }
  }

  /// Changes the password, or sets the first password. Other devices must sign in again.
  ///
  /// - Parameters:
  ///   - password: the new password.
  ///   - completion: receives nil or the error, on the main queue.
  public func updatePassword(to password: String, completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) { try await self.updatePassword(to: password) }
  }

  /// Starts a change of the name or the picture.
  ///
  /// ```swift
  /// let change = user.createProfileChangeRequest()
  /// change.displayName = "Lea"
  /// try await change.commitChanges()
  /// ```
  public func createProfileChangeRequest() -> UserProfileChangeRequest {
    UserProfileChangeRequest(self)
  }

  /// Deletes the account and signs the user out.
  ///
  /// - Throws: `requiresRecentLogin`, `networkError`, `keychainError`.
  public func delete() async throws {
    let auth = try requireAuth()
    try await updates.run {
      try await self.withToken { token, auth in
        _ = try await auth.backend.call(DeleteRequest(idToken: token))
      }
    }
    if auth.currentUser === self { try auth.signOut() }
  }

  /// Deletes the account and signs the user out.
  ///
  /// - Parameter completion: receives nil or the error, on the main queue.
  public func delete(completion: (((any Error)?) -> Void)? = nil) {
    completeVoid(completion) { try await self.delete() }
  }

  // MARK: Internal

  /// Runs a request with the user's token. If the server rejects the token permanently, the user is signed
  /// out.
  func withToken<Value: Sendable>(
    _ operation: (String, Auth) async throws -> Value
  ) async throws -> Value {
    let auth = try requireAuth()
    let token = try await token(forcingRefresh: false)
    do {
      return try await operation(token, auth)
    } catch {
      signOutIfInvalid(error)
      throw error
    }
  }

  /// Reads the account and stores it. The caller must run in `updates`, or have the only reference to the
  /// user.
  func loadAccount() async throws {
    try await withToken { token, auth in
      let response = try await auth.backend.call(LookupRequest(idToken: token))
      guard let account = response.users?.first else { throw AuthInternalError.unexpectedResponse.error() }
      self.change { $0.update(with: account) }
      try auth.saveChanges(of: self)
    }
  }

  /// Changes the account: sends the change, stores the new tokens, and reads the account.
  func update(_ set: @escaping @Sendable (inout UpdateRequest) -> Void) async throws {
    try await updates.run {
      try await self.withToken { token, auth in
        var request = UpdateRequest(idToken: token)
        set(&request)
        let response = try await auth.backend.call(request)
        if let tokens = UserTokens(
          idToken: response.idToken, refreshToken: response.refreshToken, expiresIn: response.expiresIn,
          now: auth.clock.now())
        {
          self.change { $0.tokens = tokens }
          try auth.saveChanges(of: self)
        }
      }
      try await self.loadAccount()
    }
  }
}
