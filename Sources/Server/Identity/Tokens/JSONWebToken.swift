// JSON Web Tokens in compact form (RFC 7515, RFC 7519): parsing without verification, and serialization.
//
// Parsing is strict: three segments of unpadded URL-safe Base64 whose unused bits are zero, and JSON objects. Each
// token therefore has exactly one encoding.

package import JSON

/// A parsed token. Nothing in it is verified.
package struct JSONWebToken: Sendable {
  /// Maximum bytes of a token. Custom claims have at most 1,000 bytes, and a profile has a few thousand.
  package static let maximumBytes = 32 << 10
  private static let limits = JSONLimits(depth: 32, bytes: maximumBytes)

  package var header: JSONObject
  package var claims: JSONObject
  /// The bytes that the signature covers: header, dot and payload, as encoded.
  package var signedBytes: [UInt8]
  /// The signature; empty for an unsigned token.
  package var signature: [UInt8]

  /// Parses a token; nil if its form is invalid.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.maximumBytes else { return nil }
    let segments = text.utf8.split(
      separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard segments.count == 3, let header = Self.object(segments[0]), let claims = Self.object(segments[1]),
      let signature = Self.decode(segments[2])
    else { return nil }
    self.header = header
    self.claims = claims
    self.signature = signature
    signedBytes = Array(text.utf8.prefix(segments[0].count + 1 + segments[1].count))
  }

  /// Decodes unpadded URL-safe Base64; nil unless the text is the canonical encoding of the bytes.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard let bytes = Base64.decode(text, .urlSafe) else { return nil }
    guard Base64.encode(bytes, .urlSafe, padded: false).utf8.elementsEqual(text) else { return nil }
    return bytes
  }

  private static func object(_ segment: Substring.UTF8View) -> JSONObject? {
    guard let bytes = decode(segment) else { return nil }
    return (try? JSONValue(json: bytes, limits: limits))?.object
  }

  /// Encodes a token without a signature, as the Auth emulator issues it.
  package static func unsigned(_ claims: JSONObject) -> String {
    encode(["alg": .string("none"), "typ": .string("JWT")], claims) + "."
  }

  /// Encodes header and claims, without the second dot and the signature.
  package static func encode(_ header: JSONObject, _ claims: JSONObject) -> String {
    Base64.encode(JSONValue.object(header).json(), .urlSafe, padded: false) + "."
      + Base64.encode(JSONValue.object(claims).json(), .urlSafe, padded: false)
  }
}
