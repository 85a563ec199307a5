// Provides the user's ID token: gets it, refreshes it, and parses its claims.

import FirebaseCore
import Foundation

extension User {
  /// Gets the user's ID token. If five minutes or less of its validity remain, it is refreshed first.
  ///
  /// - Parameter forceRefresh: whether to always request a new token, for instance to get new custom claims.
  /// - Returns: the token, a JSON Web Token.
  /// - Throws: `networkError`; `keychainError`; or `userDisabled`, `userNotFound`, `userTokenExpired` or
  ///   `invalidUserToken`, which also sign the user out.
  public func getIDToken(forcingRefresh forceRefresh: Bool = false) async throws -> String {
    try await token(forcingRefresh: forceRefresh)
  }

  /// Gets the user's ID token; the same as `getIDToken(forcingRefresh:)`.
  public func idTokenForcingRefresh(_ forceRefresh: Bool) async throws -> String {
    try await token(forcingRefresh: forceRefresh)
  }

  /// Gets the user's ID token, and refreshes it first if necessary.
  public func getIDToken(completion: ((String?, (any Error)?) -> Void)?) {
    getIDTokenForcingRefresh(false, completion: completion)
  }

  /// Gets the user's ID token.
  ///
  /// - Parameters:
  ///   - forceRefresh: whether to always request a new token.
  ///   - completion: receives the token or the error, on the main queue.
  public func getIDTokenForcingRefresh(_ forceRefresh: Bool, completion: ((String?, (any Error)?) -> Void)?) {
    complete(completion) { try await self.token(forcingRefresh: forceRefresh) }
  }

  /// Gets the user's ID token with its claims. If five minutes or less of its validity remain, it is
  /// refreshed first.
  ///
  /// - Parameter forceRefresh: whether to always request a new token.
  /// - Throws: the errors of `getIDToken(forcingRefresh:)`, or `malformedJWT`.
  public func getIDTokenResult(forcingRefresh forceRefresh: Bool = false) async throws -> AuthTokenResult {
    try AuthTokenResult(parsing: try await token(forcingRefresh: forceRefresh))
  }

  /// Gets the user's ID token with its claims, and refreshes it first if necessary.
  public func getIDTokenResult(completion: ((AuthTokenResult?, (any Error)?) -> Void)?) {
    getIDTokenResult(forcingRefresh: false, completion: completion)
  }

  /// Gets the user's ID token with its claims.
  ///
  /// - Parameters:
  ///   - forcingRefresh: whether to always request a new token.
  ///   - completion: receives the token or the error, on the main queue.
  public func getIDTokenResult(
    forcingRefresh: Bool, completion: ((AuthTokenResult?, (any Error)?) -> Void)?
  ) {
    complete(completion) {
      try AuthTokenResult(parsing: try await self.token(forcingRefresh: forcingRefresh))
    }
  }

  // MARK: Internal

  /// The `Auth` through which the user sends requests.
  func requireAuth() throws -> Auth {
    guard let auth else { throw AuthErrorCode.nullUser.error("The user is not signed in to an app.") }
    return auth
  }

  /// Returns a token that stays valid for some minutes.
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
      // Reads the clock only now, because the response may have been delayed, for instance while the device
      // slept.
      if let token = try? IDToken(new.idToken), let expiration = token.expiration,
        expiration.timeIntervalSince(auth.clock.now()) <= UserTokens.minimumValidity
      {
        new = try await requestTokens(refreshToken: new.refreshToken, auth)
      }
      return try storeTokens(new, replacing: old, auth)
    } catch {
      signOutIfInvalid(error)
      throw error
    }
  }

  /// Stores refreshed tokens, unless newer tokens were stored during the refresh. Returns the current ID token.
  private func storeTokens(_ new: UserTokens, replacing old: UserTokens, _ auth: Auth) throws -> String {
    let current = change { record in
      // A sign-in or a change of the password may have stored newer tokens during the request.
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

  /// Signs the user out if the error means that the server will never accept the tokens again.
  func signOutIfInvalid(_ error: any Error) {
    switch AuthErrorCode(of: error) {
    case .userNotFound, .userDisabled, .invalidUserToken, .userTokenExpired: auth?.signOut(user: self)
    default: break
    }
  }
}
