// Authenticates the callers of the Firestore port by the `authorization` header of their requests.
//
// The server does not implement accounts. With `--emulator` it accepts the claims of every token without verification.
// Without `--emulator` it rejects every caller.
//
// Invariant: no claim is trusted unless the process was started as an emulator.

package import FirestoreEngine
package import FirestoreModel
import JSON
import RealtimeModel

/// Authenticates the callers of the Firestore port.
package struct FirestoreAuthentication: Sendable {
  /// Whether this process was started as an emulator.
  let isEmulator: Bool

  /// Trusts every request. Without a token the caller is anonymous. The token `owner` and tokens that begin with
  /// `ya29`, as Google's access tokens do, identify the administrator. The claims of any other token are accepted
  /// without verification.
  package static let emulator = FirestoreAuthentication(isEmulator: true)

  /// Rejects every caller with UNAUTHENTICATED.
  package static let refuseAll = FirestoreAuthentication(isEmulator: false)

  /// Rejects every request of a server without `--emulator`, before the request's body is stored.
  /// - Throws: UNAUTHENTICATED.
  func admit(authorization: String?) throws(FirestoreError) {
    if !isEmulator { _ = try caller(authorization: authorization) }
  }

  /// Returns the caller of a request.
  /// - Parameter authorization: the header's value; nil if there is none.
  /// - Throws: UNAUTHENTICATED, or INVALID_ARGUMENT for a malformed bearer token.
  package func caller(authorization: String?) throws(FirestoreError) -> Caller {
    guard isEmulator else {
      throw .unauthenticated(
        "Request is missing required authentication credential. This server was started without --emulator, and "
          + "accounts are not implemented by it yet.")
    }
    guard let authorization else { return .anonymous }
    let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw .unauthenticated("The authorization header must be of the form 'Bearer TOKEN'.")
    }
    let token = parts[1]
    if token.lowercased() == "owner" || token.hasPrefix("ya29") { return .administrator }
    return try Self.user(unverified: token)
  }

  /// Reads the claims of a JSON Web Token. It ignores the signature and the times, since mock tokens expired in 1970.
  private static func user(unverified token: Substring) throws(FirestoreError) -> Caller {
    let segments = token.split(separator: ".", omittingEmptySubsequences: false)
    guard segments.count == 3, let payload = Base64.decode(segments[1].utf8, .urlSafe),
      let json = try? JSONValue(json: payload, limits: JSONLimits(depth: 32, bytes: 64 << 10)),
      let claims = json.object
    else { throw .invalidArgument("invalid jwt") }
    let id = claims["sub"]?.string ?? claims["user_id"]?.string ?? ""
    return Caller(.user(id: id, claims: map(claims)))
  }

  private static func map(_ object: JSONObject) -> MapValue {
    var map = MapValue()
    for member in object.members { map[member.key] = value(member.value) }
    return map
  }

  private static func value(_ json: JSONValue) -> Value {
    switch json {
    case .null: .null
    case .bool(let bool): .boolean(bool)
    case .int(let int): .integer(int)
    case .double(let double): .double(double)
    case .string(let string): .string(string)
    case .array(let elements): .array(elements.map(value))
    case .object(let object): .map(map(object))
    }
  }
}
