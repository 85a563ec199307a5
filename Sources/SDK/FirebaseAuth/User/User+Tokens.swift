// The user's ID token: getting, refreshing, reading.

import FirebaseCore
import Foundation

extension User {
  /// Gets the user's ID token, refreshing it if five minutes or less of its validity remain.
  ///
  /// - Parameter forceRefresh: whether to request a new token in any case, for instance to see new custom claims.
  /// - Returns: the token, a JSON Web Token.
  /// - Throws: `userDisabled`, `userNotFound`, `userTokenExpired` or `invalidUserToken`, after which the user is signed
  ///   out; `networkError`; `keychainError`.
  public func getIDToken(forcingRefresh forceRefresh: Bool = false) async throws -> String {
    try await token(forcingRefresh: forceRefresh)
  }

  /// Gets the user's ID token; the same as `getIDToken(forcingRefresh:)`.
  public func idTokenForcingRefresh(_ forceRefresh: Bool) async throws -> String {
    try await token(forcingRefresh: forceRefresh)
  }

  /// Gets the user's ID token, refreshing it if necessary.
  public func getIDToken(completion: ((String?, (any Error)?) -> Void)?) {
    getIDTokenForcingRefresh(false, completion: completion)
  }

  /// Gets the user's ID token.
  ///
  /// - Parameters:
  ///   - forceRefresh: whether to request a new token in any case.
  ///   - completion: receives the token or the error, on the main queue.
  public func getIDTokenForcingRefresh(_ forceRefresh: Bool, completion: ((String?, (any Error)?) -> Void)?) {
    complete(completion) { try await self.token(forcingRefresh: forceRefresh) }
  }

  /// Gets the user's ID token with its claims, refreshing it if five minutes or less of its validity remain.
  ///
  /// - Parameter forceRefresh: whether to request a new token in any case.
  /// - Throws: the errors of `getIDToken(forcingRefresh:)`, or `malformedJWT`.
  public func getIDTokenResult(forcingRefresh forceRefresh: Bool = false) async throws -> AuthTokenResult {
    try AuthTokenResult(parsing: try await token(forcingRefresh: forceRefresh))
  }

  /// Gets the user's ID token with its claims, refreshing it if necessary.
  public func getIDTokenResult(completion: ((AuthTokenResult?, (any Error)?) -> Void)?) {
    getIDTokenResult(forcingRefresh: false, completion: completion)
  }

  /// Gets the user's ID token with its claims.
  ///
  /// - Parameters:
  ///   - forcingRefresh: whether to request a new token in any case.
  ///   - completion: receives the token or the error, on the main queue.
  public func getIDTokenResult(
    forcingRefresh: Bool, completion: ((AuthTokenResult?, (any Error)?) -> Void)?
  ) {
    complete(completion) {
      try AuthTokenResult(parsing: try await self.token(forcingRefresh: forcingRefresh))
    }
  }

  // MARK: Internal

  /// The `Auth` to send requests through.
  func requireAuth() throws -> Auth {
    guard let auth else { throw AuthErrorCode.nullUser.error("The user is not signed in to an app.") }
    return auth
  }

  /// Returns a token that is valid for some minutes.
  func token(forcingRefresh: Bool) async throws -> String {
    let auth = try requireAuth()
    let tokens = record.tokens
    if !forcingRefresh, tokens.isValid(at: auth.clock.now()) { return tokens.idToken }
    return try await tokenRefresher.run(isForced: forcingRefresh)
  }

  /// Requests new tokens and stores them.
  func refreshTokens() async throws -> String {
    let auth = try requireAuth()
    let old = record.tokens
    do {
      var new = try await requestTokens(refreshToken: old.refreshToken, auth)
      // The response may have waited long, for instance while the device slept.
      if let token = try? IDToken(new.idToken), let expiration = token.expiration,
        expiration.timeIntervalSince(auth.clock.now()) <= UserTokens.minimumValidity
      {
        new = try await requestTokens(refreshToken: new.refreshToken, auth)
      }
      return try install(new, replacing: old, auth)
    } catch {
      signOutIfInvalid(error)
      throw error
    }
  }

  private func install(_ new: UserTokens, replacing old: UserTokens, _ auth: Auth) throws -> String {
    let current = change { record in
      // Tokens of a sign-in or a change of password that happened meanwhile are newer.
      if record.tokens.refreshToken == old.refreshToken { record.tokens = new }
      return record.tokens
    }
    try auth.saveChanges(of: self)
    return current.idToken
  }

  private func requestTokens(refreshToken: String, _ auth: Auth) async throws -> UserTokens {
    let response = try await auth.backend.call(RefreshRequest(refreshToken: refreshToken))
    guard
      let tokens = UserTokens(
        idToken: response.idToken, refreshToken: response.refreshToken ?? refreshToken,
        expiresIn: response.expiresIn, now: auth.clock.now())
    else { throw AuthInternalError.unexpectedResponse.error() }
    return tokens
  }

  /// Signs the user out after an error that means that the tokens will never be accepted again.
  func signOutIfInvalid(_ error: any Error) {
    switch AuthErrorCode(of: error) {
    case .userNotFound, .userDisabled, .invalidUserToken, .userTokenExpired: auth?.signOut(user: self)
    default: break
    }
  }
}
