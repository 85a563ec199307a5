// Emulator tokens: the credentials that a server started with `--emulator` trusts without verification.
//
// Invariant: only a process that was started as an emulator may use this verifier.

package import JSON

/// Reads the credentials of the emulator.
package struct EmulatorTokens: CredentialVerifier {
  /// Maximum bytes of a token.
  package static let maximumBytes = 64 << 10

  /// Makes a reader.
  package init() {}

  /// Returns the principal of a token. `owner`, and tokens that begin with `ya29` as Google's access tokens do,
  /// identify an administrator of every project.
  ///
  /// Signature and times of other tokens are ignored, since mock tokens expired in 1970. So the principal has no expiry
  /// and belongs to every project.
  /// - Throws: ``InvalidCredential`` for a token that is not a JSON Web Token.
  package func principal(of token: Substring) throws(InvalidCredential) -> Principal {
    let malformed = InvalidCredential(.malformed, reason: "The token is not a JSON Web Token.")
    if token.lowercased() == "owner" || token.hasPrefix("ya29") { return .administrator }
    guard token.utf8.count <= Self.maximumBytes else { throw malformed }
    let segments = token.split(separator: ".", omittingEmptySubsequences: false)
    guard segments.count == 3, let payload = Base64.decode(segments[1].utf8, .urlSafe),
      let json = try? JSONValue(json: payload, limits: JSONLimits(depth: 32, bytes: Self.maximumBytes)),
      let claims = json.object
    else { throw malformed }
    return Principal(.user(User(claims)), issuer: claims["iss"]?.string)
  }
}

extension User {
  /// The user that claims identify: the first of `sub`, `user_id` and `uid` that is not empty.
  package init(_ claims: JSONObject) {
    var id = ""
    for name in ["sub", "user_id", "uid"] where id.isEmpty { id = claims[name]?.string ?? "" }
    self.init(id: id, tenant: claims["firebase"]?.object?["tenant"]?.string, claims: Claims(claims))
  }
}
