// The parts of a denial's JSON that do not depend on the product: caller, time and reason.

import Access
import FirestoreModel
import JSON

/// Writes the members of a denial.
enum DenialMembers {
  /// The maximum size of the claims in a denial, in bytes of JSON.
  private static let maximumClaimsBytes = 4 << 10
  /// The maximum number of paths, and of fields, in a denial.
  static let maximumNames = 20

  /// The members that every denial has.
  /// - Parameter microseconds: the time of the denial.
  static func common(
    microseconds: Int64, operation: String, paths: [String], _ principal: Principal, reason: String
  ) -> JSONObject {
    [
      "time": .string(Timestamp(microseconds: microseconds).rfc3339), "operation": .string(operation),
      "paths": .array(paths.prefix(maximumNames).map { .string($0) }), "pathCount": .int(Int64(paths.count)),
      "caller": .object(caller(principal)), "reason": .string(String(reason.prefix(1_000))),
    ]
  }

  private static func caller(_ principal: Principal) -> JSONObject {
    switch principal.identity {
    case .nobody: return ["kind": .string("nobody")]
    case .service(let role): return ["kind": .string("service"), "role": .string(role.rawValue)]
    case .user(let user):
      var object: JSONObject = ["kind": .string("user"), "uid": .string(user.id)]
      if let tenant = user.tenant { object["tenant"] = .string(tenant) }
      let claims = JSONValue.object(user.claims.json)
      let isSmall = claims.json().count <= maximumClaimsBytes
      object[isSmall ? "claims" : "claimsOmitted"] = isSmall ? claims : .bool(true)
      return object
    }
  }

  /// Adds the member `replay`, which shows whether the request is recorded.
  /// - Returns: the request; nil if it has more than `limit` bytes, so that it is not recorded.
  static func addReplay(
    _ request: RecordedRequest?, limit: Int, _ members: inout JSONObject
  ) -> RecordedRequest? {
    guard let request else {
      members["replay"] = .object([
        "isRecorded": .bool(false), "reason": .string("no rules decided the operation"),
      ])
      return nil
    }
    guard request.bytes <= limit else {
      members["replay"] = .object([
        "isRecorded": .bool(false),
        "reason": .string("the decision read \(request.bytes) bytes; at most \(limit) are recorded"),
      ])
      return nil
    }
    members["replay"] = .object(["isRecorded": .bool(true), "bytes": .int(Int64(request.bytes))])
    return request
  }
}
