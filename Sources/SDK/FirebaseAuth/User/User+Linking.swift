// Links credentials to the user's account, removes them, and reauthenticates the user.

import FirebaseCore
import Foundation

extension User {
  /// Adds a credential to the account, so that the user can also sign in with it. An anonymous user keeps its
  /// ID.
  ///
  /// - Returns: this user, with the provider's data.
  /// - Throws: `providerAlreadyLinked`, `emailAlreadyInUse`, `requiresRecentLogin`, `operationNotAllowed`,
  ///   and the errors of a sign-in. Also `credentialAlreadyInUse`; its `userInfo` contains a credential for a
  ///   sign-in instead.
  @discardableResult
  public func link(with credential: AuthCredential) async throws -> AuthDataResult {
    try await updates.run {
      let isLinked = self.record.providers.contains { $0.providerID == credential.provider }
      // An account with an e-mail link has the provider "password", and may also set a password.
      if credential.provider == EmailAuthProvider.id ? self.record.hasPassword : isLinked {
        throw AuthErrorCode.providerAlreadyLinked.error()
      }
      let auth = try self.requireAuth()
      let response = try await self.withToken { token, auth in
        try await credential.exchange(.link(idToken: token), auth.backend)
      }
      guard let tokens = UserTokens(response, now: auth.clock.now()) else {
        throw AuthInternalError.unexpectedResponse.error()
      }
      self.change {
        $0.tokens = tokens
        $0.isAnonymous = false
      }
      try await self.loadAccount()
      try auth.saveChanges(of: self)
      return AuthDataResult(
        user: self, additionalUserInfo: AdditionalUserInfo(response, of: credential),
        credential: OAuthCredential(response))
    }
  }

  /// Adds a credential to the account, so that the user can also sign in with it.
  ///
  /// - Parameters:
  ///   - credential: the credential.
  ///   - completion: receives the result or the error, on the main queue.
  public func link(
    with credential: AuthCredential, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.link(with: credential) }
  }

  /// Removes a provider's credential from the account.
  ///
  /// - Parameter provider: the provider's ID, such as `google.com` or `password`.
  /// - Returns: this user.
  /// - Throws: `noSuchProvider`, `requiresRecentLogin`.
  public func unlink(fromProvider provider: String) async throws -> User {
    guard record.providers.contains(where: { $0.providerID == provider }) else {
      throw AuthErrorCode.noSuchProvider.error()
    }
    try await update { $0.deleteProvider = [provider] }
    return self
  }

  /// Removes a provider's credential from the account.
  ///
  /// - Parameters:
  ///   - provider: the provider's ID, such as `google.com` or `password`.
  ///   - completion: receives this user or the error, on the main queue.
  public func unlink(fromProvider provider: String, completion: ((User?, (any Error)?) -> Void)? = nil) {
    complete(completion) { try await self.unlink(fromProvider: provider) }
  }

  /// Signs in again. Operations that fail with `requiresRecentLogin` succeed after that.
  ///
  /// - Parameter credential: a credential of this user.
  /// - Returns: this user, with the provider's data.
  /// - Throws: `userMismatch` for a credential of another user, and the errors of a sign-in.
  @discardableResult
  public func reauthenticate(with credential: AuthCredential) async throws -> AuthDataResult {
    try await updates.run {
      let auth = try self.requireAuth()
      let result: AuthDataResult
      do {
        result = try await auth.authenticate(with: credential, .reauthenticate)
      } catch {
        // A credential of an unknown user is not a credential of this user.
        throw AuthErrorCode(of: error) == .userNotFound ? AuthErrorCode.userMismatch.error() : error
      }
      guard result.user.uid == self.uid else { throw AuthErrorCode.userMismatch.error() }
      let fresh = result.user.record
      self.change { record in
        let isAnonymous = record.isAnonymous
        record = fresh
        record.isAnonymous = isAnonymous && fresh.providers.isEmpty
      }
      try auth.saveChanges(of: self)
      return AuthDataResult(
        user: self, additionalUserInfo: result.additionalUserInfo, credential: result.credential)
    }
  }

  /// Signs in again. Operations that fail with `requiresRecentLogin` succeed after that.
  ///
  /// - Parameters:
  ///   - credential: a credential of this user.
  ///   - completion: receives the result or the error, on the main queue.
  public func reauthenticate(
    with credential: AuthCredential, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.reauthenticate(with: credential) }
  }
}
