// Sealed tokens contain state of the server that a client stores and returns: refresh tokens, pending second factors,
// temporary proofs of phone numbers. They are authenticated by HMAC-SHA-256 with a secret of the project, so that a
// client can neither make nor change a token.

import Crypto
package import JSON

/// The secret that authenticates the sealed tokens of a project.
package struct TokenSeal: Sendable {
  /// The use of a token. A token of one kind is never accepted as another.
  package enum Kind: String, Sendable {
    case refresh = "refresh"
    case pendingFactor = "mfa"
    case phoneProof = "phone"
    case totpEnrolment = "totp"
  }

  /// Bytes of the secret.
  static let keyBytes = 32
  private static let limits = JSONLimits(depth: 32, bytes: JSONWebToken.maximumBytes)

  private let key: SymmetricKey

  init(key: [UInt8]) {
    precondition(key.count == Self.keyBytes, "invariant: the secret of sealed tokens has 32 bytes")
    self.key = SymmetricKey(data: key)
  }

  /// Encodes and authenticates an object.
  package func seal(_ object: JSONObject, as kind: Kind) -> String {
    let payload = JSONValue.object(object).json()
    let code = HMAC<SHA256>.authenticationCode(for: Array(kind.rawValue.utf8) + [0] + payload, using: key)
    return Base64.encode(payload, .urlSafe, padded: false) + "."
      + Base64.encode(Array(code), .urlSafe, padded: false)
  }

  /// Decodes a token; nil if this secret did not authenticate it as this kind.
  package func open(_ text: String, as kind: Kind) -> JSONObject? {
    guard text.utf8.count <= JSONWebToken.maximumBytes else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 2, let payload = JSONWebToken.decode(parts[0]),
      let code = JSONWebToken.decode(parts[1]),
      HMAC<SHA256>.isValidAuthenticationCode(
        code, authenticating: Array(kind.rawValue.utf8) + [0] + payload, using: key)
    else { return nil }
    return (try? JSONValue(json: payload, limits: Self.limits))?.object
  }
}
