// Reads the vectors of Firestore rules, which are cases with their recorded results, from the folder that the environment
// variable HEARTH_CONFORMANCE names. Its README describes the format.

import Foundation
import JSON
import Testing

/// The vectors of Firestore rules.
enum RuleVectors {
  private static let root = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  /// Whether the folder is given. Otherwise the tests of vectors are skipped.
  static var areGiven: Bool { root != nil }

  /// The categories. Each is a file.
  static let categories = [
    "aggregations", "bytes-hashing", "compile", "error-algebra", "functions", "limits", "lists-sets",
    "lookups",
    "maps", "matching", "numbers", "operators", "operators-matrix", "paths", "queries", "regex",
    "request-resource", "strings", "time", "writes",
  ]

  /// The cases of a category.
  static func cases(of category: String) throws -> [VectorCase] {
    let root = try #require(root)
    let file = URL(fileURLWithPath: root).appendingPathComponent("firestore-rules/\(category).json")
    let json = try JSONValue(json: Array(try Data(contentsOf: file)), limits: JSONLimits(depth: 1000))
    return try #require(json["cases"]?.array).map { VectorCase(json: $0) }
  }
}

/// One case.
struct VectorCase {
  let json: JSONValue

  var id: String { json["id"]?.string ?? "?" }
  /// Whether the case is a quirk: a verdict that this project does not follow everywhere.
  var isQuirk: Bool { json["quirk"]?.bool ?? false }
  /// The requests: one, or several on the same data.
  var steps: [JSONValue] { json["steps"]?.array ?? (json["request"] == nil ? [] : [json]) }
}

extension JSONValue {
  subscript(key: String) -> JSONValue? {
    guard case .object(let object) = self else { return nil }
    return object[key]
  }

  var array: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
  var object: JSONObject? { if case .object(let object) = self { object } else { nil } }
  var string: String? { if case .string(let text) = self { text } else { nil } }
  var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// An integer, as a number or as text.
  var integer: Int64? {
    switch self {
    case .int(let value): value
    case .double(let value): Int64(exactly: value)
    case .string(let text): Int64(text)
    default: nil
    }
  }
}
