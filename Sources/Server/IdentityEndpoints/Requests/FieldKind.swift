// A field kind is the type of a member of a request body. It converts values to this type.
//
// The conversion is as lenient as in the hosted product. Unknown members are ignored, snake_case names are accepted,
// numbers become strings where a string is expected, and numbers of enumeration values become their names.

import Identity
import JSON

/// The type of a member of a request body.
indirect enum FieldKind: Sendable {
  case string
  case bool
  /// A number of at most 32 bits.
  case int
  /// A number of 64 bits, which JSON writes as a string.
  case decimal
  /// A value of an enumeration with these names. The number of a name is its position.
  case enumeration([String])
  case list(FieldKind)
  case object([String: FieldKind])
  case any

  /// Converts a value.
  /// - Throws: INVALID_ARGUMENT that names the member.
  func convert(_ value: JSONValue, at path: String) throws(IdentityError) -> JSONValue {
    switch (self, value) {
    case (.any, _), (.string, .string), (.bool, .bool), (.int, .int), (.decimal, .string): return value
    case (.string, .int(let number)), (.decimal, .int(let number)): return .string(String(number))
    case (.string, .double(let number)), (.decimal, .double(let number)): return .string(String(number))
    case (.int, .string(let text)):
      guard let number = Int64(text) else { throw Self.mismatch(path, "integer") }
      return .int(number)
    case (.int, .double(let number)):
      guard let integer = Int64(exactly: number) else { throw Self.mismatch(path, "integer") }
      return .int(integer)
    case (.enumeration(let words), .string(let word)):
      guard words.contains(word) else { throw Self.mismatch(path, "equal to one of the allowed values") }
      return value
    case (.enumeration(let words), .int(let number)):
      guard let index = Int(exactly: number), words.indices.contains(index) else {
        throw Self.mismatch(path, "equal to one of the allowed values")
      }
      return .string(words[index])
    case (.list(let kind), .array(let elements)):
      var converted: [JSONValue] = []
      for (index, element) in elements.enumerated() {
        converted.append(try kind.convert(element, at: "\(path)/\(index)"))
      }
      return .array(converted)
    case (.object(let fields), .object(let object)):
      return .object(try Self.convert(object, fields, at: path))
    default: throw Self.mismatch(path, name)
    }
  }

  /// Converts the known members of an object, and omits the others. A null counts as absent.
  static func convert(
    _ object: JSONObject, _ fields: [String: FieldKind], at path: String = ""
  ) throws(IdentityError) -> JSONObject {
    var converted = JSONObject()
    for member in object.members where !member.value.isNull {
      let name = fields[member.key] == nil ? camelCase(member.key) : member.key
      guard let kind = fields[name] else { continue }
      converted[name] = try kind.convert(member.value, at: "\(path)/\(name)")
    }
    return converted
  }

  private var name: String {
    switch self {
    case .string, .decimal: "string"
    case .bool: "boolean"
    case .int: "integer"
    case .enumeration: "equal to one of the allowed values"
    case .list: "array"
    case .object: "object"
    case .any: "any value"
    }
  }

  private static func mismatch(_ path: String, _ expected: String) -> IdentityError {
    .invalidBody("\(path.prefix(200)) must be \(expected)")
  }

  private static func camelCase(_ name: String) -> String {
    guard name.utf8.contains(UInt8(ascii: "_")) else { return name }
    let words = name.split(separator: "_")
    guard let first = words.first else { return name }
    return words.dropFirst().reduce(String(first)) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
  }
}
