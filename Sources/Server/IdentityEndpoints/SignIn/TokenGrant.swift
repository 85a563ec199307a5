// A token grant holds the contents of the tokens that an operation returns to its client. The transaction decides the
// contents. The tokens are encoded after its commit, because a signature takes about a millisecond and would delay the
// commits of all databases.

package import Identity
package import JSON

/// The contents of an ID token and a refresh token.
package struct TokenGrant: Sendable {
  package var claims: JSONObject
  package var refresh: RefreshToken
  /// Whether the response contains `expiresIn`.
  package var includesExpiry = true
}

extension IdentityCall {
  /// Decides the contents of the tokens of an account's session, and records the time in the account.
  package func grant(
    _ session: RefreshToken, _ account: inout Account, in transaction: IdentityTransaction
  ) throws -> TokenGrant {
    guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    account.lastRefreshAt = now
    try transaction.put(account)
    let claims = IDTokenClaims.make(for: account, session, project: projectID, now: nowSeconds)
    return TokenGrant(claims: claims, refresh: session)
  }

  /// A session that begins now.
  package func newSession(_ account: Account, provider: String) -> RefreshToken {
    RefreshToken(
      localID: account.localID, tenantID: tenantID, provider: provider, signedInAt: nowSeconds,
      issuedAt: nowSeconds)
  }

  /// The session of an ID token, continued by new tokens.
  package func continuedSession(_ token: IDToken, provider: String? = nil) -> RefreshToken {
    var session = RefreshToken(
      localID: token.localID, tenantID: tenantID, provider: provider ?? token.provider,
      signedInAt: token.signedInAt, issuedAt: nowSeconds)
    session.secondFactor = token.secondFactor
    session.signInAttributes = token.signInAttributes
    return session
  }

  /// Encodes tokens into a response.
  package func add(_ grant: TokenGrant?, to response: inout JSONObject) async throws {
    guard let grant else { return }
    response["idToken"] = .string(try await services.tokens.encode(grant.claims))
    response["refreshToken"] = .string(seal.seal(grant.refresh.object, as: .refresh))
    if grant.includesExpiry { response["expiresIn"] = .string(String(IDTokenClaims.lifetimeSeconds)) }
  }
}
