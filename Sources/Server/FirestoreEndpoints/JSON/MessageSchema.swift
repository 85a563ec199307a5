// The fields of Firestore's messages, as far as JSON needs them. A test compares the tables with the .proto files.

/// The fields of one message.
final class MessageSchema: Sendable {
  /// The type of a field.
  indirect enum Kind: Sendable {
    case int32, int64, double, bool, string, bytes
    /// google.protobuf.NullValue: null in JSON.
    case null
    case timestamp, duration
    /// google.protobuf.Struct: any JSON object.
    case structure
    /// google.protobuf.Int32Value and similar types: an optional value, without an object in JSON.
    case wrapped(Kind)
    case enumeration(EnumerationName)
    case message(MessageName)
    case list(Kind)
    /// A map from strings to values.
    case map(Kind)
  }

  /// A field.
  struct Field: Sendable {
    let number: Int
    /// The name in the .proto file, which JSON may use as well.
    let name: String
    /// The name in JSON: lowerCamelCase.
    let jsonName: String
    let kind: Kind
    /// The group of alternatives that the field belongs to.
    let oneof: String?

    init(_ number: Int, _ name: String, _ kind: Kind, in oneof: String? = nil) {
      self.number = number
      self.name = name
      self.kind = kind
      self.oneof = oneof
      var camel = ""
      for (index, word) in name.split(separator: "_").enumerated() {
        camel += index == 0 ? String(word) : word.prefix(1).uppercased() + word.dropFirst()
      }
      jsonName = camel
    }
  }

  let name: MessageName
  let fields: [Field]
  private let indexByName: [String: Int]
  private let indexByNumber: [Int: Int]

  private init(_ name: MessageName) {
    self.name = name
    fields = name.requestFields ?? name.responseFields ?? name.queryFields ?? name.embeddedMessageFields ?? []
    var byName: [String: Int] = [:]
    var byNumber: [Int: Int] = [:]
    for (index, field) in fields.enumerated() {
      byName[field.name] = index
      byName[field.jsonName] = index
      byNumber[field.number] = index
    }
    indexByName = byName
    indexByNumber = byNumber
  }

  private static let all = Dictionary(
    uniqueKeysWithValues: MessageName.allCases.map { ($0, MessageSchema($0)) })

  /// Returns the fields of a message.
  static func of(_ name: MessageName) -> MessageSchema { all[name] ?? MessageSchema(name) }

  /// Returns the index of a field by either name.
  func index(ofName name: String) -> Int? { indexByName[name] }

  /// Returns the field with a number.
  func field(_ number: Int) -> Field? { indexByNumber[number].map { fields[$0] } }
}

extension MessageSchema.Kind {
  /// The name of the type in errors.
  var description: String {
    switch self {
    case .int32: "TYPE_INT32"
    case .int64: "TYPE_INT64"
    case .double: "TYPE_DOUBLE"
    case .bool: "TYPE_BOOL"
    case .string: "TYPE_STRING"
    case .bytes: "TYPE_BYTES"
    case .null: "type.googleapis.com/google.protobuf.NullValue"
    case .timestamp: "type.googleapis.com/google.protobuf.Timestamp"
    case .duration: "type.googleapis.com/google.protobuf.Duration"
    case .structure: "type.googleapis.com/google.protobuf.Struct"
    case .wrapped(let kind): kind.description
    case .enumeration(let name): "type.googleapis.com/\(name.rawValue)"
    case .message(let name): "type.googleapis.com/\(name.rawValue)"
    case .list(let kind): kind.description
    case .map: "map"
    }
  }
}
