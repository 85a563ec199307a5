// Authenticates callers of the Realtime Database by their credential.
//
// With `--emulator` the server trusts the claims of a credential without verification. Without it the server
// rejects every credential, because verification is not implemented.
//
// Invariant: no credential is trusted unless the process was started as an emulator.

import JSON
import RealtimeEngine
import RealtimeModel

/// How a port of the Realtime Database authenticates callers.
package struct RealtimeAuthentication: Sendable {
  private let isEmulator: Bool

  /// Trusts every credential. The credential `owner` identifies the administrator, and the claims of tokens
  /// are not verified.
  package static let emulator = RealtimeAuthentication(isEmulator: true)

  /// Rejects every credential.
  package static let refuseAll = RealtimeAuthentication(isEmulator: false)

  /// The result of a verification.
  struct Verified: Sendable {
    var caller: Caller
    /// The value of `auth` in rules; empty for an administrator.
    var claims: Node
    /// The expiry of the credential, in seconds since 1970; 0 for never.
    var expires: Int64
  }

  /// Returns the error for a request with a given credential if this port rejects such requests independent
  /// of their contents; nil otherwise.
  func refusal(of credential: String?) -> RealtimeError? {
    guard !isEmulator else { return nil }
    return credential == nil ? .permissionDenied : Self.invalidToken
  }

  private static let invalidToken = RealtimeError(.invalidToken, "Could not parse auth token.")

  /// Returns the caller that a credential identifies.
  ///
  /// - Throws: ``RealtimeError`` with the status `invalid_token`.
  func verify(_ credential: String) throws(RealtimeError) -> Verified {
    let invalid = Self.invalidToken
    guard isEmulator else { throw invalid }
    if credential == "owner" {
      return Verified(caller: .administrator, claims: .empty, expires: 0)
    }
    let segments = credential.split(separator: ".", omittingEmptySubsequences: false)
    guard segments.count == 3, credential.utf8.count <= 64 << 10,
      let payload = Base64.decode(segments[1].utf8, .urlSafe), let claims = try? Node(json: payload, .read),
      case .children = claims.content
    else { throw invalid }
    var id = ""
    for name: ChildKey in ["sub", "user_id", "uid"] {
      if id.isEmpty, case .string(let text)? = claims.child(name).leafValue { id = text }
    }
    var expires: Int64 = 0
    if case .int(let time)? = claims.child("exp").leafValue { expires = time }
    return Verified(caller: Caller(.user(id: id, claims: claims)), claims: claims, expires: expires)
  }

  /// Returns the caller of a request. With `override`, an administrator acts as another user.
  func caller(credential: String?, override: Override? = nil) throws(RealtimeError) -> Caller {
    guard let credential else { return .anonymous }
    let caller = try verify(credential).caller
    guard caller == .administrator, let override else { return caller }
    switch override {
    case .nobody: return .anonymous
    case .user(let claims):
      var id = ""
      if case .string(let text)? = claims.child("uid").leafValue { id = text }
      return Caller(.user(id: id, claims: claims))
    }
  }

  /// The user that an administrator acts as.
  enum Override: Sendable {
    case nobody
    case user(Node)
  }
}
