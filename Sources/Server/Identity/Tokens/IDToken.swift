// The members of an ID token that operations use. Also looks up the account of a token and checks it.

package import JSON

/// The contents of an ID token. An emulator reads them without verification; a production server verifies them first.
package struct IDToken: Sendable {
  package var localID: String
  package var tenantID: String?
  /// The sign-in provider, such as `password`.
  package var provider: String
  /// Seconds since the Unix epoch.
  package var issuedAt: Int64
  /// Seconds since the Unix epoch at which the user signed in.
  package var signedInAt: Int64
  package var secondFactor: RefreshToken.SecondFactor?
  package var signInAttributes: JSONValue?
  package var claims: JSONObject

  /// Reads the claims of a token; nil if a required one is missing.
  package init?(_ claims: JSONObject) {
    guard let id = claims["user_id"]?.string ?? claims["sub"]?.string, let issuedAt = claims["iat"]?.int,
      let firebase = claims["firebase"]?.object
    else { return nil }
    localID = id
    tenantID = firebase["tenant"]?.string
    provider = firebase["sign_in_provider"]?.string ?? ""
    self.issuedAt = issuedAt
    signedInAt = claims["auth_time"]?.int ?? issuedAt
    if let identifier = firebase["second_factor_identifier"]?.string,
      let factor = firebase["sign_in_second_factor"]?.string
    {
      secondFactor = RefreshToken.SecondFactor(identifier: identifier, provider: factor)
    }
    signInAttributes = firebase["sign_in_attributes"]
    self.claims = claims
  }
}

extension IdentityReader {
  /// The account of an ID token.
  /// - Throws: `TENANT_ID_MISMATCH`, `USER_NOT_FOUND`, `TOKEN_EXPIRED` for a revoked token, or `USER_DISABLED`.
  package func account(of token: IDToken, in tenant: String?) throws -> Account {
    guard token.tenantID == tenant else { throw IdentityError.rejected("TENANT_ID_MISMATCH") }
    guard let account = try account(token.localID, in: tenant) else {
      throw IdentityError.rejected("USER_NOT_FOUND")
    }
    if let validSince = account.validSince, token.issuedAt < validSince {
      throw IdentityError.rejected("TOKEN_EXPIRED")
    }
    guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    return account
  }
}
