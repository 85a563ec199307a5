// Who is asking, from a request's `authorization` header. Until accounts exist there are two answers: with
// `--emulator` whoever the header claims, unverified; without it nobody.
//
// Invariant: nothing is trusted unless the process was started as an emulator.

public import FirestoreEngine
public import FirestoreModel
import JSON
import RealtimeModel

/// How the Firestore port establishes callers.
public struct FirestoreAuthentication: Sendable {
  /// Whether this process was started as an emulator.
  let isEmulator: Bool

  /// Trusts what a request claims: no token is an anonymous caller, `owner` the administrator, any other token is
  /// read without verification.
  public static let emulator = FirestoreAuthentication(isEmulator: true)

  /// Refuses everybody with UNAUTHENTICATED.
  public static let refuseAll = FirestoreAuthentication(isEmulator: false)

  /// Refuses whom no request is taken from, whatever it says.
  /// - Throws: UNAUTHENTICATED.
  func admit(authorization: String?) throws(FirestoreError) {
    if !isEmulator { _ = try caller(authorization: authorization) }
  }

  /// The caller of a request.
  /// - Parameter authorization: the header's value; nil if there is none.
  /// - Throws: UNAUTHENTICATED, or INVALID_ARGUMENT for a bearer token that is no token.
  public func caller(authorization: String?) throws(FirestoreError) -> Caller {
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

  /// Reads a token of three parts without looking at its signature or its times: mock tokens expired in 1970.
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
