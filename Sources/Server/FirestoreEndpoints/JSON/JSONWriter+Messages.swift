// Converts messages from wire format to JSON: set fields, in the order of the wire.

import FirestoreModel
import FirestoreWire
import JSON
import RealtimeModel

extension JSONWriter {
  /// Writes a message as an object.
  mutating func message(_ message: ProtobufReader, _ schema: MessageSchema) throws(FirestoreError) {
    var reader = message
    var open: Int?
    beginObject()
    while let tag = try reader.nextTag() {
      guard let field = schema.field(tag.field) else {
        try reader.skip(tag)
        continue
      }
      if open != field.number {
        close(open, schema)
        key(field.jsonName)
        open = begin(field)
      }
      try value(field.kind, tag, &reader)
    }
    close(open, schema)
    endObject()
  }

  /// Opens the array or object of a repeated field, and returns its number.
  private mutating func begin(_ field: MessageSchema.Field) -> Int? {
    switch field.kind {
    case .list: beginArray()
    case .map: beginObject()
    default: return nil
    }
    return field.number
  }

  private mutating func close(_ number: Int?, _ schema: MessageSchema) {
    guard let number, let field = schema.field(number) else { return }
    if case .map = field.kind { endObject() } else { endArray() }
  }

  private mutating func value(
    _ kind: MessageSchema.Kind, _ tag: ProtobufReader.Tag, _ reader: inout ProtobufReader
  ) throws(FirestoreError) {
    switch kind {
    case .int32: int(Int64(try reader.int32(tag)))
    case .int64: string(String(Int64(bitPattern: try reader.varint(tag))))
    case .double: number(try reader.double(tag))
    case .bool: bool(try reader.varint(tag) != 0)
    case .string: string(try reader.string(tag))
    case .bytes: string(Base64.encode(try reader.bytes(tag)))
    case .null:
      _ = try reader.varint(tag)
      null()
    case .timestamp:
      var nested = try reader.message(tag)
      string(try nested.timestamp().rfc3339)
    case .duration:
      var nested = try reader.message(tag)
      let time = try nested.timestamp()
      string("\(time.seconds)\(Timestamp.fraction(time.nanoseconds))s")
    case .structure: try structure(try reader.message(tag))
    case .wrapped(let inner):
      var nested = try reader.message(tag)
      try wrapped(inner, &nested)
    case .enumeration(let name):
      let number = try reader.int32(tag)
      if let value = name.values.first(where: { $0.number == number }) {
        string(value.name)
      } else {
        int(Int64(number))
      }
    case .message(let name): try message(try reader.message(tag), MessageSchema.of(name))
    case .list(let element): try self.element(element, tag, &reader)
    case .map(let element):
      var entry = try reader.message(tag)
      try self.entry(element, &entry)
    }
  }

  /// Writes an element of a list, or all numbers of a list in protobuf's `packed` encoding.
  private mutating func element(
    _ kind: MessageSchema.Kind, _ tag: ProtobufReader.Tag, _ reader: inout ProtobufReader
  ) throws(FirestoreError) {
    guard case .int32 = kind, tag.type == .bytes else { return try value(kind, tag, &reader) }
    var packed = try reader.message(tag)
    while !packed.isAtEnd { int(Int64(Int32(truncatingIfNeeded: try packed.varint()))) }
  }

  private mutating func entry(
    _ kind: MessageSchema.Kind, _ reader: inout ProtobufReader
  ) throws(FirestoreError) {
    var name = ""
    var hasValue = false
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1: name = try reader.string(tag)
      case 2:
        hasValue = true
        key(name)
        try value(kind, tag, &reader)
      default: try reader.skip(tag)
      }
    }
    if !hasValue {
      // This server omits the value of a map entry only if it is an empty string.
      key(name)
      string("")
    }
  }

  private mutating func wrapped(
    _ kind: MessageSchema.Kind, _ reader: inout ProtobufReader
  ) throws(FirestoreError) {
    guard let tag = try reader.nextTag() else {
      if case .int64 = kind { string("0") } else { int(0) }
      return
    }
    try value(kind, tag, &reader)
  }

  /// Writes a double. JSON has no literals for NaN and infinities.
  private mutating func number(_ value: Double) {
    if value.isNaN {
      string("NaN")
    } else if value.isInfinite {
      string(value < 0 ? "-Infinity" : "Infinity")
    } else if value == 0, value.sign == .minus {
      raw(Array("-0.0".utf8))
    } else {
      double(value)
    }
  }

  /// Writes a google.protobuf.Struct.
  private mutating func structure(_ message: ProtobufReader) throws(FirestoreError) {
    var reader = message
    beginObject()
    while let tag = try reader.nextTag() {
      var entry = try reader.message(tag)
      while let tag = try entry.nextTag() {
        switch tag.field {
        case 1: key(try entry.string(tag))
        case 2: try structureValue(try entry.message(tag))
        default: try entry.skip(tag)
        }
      }
    }
    endObject()
  }

  /// Writes a google.protobuf.Value.
  private mutating func structureValue(_ message: ProtobufReader) throws(FirestoreError) {
    var reader = message
    guard let tag = try reader.nextTag() else { return null() }
    switch tag.field {
    case 2: number(try reader.double(tag))
    case 3: string(try reader.string(tag))
    case 4: bool(try reader.varint(tag) != 0)
    case 5: try structure(try reader.message(tag))
    case 6:
      var list = try reader.message(tag)
      beginArray()
      while let tag = try list.nextTag() { try structureValue(try list.message(tag)) }
      endArray()
    default: null()
    }
  }
}
