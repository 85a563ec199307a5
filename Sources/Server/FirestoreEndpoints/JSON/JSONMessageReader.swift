// Converts one JSON message to wire format.
//
// Invariants
//   1. Every error has the path of its field.
//   2. No field, and no group of alternatives (oneof), is set twice.
//   3. Unknown names are errors.

import FirestoreModel
import JSON
import RealtimeModel

/// Reads one JSON message and writes its fields in wire format.
struct JSONMessageReader: ~Copyable {
  private enum Step {
    case field(String)
    /// An element of a repeated field.
    case element(Int)
    /// The value of a map entry. In wire format a map is a list of entries.
    case entry(Int)
  }

  private let bytes: UnsafeRawBufferPointer
  private var reader: JSONReader
  private(set) var writer: WireWriter
  private var path: [Step] = []

  /// Starts at the beginning of the JSON text. The bytes must outlive the reader.
  init(_ bytes: UnsafeRawBufferPointer, _ writer: WireWriter) throws(FirestoreError) {
    self.bytes = bytes
    self.writer = writer
    do {
      reader = try JSONReader(
        unsafeBytes: bytes, limits: JSONLimits(depth: FirestoreJSON.maximumDepth, bytes: bytes.count))
    } catch {
      throw Self.malformed(error)
    }
  }

  /// Throws if anything follows the message.
  mutating func finish() throws(FirestoreError) {
    try json { reader throws(JSONError) in try reader.finish() }
  }

  /// Reads an object as a message.
  mutating func message(_ schema: MessageSchema) throws(FirestoreError) {
    guard try kind() == .object else { throw try invalid(.message(schema.name)) }
    try json { reader throws(JSONError) in try reader.beginObject() }
    var setFieldBits: UInt64 = 0
    var groups: [String] = []
    while let key = try json({ reader throws(JSONError) in try reader.nextKey() }) {
      guard let index = schema.index(ofName: key) else { throw unknown(key) }
      let field = schema.fields[index]
      path.append(.field(field.name))
      if try skipNull(field.kind) {
        path.removeLast()
        continue
      }
      let bit = UInt64(1) << UInt64(index)
      guard setFieldBits & bit == 0 else { throw duplicateField(field.name) }
      setFieldBits |= bit
      if let group = field.oneof {
        guard !groups.contains(group) else { throw conflict(group, field) }
        groups.append(group)
      }
      try value(field.kind, field.number)
      path.removeLast()
    }
  }

  /// Skips a null and returns whether there was one. It means "not set", except in a field of type `google.protobuf.NullValue`.
  private mutating func skipNull(_ kind: MessageSchema.Kind) throws(FirestoreError) -> Bool {
    if case .null = kind { return false }
    guard try self.kind() == .null else { return false }
    try json { reader throws(JSONError) in try reader.readNull() }
    return true
  }

  // MARK: Values

  private mutating func value(_ kind: MessageSchema.Kind, _ number: Int) throws(FirestoreError) {
    switch kind {
    case .list(let element): try list(element, number)
    case .map(let element): try map(element, number)
    case .message(let name):
      let open = writer.begin(number)
      try message(MessageSchema.of(name))
      writer.end(open)
    case .wrapped(let inner):
      let open = writer.begin(number)
      try scalar(inner, 1)
      writer.end(open)
    default: try scalar(kind, number)
    }
  }

  private mutating func list(_ kind: MessageSchema.Kind, _ number: Int) throws(FirestoreError) {
    guard try self.kind() == .array else { throw try invalid(kind) }
    try json { reader throws(JSONError) in try reader.beginArray() }
    var index = 0
    while try json({ reader throws(JSONError) in try reader.nextElement() }) {
      path.append(.element(index))
      try value(kind, number)
      path.removeLast()
      index += 1
    }
  }

  private mutating func map(_ kind: MessageSchema.Kind, _ number: Int) throws(FirestoreError) {
    guard try self.kind() == .object else { throw try invalid(.map(kind)) }
    try json { reader throws(JSONError) in try reader.beginObject() }
    var keys: Set<ByteEqualString> = []
    while let key = try json({ reader throws(JSONError) in try reader.nextKey() }) {
      let index = keys.count
      guard keys.insert(ByteEqualString(key)).inserted else { throw duplicateField(key) }
      path.append(.entry(index))
      let open = writer.begin(number)
      writer.string(1, key)
      try value(kind, 2)
      writer.end(open)
      path.removeLast()
    }
  }

  private mutating func scalar(_ kind: MessageSchema.Kind, _ number: Int) throws(FirestoreError) {
    let start = try nextValueOffset()
    let text: String?
    var token = JSONToken(kind: try self.kind())
    switch token.kind {
    case .string:
      text = try json { reader throws(JSONError) in try reader.readString() }
      token.text = text ?? ""
    case .number:
      token.number = try json { reader throws(JSONError) in try reader.readNumber() }
      token.isNegative = bytes[start] == UInt8(ascii: "-")
    case .bool: token.bool = try json { reader throws(JSONError) in try reader.readBool() }
    case .null: try json { reader throws(JSONError) in try reader.readNull() }
    case .array, .object: throw try invalid(kind)
    }
    guard token.write(kind, number, to: &writer) else { throw invalid(kind, start, token) }
  }

  // MARK: JSON

  private mutating func kind() throws(FirestoreError) -> JSONReader.Kind {
    try json { reader throws(JSONError) in try reader.peekKind() }
  }

  /// The offset of the next value.
  private mutating func nextValueOffset() throws(FirestoreError) -> Int {
    _ = try kind()
    return reader.offset
  }

  private mutating func json<T>(
    _ read: (inout JSONReader) throws(JSONError) -> T
  ) throws(FirestoreError) -> T {
    do throws(JSONError) {
      return try read(&reader)
    } catch {
      throw Self.malformed(error)
    }
  }

  // MARK: Errors

  private static func malformed(_ error: JSONError) -> FirestoreError {
    .invalidPayload("Invalid JSON payload received. The text is no valid JSON: \(error).")
  }

  /// The path of the current field, such as `writes[0].update.fields[2].value`.
  private var fieldPath: String {
    var text = ""
    for step in path {
      switch step {
      case .field(let name): text += (text.isEmpty ? "" : ".") + name
      case .element(let index): text += "[\(index)]"
      case .entry(let index): text += "[\(index)].value"
      }
    }
    return text
  }

  private func unknown(_ key: String) -> FirestoreError {
    let fieldPath = path.isEmpty ? "" : " at '\(self.fieldPath)'"
    return .invalidPayload(
      "Invalid JSON payload received. Unknown name \"\(key.prefix(200))\"\(fieldPath): Cannot find field.",
      at: self.fieldPath)
  }

  private func duplicateField(_ key: String) -> FirestoreError {
    .invalidPayload(
      "Invalid value at '\(fieldPath)', the name \"\(key.prefix(200))\" is already set.", at: fieldPath)
  }

  private func conflict(_ group: String, _ field: MessageSchema.Field) -> FirestoreError {
    let outer = fieldPath.split(separator: ".").dropLast().joined(separator: ".")
    return .invalidPayload(
      "Invalid value at '\(outer)' (oneof), oneof field '\(group)' is already set. Cannot set '\(field.jsonName)'",
      at: outer)
  }

  /// Returns the error for a next value whose type does not match `kind`.
  private mutating func invalid(_ kind: MessageSchema.Kind) throws(FirestoreError) -> FirestoreError {
    let found =
      switch try self.kind() {
      case .array: "Starting an array"
      case .object: "Starting an object"
      default: try rawValueText()
      }
    return .invalidPayload("Invalid value at '\(fieldPath)' (\(kind.description)), \(found)", at: fieldPath)
  }

  private mutating func rawValueText() throws(FirestoreError) -> String {
    let range = try json { reader throws(JSONError) in try reader.skipValue() }
    return String(decoding: bytes[range].prefix(200), as: UTF8.self)
  }

  private func invalid(_ kind: MessageSchema.Kind, _ start: Int, _ token: JSONToken) -> FirestoreError {
    var found = String(decoding: bytes[start..<reader.offset].prefix(200), as: UTF8.self)
    switch kind {
    case .bytes where token.kind == .string: found = "Base64 decoding failed for \(found)"
    case .timestamp where token.kind == .string:
      found += ", Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset."
    default: break
    }
    return .invalidPayload("Invalid value at '\(fieldPath)' (\(kind.description)), \(found)", at: fieldPath)
  }
}

/// A string that is compared by bytes. `String` treats two encodings of a letter as equal.
private struct ByteEqualString: Hashable {
  private let text: String

  init(_ text: String) { self.text = text }

  static func == (a: ByteEqualString, b: ByteEqualString) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
