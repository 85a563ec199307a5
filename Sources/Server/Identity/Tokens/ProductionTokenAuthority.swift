// The token authority of a production server: signs tokens with the server's keys, and verifies them.

import Access
package import JSON

/// Issues and reads signed tokens.
package struct ProductionTokenAuthority: TokenAuthority {
  /// Seconds for which an access token is valid, as in the hosted product.
  package static let accessTokenSeconds: Int64 = 3600

  package let keys: SigningKeys
  package let accounts: ServiceAccounts
  package let verifier: TokenVerifier
  private let clock: IdentityClock

  /// Creates the authority.
  package init(
    keys: SigningKeys, accounts: ServiceAccounts, verifier: TokenVerifier,
    clock: IdentityClock = IdentityClock()
  ) {
    self.keys = keys
    self.accounts = accounts
    self.verifier = verifier
    self.clock = clock
  }

  package func encode(_ claims: JSONObject) async throws -> String {
    try await keys.rotateIfDue()
    return try keys.current.encode(claims)
  }

  package func readIDToken(_ text: String, project: String) async throws -> IDToken {
    let token: VerifiedToken
    do throws(InvalidCredential) { token = try verifier.verify(text) } catch {
      throw IdentityError.rejected(
        error.kind == .expired || error.kind == .revoked ? "TOKEN_EXPIRED" : "INVALID_ID_TOKEN")
    }
    guard case .user = token.principal.identity, token.principal.project == project,
      let contents = IDToken(token.claims)
    else { throw IdentityError.rejected("INVALID_ID_TOKEN") }
    return contents
  }

  package func readCustomToken(_ text: String, project: String) async throws -> JSONObject {
    // The error does not depend on the reason, so that it does not help to forge a token.
    let invalid = IdentityError.rejected("INVALID_CUSTOM_TOKEN", "The custom token is invalid.")
    guard let token = JSONWebToken(text) else { throw invalid }
    let (signer, claims) = try verifiedAssertion(token) { _ in invalid }
    guard claims["aud"]?.string == EmulatorTokenAuthority.customTokenAudience,
      signer.account.project == project, signer.account.role == .administrator
    else { throw invalid }
    return claims
  }

  /// Exchanges an assertion of a service account for an access token (RFC 7523).
  /// - Returns: the token and the seconds of its validity.
  package func accessToken(
    assertion: String
  ) async throws -> (token: String, seconds: Int64) {
    func invalid(_ detail: String) -> IdentityError { .rejected("invalid_grant", detail) }
    guard let token = JSONWebToken(assertion) else { throw invalid("the assertion is not a JSON Web Token") }
    let (signer, claims) = try verifiedAssertion(token) { invalid($0) }
    let audiences = [signer.account.tokenURI, "https://oauth2.googleapis.com/token"]
    guard let audience = claims["aud"]?.string, audiences.contains(audience) else {
      throw invalid("the audience is not the token endpoint")
    }
    guard let scope = claims["scope"]?.string, TokenVerifier.hasScope(scope) else {
      throw invalid("the assertion has no scope of this server")
    }
    let now = clock.milliseconds / 1000
    try await keys.rotateIfDue()
    let access = try keys.current.encode(
      [
        "iss": .string(TokenVerifier.accessTokenIssuer), "sub": .string(signer.account.email),
        "key": .string(signer.key.id), "iat": .int(now), "exp": .int(now + Self.accessTokenSeconds),
        "scope": .string(scope),
      ], type: TokenVerifier.accessTokenType)
    return (access, Self.accessTokenSeconds)
  }

  /// Verifies a token that a service account signed: signature, issuer and times.
  private func verifiedAssertion(
    _ token: JSONWebToken, _ invalid: (String) -> IdentityError
  ) throws -> (ServiceAccounts.Signer, JSONObject) {
    do throws(InvalidCredential) {
      let keyID = try TokenVerifier.verifiedKeyID(token.header)
      guard let signer = accounts.signer(keyID),
        signer.key.publicKey.verifies(token.signature, of: token.signedBytes)
      else { throw InvalidCredential(.untrusted, reason: "The key or the signature is invalid.") }
      let email = signer.account.email
      guard token.claims["iss"]?.string == email, token.claims["sub"]?.string ?? email == email else {
        throw InvalidCredential(.untrusted, reason: "The issuer is not the key's service account.")
      }
      _ = try TokenVerifier.verifiedTimes(
        token.claims, at: clock.milliseconds / 1000,
        maximumSeconds: TokenVerifier.maximumSelfSignedSeconds)
      return (signer, token.claims)
    } catch {
      throw invalid(error.reason)
    }
  }

  package var publishedKeys: [SigningKey] { keys.published }

  package func authenticateAdministrator(bearer token: String, project: String?) async throws {
    let principal: Principal
    do throws(InvalidCredential) { principal = try verifier.principal(of: token[...]) } catch {
      throw IdentityError.invalidCredentials
    }
    guard principal.isAdministrator, project == nil || principal.project == project else {
      throw IdentityError(
        403, "PERMISSION_DENIED", "The caller does not have permission.", reason: "forbidden")
    }
  }
}
