// What a message of the API consists of, as far as its JSON needs it: the tables say what the .proto files say, and a test
// compares the two.

/// The fields of one message.
final class MessageShape: Sendable {
  /// What a field holds.
  indirect enum Kind: Sendable {
    case int32, int64, double, bool, string, bytes
    /// google.protobuf.NullValue: JSON's null.
    case null
    case timestamp, duration
    /// google.protobuf.Struct: any object.
    case structure
    /// google.protobuf.Int32Value and its like: a value that may be absent, bare in JSON.
    case wrapped(Kind)
    case enumeration(EnumerationName)
    case message(MessageName)
    case list(Kind)
    /// From text to something.
    case map(Kind)
  }

  /// One field.
  struct Field: Sendable {
    let number: Int
    /// As in the .proto files, and as JSON may have it.
    let name: String
    /// As JSON has it by default.
    let jsonName: String
    let kind: Kind
    /// The group of fields of which one may be set.
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
    fields = name.requestFields ?? name.answerFields ?? name.queryFields ?? name.partFields ?? []
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
    uniqueKeysWithValues: MessageName.allCases.map { ($0, MessageShape($0)) })

  /// The shape of a message.
  static func of(_ name: MessageName) -> MessageShape { all[name] ?? MessageShape(name) }

  /// The index of a field by either of its names.
  func index(ofName name: String) -> Int? { indexByName[name] }

  /// The field with a number.
  func field(_ number: Int) -> Field? { indexByNumber[number].map { fields[$0] } }
}

extension MessageShape.Kind {
  /// What an error calls the kind.
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
