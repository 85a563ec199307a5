// Signs tokens with a service-account file, as Google's libraries do.

import CryptoExtras
import Identity
import JSON
import Testing

struct TestServiceAccount {
  let email: String
  let keyID: String
  private let key: _RSA.Signing.PrivateKey

  init(_ file: JSONObject) throws {
    email = try #require(file["client_email"]?.string)
    keyID = try #require(file["private_key_id"]?.string)
    key = try _RSA.Signing.PrivateKey(pemRepresentation: try #require(file["private_key"]?.string))
  }

  /// Signs claims. Claims that are missing get their defaults: issuer, subject and an hour of validity.
  func sign(_ claims: JSONObject, _ now: Int64) throws -> String {
    var all: JSONObject = [
      "iss": .string(email), "sub": .string(email), "iat": .int(now), "exp": .int(now + 3600),
    ]
    for member in claims.members { all[member.key] = member.value }
    let text = JSONWebToken.encode(
      ["alg": .string("RS256"), "kid": .string(keyID), "typ": .string("JWT")], all)
    let signature = try key.signature(for: Array(text.utf8), padding: .insecurePKCS1v1_5)
    return text + "." + Base64.encode(Array(signature.rawRepresentation), .urlSafe, padded: false)
  }
}
