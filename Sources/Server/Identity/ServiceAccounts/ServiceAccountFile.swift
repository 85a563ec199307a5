// Reads the JSON file of a service account, and signs tokens that authenticate its holder to this server.

import CryptoExtras
import JSON

/// The JSON file of a service account.
package struct ServiceAccountFile: Sendable {
  /// The file does not describe a service account.
  package struct Malformed: Error, Sendable {}

  /// Seconds for which a signed token is valid.
  static let tokenSeconds: Int64 = 600

  /// The project in which the account has rights.
  package let project: String
  private let email: String
  private let keyID: String
  private let key: _RSA.Signing.PrivateKey

  /// Reads a file.
  /// - Throws: ``Malformed`` for a file without a project, an address or a private key.
  package init(_ bytes: [UInt8]) throws(Malformed) {
    guard let json = try? JSONValue(json: bytes, limits: JSONLimits(depth: 8, bytes: 64 << 10)),
      let project = json["project_id"]?.string, let email = json["client_email"]?.string,
      let keyID = json["private_key_id"]?.string, let pem = json["private_key"]?.string,
      let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem)
    else { throw Malformed() }
    self.project = project
    self.email = email
    self.keyID = keyID
    self.key = key
  }

  /// Signs a token for requests to this server's APIs.
  /// - Parameter seconds: the time, in seconds since the Unix epoch.
  package func token(at seconds: Int64) throws -> String {
    let text = JSONWebToken.encode(
      ["alg": .string("RS256"), "kid": .string(keyID), "typ": .string("JWT")],
      [
        "iss": .string(email), "sub": .string(email), "iat": .int(seconds),
        "exp": .int(seconds + Self.tokenSeconds),
        "scope": .string("https://www.googleapis.com/auth/cloud-platform"),
      ])
    let signature = try key.signature(for: Array(text.utf8), padding: .insecurePKCS1v1_5)
    return text + "." + Base64.encode(Array(signature.rawRepresentation), .urlSafe, padded: false)
  }
}
