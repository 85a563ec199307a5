// One case of the shared vectors of Realtime Database rules: its parts, and how answers are compared. The shared vectors
// are JSON files with rules, requests and expected results. The environment variable HEARTH_CONFORMANCE names their
// directory.

import Foundation
import JSON
import RealtimeModel

/// A case, or one step of a case.
struct RuleCase {
  static let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  let json: JSONObject

  /// The cases of a category.
  static func all(_ category: String) throws -> [RuleCase] {
    let url = URL(fileURLWithPath: folder ?? "").appendingPathComponent("realtime-rules/\(category).json")
    let file = try JSONValue(json: String(contentsOf: url, encoding: .utf8))
    return (file["cases"]?.array ?? []).compactMap { $0.object.map(RuleCase.init) }
  }

  var id: String { json["id"]?.string ?? "" }
  var isDisputed: Bool { json["disputed"] != nil }
  var operation: JSONObject? { json["operation"]?.object }

  /// The permitted statuses.
  var statuses: [Int64] { json["status"]?.array?.compactMap(\.int) ?? json["status"]?.int.map { [$0] } ?? [] }

  /// The texts that no part of an answer may contain.
  var absent: [String] { (json["absent"]?.array ?? []).compactMap(\.string) }

  /// The credential of a caller as the parameter `auth`; nil for nobody. The owner's is `owner`.
  static func token(_ caller: JSONValue?) -> String? {
    switch caller {
    case nil, .null?: return nil
    case .string(let text)?: return text
    case .object(var claims)?:
      let id = claims["sub"]?.string ?? "u1"
      let now = Int64(Date().timeIntervalSince1970)
      for member in claims.members {
        if let seconds = member.value["$seconds"]?.int { claims[member.key] = .int(now + seconds) }
      }
      let standard: [(String, JSONValue)] = [
        ("sub", .string(id)), ("user_id", .string(id)), ("aud", .string("demo-rules")),
        ("iss", .string("https://securetoken.google.com/demo-rules")), ("iat", .int(now)),
        ("auth_time", .int(now)),
        ("exp", .int(now + 3600)),
        (
          "firebase", .object(["sign_in_provider": .string("password"), "identities": .object(JSONObject())])
        ),
      ]
      for (name, value) in standard where claims[name] == nil { claims[name] = value }
      return [Array(#"{"alg":"none","typ":"JWT"}"#.utf8), JSONValue.object(claims).json(), []]
        .map {
          Data($0).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
        }
        .joined(separator: ".")
    default: return nil
    }
  }

  /// Whether an answer is the expected one. `"$NOW"` stands for a time within ten minutes, the key `"$PUSH"` for one
  /// further key that the server generated.
  static func matches(_ found: JSONValue?, _ expected: JSONValue) -> Bool {
    switch (found, expected) {
    case (let found?, .string("$NOW")):
      guard let milliseconds = found.double else { return false }
      return abs(milliseconds / 1000 - Date().timeIntervalSince1970) < 600
    case (.object(let found)?, .object(let expected)):
      var others = Set(found.members.map(\.key))
      for member in expected.members where member.key != "$PUSH" {
        guard others.remove(member.key) != nil, matches(found[member.key], member.value) else { return false }
      }
      guard let pushed = expected["$PUSH"] else { return others.isEmpty }
      guard others.count == 1, let key = others.first, key.utf8.count == 20 else { return false }
      return matches(found[key], pushed)
    case (.array(let found)?, .array(let expected)):
      return found.count == expected.count && zip(found, expected).allSatisfy { matches($0, $1) }
    default: return found == expected
    }
  }
}
