// The contents of a refresh token: the session that the token continues. Each refresh reads the profile and the custom
// claims again, so that the client receives their changes.

package import JSON

/// A session that can be continued by new ID tokens.
package struct RefreshToken: Sendable, Equatable {
  /// The second factor that was used to sign in.
  package struct SecondFactor: Sendable, Equatable {
    /// The enrolment's ID.
    package var identifier: String
    /// `phone` or `totp`.
    package var provider: String

    /// Creates the description of a used factor.
    package init(identifier: String, provider: String) {
      self.identifier = identifier
      self.provider = provider
    }
  }

  package var localID: String
  package var tenantID: String?
  /// The sign-in provider, such as `password`.
  package var provider: String
  /// Claims of the custom token or of a blocking function.
  package var extraClaims = JSONObject()
  package var secondFactor: SecondFactor?
  package var signInAttributes: JSONValue?
  /// Seconds since the Unix epoch at which the user signed in.
  package var signedInAt: Int64
  /// Seconds since the Unix epoch.
  package var issuedAt: Int64

  /// Creates the contents of a token.
  package init(localID: String, tenantID: String?, provider: String, signedInAt: Int64, issuedAt: Int64) {
    self.localID = localID
    self.tenantID = tenantID
    self.provider = provider
    self.signedInAt = signedInAt
    self.issuedAt = issuedAt
  }

  /// The JSON that `TokenSeal` encodes and authenticates as the text of the refresh token.
  package var object: JSONObject {
    var object: JSONObject = [
      "localId": .string(localID), "provider": .string(provider), "iat": .int(issuedAt),
      "auth_time": .int(signedInAt),
    ]
    object.set("tenantId", tenantID)
    if !extraClaims.isEmpty { object["extraClaims"] = .object(extraClaims) }
    if let secondFactor {
      object["secondFactor"] = .object([
        "identifier": .string(secondFactor.identifier), "provider": .string(secondFactor.provider),
      ])
    }
    if let signInAttributes { object["signInAttributes"] = signInAttributes }
    return object
  }

  /// Reads the JSON that ``object`` wrote; nil if a member is missing.
  package init?(_ object: JSONObject) {
    guard let localID = object["localId"]?.string, let provider = object["provider"]?.string,
      let issuedAt = object["iat"]?.int
    else { return nil }
    self.init(
      localID: localID, tenantID: object["tenantId"]?.string, provider: provider,
      signedInAt: object["auth_time"]?.int ?? issuedAt, issuedAt: issuedAt)
    extraClaims = object["extraClaims"]?.object ?? [:]
    if let factor = object["secondFactor"], let identifier = factor["identifier"]?.string,
      let provider = factor["provider"]?.string
    {
      secondFactor = SecondFactor(identifier: identifier, provider: provider)
    }
    signInAttributes = object["signInAttributes"]
  }
}
