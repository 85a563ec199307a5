// A public key of another issuer of tokens: RSA for RS256, or P-256 for ES256 (RFC 7518, sections 3.3 and 3.4).
//
// Invariant: a key verifies signatures of one algorithm only. A token's header must name the same algorithm, so that a
// key is never used with another algorithm.

package import Crypto
package import JSON

/// A public key of another issuer.
package enum IssuerKey: Sendable {
  /// The algorithms of the keys, as headers of tokens name them.
  package static let algorithms = ["RS256", "ES256"]

  /// An RSA key of at least 2,048 bits.
  case rsa(RSAKey)
  /// A key on the curve P-256.
  case p256(P256.Signing.PublicKey)

  /// Reads the DER form of a public key (SubjectPublicKeyInfo); nil if its algorithm is unknown.
  package init?(der bytes: [UInt8]) {
    if let key = try? P256.Signing.PublicKey(derRepresentation: bytes) {
      self = .p256(key)
    } else if let key = RSAKey(der: bytes) {
      self = .rsa(key)
    } else {
      return nil
    }
  }

  /// Reads a JSON Web Key; nil if its algorithm is unknown, or is restricted to another use or algorithm.
  package init?(jwk object: JSONObject) {
    switch object["kty"]?.string {
    case "RSA":
      guard let key = RSAKey(jwk: object) else { return nil }
      self = .rsa(key)
    case "EC":
      guard object["crv"]?.string == "P-256", let x = Self.coordinate(object["x"]),
        let y = Self.coordinate(object["y"]),
        // The uncompressed form of a point begins with 4 (SEC 1, section 2.3.3). A point that is not on the curve is rejected.
        let key = try? P256.Signing.PublicKey(x963Representation: [4] + x + y)
      else { return nil }
      self = .p256(key)
    default: return nil
    }
    if let use = object["use"], use.string != "sig" { return nil }
    if let algorithm = object["alg"], algorithm.string != self.algorithm { return nil }
  }

  private static func coordinate(_ value: JSONValue?) -> [UInt8]? {
    guard let text = value?.string, let bytes = JSONWebToken.decode(text.utf8), bytes.count == 32 else {
      return nil
    }
    return bytes
  }

  /// The algorithm of the key, as headers of tokens name it.
  package var algorithm: String {
    switch self {
    case .rsa: "RS256"
    case .p256: "ES256"
    }
  }

  /// Whether the header of a token names the key's algorithm, and the signature is valid.
  package func verifies(_ token: JSONWebToken) -> Bool {
    guard token.header["alg"]?.string == algorithm else { return false }
    switch self {
    case .rsa(let key): return key.verifies(token.signature, of: token.signedBytes)
    case .p256(let key):
      guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: token.signature) else {
        return false
      }
      return key.isValidSignature(signature, for: token.signedBytes)
    }
  }

  /// The public key in DER (SubjectPublicKeyInfo).
  var der: [UInt8] {
    switch self {
    case .rsa(let key): key.der
    case .p256(let key): Array(key.derRepresentation)
    }
  }
}
