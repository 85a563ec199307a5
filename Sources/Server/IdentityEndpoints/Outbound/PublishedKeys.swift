// Reads the public keys that an issuer of tokens publishes: a JSON Web Key Set (RFC 7517), or an object of certificates by
// key ID, as Google publishes them.
//
// Keys that cannot verify the signatures of a known algorithm are ignored (`IssuerKey`).

import Identity
import JSON
import NIOSSL

/// The parser of published keys.
enum PublishedKeys {
  /// Maximum keys of an issuer.
  private static let maximumKeys = 100
  private static let certificatePrefix = "-----BEGIN CERTIFICATE-----"

  /// Parses keys by their IDs; nil if the bytes are neither a key set nor an object of certificates.
  static func parse(_ bytes: [UInt8]) -> [String: IssuerKey]? {
    let limits = JSONLimits(depth: 8, bytes: OutboundHTTP.maximumBytes)
    guard let object = (try? JSONValue(json: bytes, limits: limits))?.object else { return nil }
    if let list = object["keys"] { return list.array.map(keySet) }
    return certificates(object)
  }

  private static func keySet(_ list: [JSONValue]) -> [String: IssuerKey] {
    var keys: [String: IssuerKey] = [:]
    for element in list.prefix(maximumKeys) {
      guard let object = element.object, let id = object["kid"]?.string else { continue }
      keys[id] = IssuerKey(jwk: object)
    }
    return keys
  }

  private static func certificates(_ object: JSONObject) -> [String: IssuerKey]? {
    var keys: [String: IssuerKey] = [:]
    for member in object.members.prefix(maximumKeys) {
      guard let text = member.value.string, text.hasPrefix(certificatePrefix) else { return nil }
      guard let certificate = try? NIOSSLCertificate(bytes: Array(text.utf8), format: .pem),
        let der = try? certificate.extractPublicKey().toSPKIBytes()
      else { continue }
      keys[member.key] = IssuerKey(der: der)
    }
    return keys.isEmpty ? nil : keys
  }
}
