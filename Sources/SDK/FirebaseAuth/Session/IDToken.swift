// ID tokens: parses JSON Web Tokens. Only the server verifies their signatures.

import Foundation

/// The claims of an ID token.
struct IDToken {
  let claims: [String: Any]

  /// Parses a token.
  ///
  /// - Throws: `malformedJWT` if the token does not have three parts, or if its payload is not a JSON object
  ///   in base64url.
  init(_ token: String) throws {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      throw AuthErrorCode.malformedJWT.error("The ID token does not have three parts.")
    }
    guard let payload = Self.decode(parts[1]) else {
      throw AuthErrorCode.malformedJWT.error("The payload of the ID token is not base64url.")
    }
    do {
      guard let claims = try JSONSerialization.jsonObject(with: payload) as? [String: Any] else {
        throw AuthErrorCode.malformedJWT.error("The payload of the ID token is not a JSON object.")
      }
      self.claims = claims
    } catch {
      throw AuthErrorCode(of: error) != nil
        ? error : AuthErrorCode.malformedJWT.error(underlying: error) as any Error
    }
  }

  /// The user's ID.
  var userID: String? { claims["sub"] as? String ?? claims["user_id"] as? String }

  /// The time at which the token expires.
  var expiration: Date? { date("exp") }

  /// The time in a claim, which is in seconds since 1970.
  func date(_ claim: String) -> Date? {
    (claims[claim] as? NSNumber).map { Date(timeIntervalSince1970: $0.doubleValue) }
  }

  /// Decodes base64url without padding; nil if it is malformed.
  private static func decode(_ text: Substring) -> Data? {
    var standard = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    if !standard.count.isMultiple(of: 4) {
      standard += String(repeating: "=", count: 4 - standard.count % 4)
    }
    return Data(base64Encoded: standard)
  }
}
