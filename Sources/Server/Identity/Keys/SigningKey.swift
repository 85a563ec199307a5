// One key that signs the tokens of users: an RSA key of 2,048 bits for RS256, with its public forms.

import Crypto
import CryptoExtras
import Foundation
package import JSON

/// A signing key.
package struct SigningKey: Sendable {
  /// The name of the key in the headers of tokens.
  package let id: String
  /// Seconds since the Unix epoch.
  package let createdAt: Int64
  /// The public key.
  package let publicKey: RSAKey
  private let key: _RSA.Signing.PrivateKey

  /// Makes a new key. Takes about 0.2 s of processor time.
  package static func make(at seconds: Int64) throws -> SigningKey {
    SigningKey(try _RSA.Signing.PrivateKey(keySize: .bits2048), createdAt: seconds)
  }

  private init(_ key: _RSA.Signing.PrivateKey, createdAt: Int64) {
    self.key = key
    self.createdAt = createdAt
    publicKey = RSAKey(key.publicKey)
    id = publicKey.id
  }

  /// Signs bytes with RSASSA-PKCS1-v1_5 and SHA-256.
  package func sign(_ bytes: [UInt8]) throws -> [UInt8] {
    Array(try key.signature(for: bytes, padding: .insecurePKCS1v1_5).rawRepresentation)
  }

  /// Encodes and signs a token.
  package func encode(_ claims: JSONObject, type: String = "JWT") throws -> String {
    let text = JSONWebToken.encode(
      ["alg": .string("RS256"), "kid": .string(id), "typ": .string(type)], claims)
    return text + "." + Base64.encode(try sign(Array(text.utf8)), .urlSafe, padded: false)
  }

  /// The private key as PKCS #8 in PEM, as service-account files contain it.
  package var privatePEM: String { key.pkcs8PEMRepresentation }

  /// A self-signed certificate with the public key in PEM. Older libraries read the key from it.
  /// - Parameter lifetime: seconds for which it is valid.
  package func certificate(lifetime: Int64) throws -> String {
    let sha256WithRSA = DER.sequence(
      DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B]), DER.null)
    let commonName = DER.sequence(DER.identifier([0x55, 0x04, 0x03]), DER.utf8String("hearth.securetoken"))
    let name = DER.sequence(DER.set(commonName))
    let body = DER.sequence(
      DER.value(0xA0, DER.integer([2])), DER.integer(Array(id.utf8.prefix(16))), sha256WithRSA, name,
      DER.sequence(DER.time(createdAt), DER.time(createdAt + lifetime)), name,
      Array(key.publicKey.derRepresentation))
    let certificate = DER.sequence(body, sha256WithRSA, DER.bitString(try sign(body)))
    var lines = ["-----BEGIN CERTIFICATE-----"]
    var rest = Base64.encode(certificate)[...]
    while !rest.isEmpty {
      lines.append(String(rest.prefix(64)))
      rest = rest.dropFirst(64)
    }
    return (lines + ["-----END CERTIFICATE-----", ""]).joined(separator: "\n")
  }

  var storedForm: JSONObject {
    ["createdAt": .int(createdAt), "key": .string(Base64.encode(Array(key.pkcs8DERRepresentation)))]
  }

  init(storedForm object: JSONObject) throws {
    guard let createdAt = object["createdAt"]?.int, let text = object["key"]?.string,
      let bytes = Base64.decode(text.utf8, .standard, paddedBy: [UInt8(ascii: "=")]),
      let key = try? _RSA.Signing.PrivateKey(derRepresentation: bytes)
    else { throw CorruptRow("a signing key cannot be read") }
    self.init(key, createdAt: createdAt)
  }
}

/// A public RSA key that verifies RS256 signatures.
package struct RSAKey: Sendable {
  private let key: _RSA.Signing.PublicKey

  init(_ key: _RSA.Signing.PublicKey) { self.key = key }

  /// Reads the DER form of a public key (SubjectPublicKeyInfo); nil if it is invalid or has less than 2,048 bits.
  package init?(der bytes: [UInt8]) {
    guard let key = try? _RSA.Signing.PublicKey(derRepresentation: bytes) else { return nil }
    self.key = key
  }

  /// Reads a JSON Web Key; nil if it is not an RSA key of at least 2,048 bits.
  package init?(jwk object: JSONObject) {
    guard object["kty"]?.string == "RSA", let n = object["n"]?.string, let e = object["e"]?.string,
      let modulus = JSONWebToken.decode(n.utf8), let exponent = JSONWebToken.decode(e.utf8),
      modulus.count >= 256, let key = try? _RSA.Signing.PublicKey(n: modulus, e: exponent)
    else { return nil }
    self.key = key
  }

  /// Whether a signature is valid: RSASSA-PKCS1-v1_5 with SHA-256.
  package func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
    key.isValidSignature(
      _RSA.Signing.RSASignature(rawRepresentation: signature), for: bytes, padding: .insecurePKCS1v1_5)
  }

  /// The public key in DER (SubjectPublicKeyInfo).
  package var der: [UInt8] { Array(key.derRepresentation) }

  /// The ID, which is derived from the key: 40 hexadecimal digits.
  package var id: String { Self.id(of: key) }

  static func id(of key: _RSA.Signing.PublicKey) -> String {
    SHA256.hash(data: key.derRepresentation).prefix(20).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  /// The JSON Web Key (RFC 7517).
  package var jwk: JSONObject {
    get throws {
      let primitives = try key.getKeyPrimitives()
      func text(_ data: Data) -> JSONValue {
        .string(Base64.encode(Array(data.drop { $0 == 0 }), .urlSafe, padded: false))
      }
      return [
        "kty": .string("RSA"), "alg": .string("RS256"), "use": .string("sig"), "kid": .string(id),
        "n": text(primitives.modulus), "e": text(primitives.publicExponent),
      ]
    }
  }
}
