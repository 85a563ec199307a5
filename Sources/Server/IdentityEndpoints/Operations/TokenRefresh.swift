// Refreshes tokens: exchanges a refresh token for a new ID token with the current profile and custom claims.

import Identity
import JSON

extension IdentityCall {
  /// The `token` method of the secure token service.
  func refreshToken() async throws -> JSONObject {
    guard let grantType = body.text("grantType") else { throw IdentityError.rejected("MISSING_GRANT_TYPE") }
    guard grantType == "refresh_token" else { throw IdentityError.rejected("INVALID_GRANT_TYPE") }
    guard let text = body.text("refreshToken") else { throw IdentityError.rejected("MISSING_REFRESH_TOKEN") }
    guard let object = seal.open(text, as: .refresh), let session = RefreshToken(object) else {
      throw IdentityError.rejected("INVALID_REFRESH_TOKEN")
    }
    let grant = try await write { transaction in
      // The request may name a tenant; a session of the project or of another tenant is not valid there.
      guard session.tenantID == self.tenantID,
        var account = try transaction.reader.account(session.localID, in: self.tenantID)
      else {
        throw IdentityError.rejected("INVALID_REFRESH_TOKEN")
      }
      guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
      if !self.isEmulator, let validSince = account.validSince, session.issuedAt < validSince {
        throw IdentityError.rejected("TOKEN_EXPIRED")
      }
      return try self.grant(session, &account, in: transaction)
    }
    let idToken = try await services.tokens.encode(grant.claims)
    return [
      "id_token": .string(idToken), "access_token": .string(idToken),
      "expires_in": .string(String(IDTokenClaims.lifetimeSeconds)),
      // The refresh token does not change: it is valid until the account's sessions are revoked.
      "refresh_token": .string(text), "token_type": .string("Bearer"),
      "user_id": .string(session.localID), "project_id": .string(ProjectNumber.of(projectID)),
    ]
  }

  /// `projects:createSessionCookie`.
  func createSessionCookie() async throws -> JSONObject {
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    var duration: Int64 = 0
    if let text = body.text("validDuration") {
      guard let seconds = Int64(text) else { throw IdentityError.rejected("INVALID_DURATION") }
      duration = seconds
    }
    if duration == 0 { duration = Self.maximumCookieSeconds }
    guard (Self.minimumCookieSeconds...Self.maximumCookieSeconds).contains(duration) else {
      throw IdentityError.rejected("INVALID_DURATION")
    }
    var claims = try await read { try self.account($0).token.claims }
    claims["iat"] = .int(nowSeconds)
    claims["exp"] = .int(nowSeconds + duration)
    claims["iss"] = .string(IDTokenClaims.cookieIssuer(of: projectID))
    return ["sessionCookie": .string(try await services.tokens.encode(claims))]
  }

  private static let minimumCookieSeconds: Int64 = 300
  private static let maximumCookieSeconds: Int64 = 14 * 86_400
}
