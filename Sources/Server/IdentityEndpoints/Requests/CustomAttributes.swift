// Checks the custom claims that an administrator sets on an account.

import Identity
import JSON

/// The custom claims of an account, as JSON text.
enum CustomAttributes {
  /// Maximum characters of the text, as in the hosted product.
  private static let maximumLength = 1000

  /// Checks the text.
  /// - Throws: `CLAIMS_TOO_LARGE`, `INVALID_CLAIMS` or `FORBIDDEN_CLAIM`.
  static func validate(_ text: String) throws(IdentityError) {
    guard text.utf16.count <= maximumLength else { throw .rejected("CLAIMS_TOO_LARGE") }
    guard let claims = (try? JSONValue(json: text, limits: JSONLimits(depth: 32)))?.object else {
      throw .rejected("INVALID_CLAIMS")
    }
    try IDTokenClaims.validateCustom(claims)
  }
}
