// A token whose signature and claims were verified.

package import Access
package import JSON

/// A verified token.
package struct VerifiedToken: Sendable {
  /// The caller that the token identifies.
  package let principal: Principal
  package let claims: JSONObject
  /// Seconds since the Unix epoch.
  package let issuedAt: Int64
  /// Seconds since the Unix epoch.
  package let expiry: Int64
  /// Whether another issuer signed the token. Such tokens are credentials for the databases only.
  var isForeign = false
}
