// Builds the claims of an ID token. The order matters: a later member replaces an earlier one of the same name, so
// custom claims can replace the name, but never the user or the times.

package import JSON

/// The claims of ID tokens and session cookies.
package enum IDTokenClaims {
  /// Seconds for which an ID token is valid.
  package static let lifetimeSeconds: Int64 = 3600

  /// Claims that custom tokens and custom attributes must not set.
  package static let reserved = [
    "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce", "azp", "acr", "amr", "cnf", "auth_time",
    "firebase", "at_hash", "c_hash",
  ]

  /// Builds the claims of an account's session.
  /// - Parameter now: seconds since the Unix epoch.
  package static func make(
    for account: Account, _ session: RefreshToken, project: String, now: Int64
  ) -> JSONObject {
    var claims = JSONObject()
    claims.set("name", account.displayName)
    claims.set("picture", account.photoURL)
    if let text = account.customAttributes, let custom = (try? JSONValue(json: text))?.object {
      claims.merge(custom)
    }
    claims.merge(session.extraClaims)
    claims.set("email", account.email)
    claims.set("email_verified", account.isEmailVerified)
    claims.set("phone_number", account.phoneNumber)
    if session.provider == "anonymous" { claims["provider_id"] = .string("anonymous") }
    claims["auth_time"] = .int(session.signedInAt)
    claims["user_id"] = .string(account.localID)
    claims["sub"] = .string(account.localID)
    claims["firebase"] = .object(firebase(account, session))
    claims["iat"] = .int(now)
    claims["exp"] = .int(now + lifetimeSeconds)
    claims["iss"] = .string(issuer(of: project))
    claims["aud"] = .string(project)
    return claims
  }

  /// The issuer of a project's ID tokens.
  package static func issuer(of project: String) -> String { "https://securetoken.google.com/\(project)" }

  /// The issuer of a project's session cookies.
  package static func cookieIssuer(of project: String) -> String {
    "https://session.firebase.google.com/\(project)"
  }

  private static func firebase(_ account: Account, _ session: RefreshToken) -> JSONObject {
    var identities = JSONObject()
    if let email = account.email { identities["email"] = .array([.string(email)]) }
    for provider in account.providers ?? [] {
      let existing = identities[provider.id]?.array ?? []
      identities[provider.id] = .array(existing + [.string(provider.rawID)])
    }
    if let number = account.phoneNumber { identities["phone"] = .array([.string(number)]) }
    var firebase: JSONObject = [
      "identities": .object(identities), "sign_in_provider": .string(session.provider),
    ]
    if let factor = session.secondFactor {
      firebase["second_factor_identifier"] = .string(factor.identifier)
      firebase["sign_in_second_factor"] = .string(factor.provider)
    }
    firebase.set("tenant", account.tenantID)
    if let attributes = session.signInAttributes { firebase["sign_in_attributes"] = attributes }
    return firebase
  }

  /// Checks custom claims.
  /// - Throws: `FORBIDDEN_CLAIM` for a reserved name.
  package static func validateCustom(_ claims: JSONObject) throws(IdentityError) {
    for name in reserved where claims[name] != nil { throw .rejected("FORBIDDEN_CLAIM", name) }
  }
}
