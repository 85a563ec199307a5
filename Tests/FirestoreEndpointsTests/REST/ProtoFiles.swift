// Reads the message declarations of this project's .proto files, to compare them with the JSON schema tables.
// Parses only the part of the protobuf language that these files use.

import Foundation

@testable import FirestoreEndpoints

/// The messages and enumerations that the .proto files declare.
struct ProtoFiles {
  struct Field {
    var number: Int
    var name: String
    var type: String
    var isRepeated: Bool
    var oneof: String?
  }

  /// Types whose fields JSON omits: this server never sets them.
  static let omitted: Set<String> = ["google.protobuf.Any", "ExplainStats"]

  private(set) var messages: [String: [Field]] = [:]
  private(set) var enumerations: [String: [String: Int]] = [:]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Sources/Shared/FirestoreWire/Protos")
    let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "proto", file.lastPathComponent != "explain_stats.proto" else { continue }
      parse(try String(contentsOf: file, encoding: .utf8))
    }
  }

  /// Returns whether a declared type matches a schema's type.
  static func matches(_ type: String, _ kind: MessageSchema.Kind) -> Bool {
    switch kind {
    case .int32: type == "int32"
    case .int64: type == "int64"
    case .double: type == "double"
    case .bool: type == "bool"
    case .string: type == "string"
    case .bytes: type == "bytes"
    case .null: type == "google.protobuf.NullValue"
    case .timestamp: type == "google.protobuf.Timestamp"
    case .duration: type == "google.protobuf.Duration"
    case .structure: type == "google.protobuf.Struct"
    case .wrapped(.int32): type == "google.protobuf.Int32Value"
    case .wrapped(.int64): type == "google.protobuf.Int64Value"
    case .wrapped(.double): type == "google.protobuf.DoubleValue"
    case .wrapped: false
    case .enumeration(let name): name.rawValue.hasSuffix("." + type) || name.rawValue == type
    case .message(let name): name.rawValue.hasSuffix("." + type) || name.rawValue == type
    case .list(let element), .map(let element): matches(type, element)
    }
  }

  private mutating func parse(_ text: String) {
    var package = ""
    var scopes: [(kind: String, name: String)] = []
    for line in text.split(separator: "\n") {
      let code = line.split(separator: "//", maxSplits: 1, omittingEmptySubsequences: false)[0]
      let words = code.split { " ;={}<>,()".contains($0) }.map(String.init)
      let path = ([package] + scopes.filter { $0.kind == "message" }.map(\.name)).joined(separator: ".")
      if words.first == "package" { package = words[1] }
      if code.contains("{"), words.count >= 2 {
        scopes.append((words[0], words[1]))
        if words[0] == "message" { messages[path + "." + words[1]] = [] }
        if words[0] == "enum" { enumerations[path + "." + words[1]] = [:] }
      } else if code.contains("}") {
        scopes.removeLast()
      } else if let scope = scopes.last, words.count >= 2 {
        switch scope.kind {
        case "enum": enumerations[path + "." + scope.name]?[words[0]] = Int(words[1])
        case "message", "oneof":
          messages[path]?.append(Self.field(words, scope.kind == "oneof" ? scope.name : nil))
        default: break
        }
      }
      if code.contains("{"), code.contains("}") { scopes.removeLast() }
    }
    for (name, fields) in messages { messages[name] = Self.withoutSingleFieldOneofs(fields) }
  }

  private static func field(_ words: [String], _ oneof: String?) -> Field {
    let number = Int(words.last ?? "") ?? 0
    switch words[0] {
    case "repeated":
      return Field(number: number, name: words[2], type: words[1], isRepeated: true, oneof: nil)
    case "map": return Field(number: number, name: words[3], type: words[2], isRepeated: false, oneof: nil)
    default: return Field(number: number, name: words[1], type: words[0], isRepeated: false, oneof: oneof)
    }
  }

  /// Removes the oneof from fields that are alone in it, because the schema tables list only oneofs of several
  /// fields.
  private static func withoutSingleFieldOneofs(_ fields: [Field]) -> [Field] {
    fields.map { field in
      var field = field
      if fields.filter({ $0.oneof == field.oneof }).count == 1 { field.oneof = nil }
      return field
    }
  }
}
