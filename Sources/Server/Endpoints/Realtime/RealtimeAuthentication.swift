// Who is asking, from a credential. With `--emulator` it is whoever the credential claims,
// unverified; without it there is nobody yet who could verify one, so that every credential is refused.
//
// Invariant: nothing is trusted unless the process was started as an emulator.

import JSON
import RealtimeEngine
import RealtimeModel

/// How the Realtime Database's port establishes callers.
public struct RealtimeAuthentication: Sendable {
  private let isEmulator: Bool

  /// Trusts what a credential claims: `owner` is the administrator, a token is read without verification.
  public static let emulator = RealtimeAuthentication(isEmulator: true)

  /// Refuses every credential.
  public static let refuseAll = RealtimeAuthentication(isEmulator: false)

  /// Who somebody is, with what the protocol tells about it.
  struct Verified: Sendable {
    var caller: Caller
    /// What rules see as `auth`; empty for an administrator.
    var claims: Node
    /// When the credential ends, in seconds since 1970; 0 for never.
    var expires: Int64
  }

  /// Refuses whom no data is given to or taken from, whatever the request says; nil for anybody else.
  func refusal(of credential: String?) -> RealtimeError? {
    guard !isEmulator else { return nil }
    return credential == nil ? .permissionDenied : Self.invalidToken
  }

  private static let invalidToken = RealtimeError(.invalidToken, "Could not parse auth token.")

  /// The one a credential stands for.
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

  /// The caller of a request that carries a credential or none, with whom an administrator wants to be instead.
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

  /// Whom an administrator wants to be.
  enum Override: Sendable {
    case nobody
    case user(Node)
  }
}
