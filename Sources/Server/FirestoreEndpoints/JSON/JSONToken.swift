// Converts a scalar from JSON or from a query parameter to a protobuf field.

import FirestoreModel
import JSON
import RealtimeModel

/// One JSON token or query parameter that becomes the value of a field.
struct JSONToken {
  let kind: JSONReader.Kind
  var text = ""
  var number = JSONReader.Number.int(0)
  /// Whether the number has a minus sign. The integer 0 could not represent the sign of -0.
  var isNegative = false
  var bool = false
  private var isParameter = false

  init(kind: JSONReader.Kind) { self.kind = kind }

  /// Creates the token of a query parameter. Its string may represent a number or a boolean.
  init(parameter text: String) {
    kind = .string
    isParameter = true
    self.text = text
  }

  /// Writes the value as a field. Returns false if its type does not match.
  func write(_ kind: MessageSchema.Kind, _ number: Int, to writer: inout WireWriter) -> Bool {
    switch kind {
    case .int32:
      guard let value = integer, let value = Int32(exactly: value) else { return false }
      writer.varint(number, UInt64(bitPattern: Int64(value)))
    case .int64:
      guard let value = integer else { return false }
      writer.varint(number, UInt64(bitPattern: value))
    case .double:
      guard let value = double else { return false }
      writer.double(number, value)
    case .bool:
      let isBoolText = isParameter && (text == "true" || text == "false")
      guard self.kind == .bool || isBoolText else { return false }
      writer.varint(number, bool || isBoolText && text == "true" ? 1 : 0)
    case .string:
      guard self.kind == .string else { return false }
      writer.string(number, text)
    case .bytes:
      guard self.kind == .string, let value = Base64.decode(text.utf8, .either, paddedBy: [UInt8(ascii: "=")])
      else { return false }
      writer.bytes(number, value)
    case .null:
      guard self.kind == .null || text == "NULL_VALUE" || self.kind == .number && integer == 0 else {
        return false
      }
      writer.varint(number, 0)
    case .timestamp:
      guard self.kind == .string, let time = Timestamp(rfc3339: text) else { return false }
      let open = writer.begin(number)
      writer.varint(1, UInt64(bitPattern: time.seconds))
      writer.varint(2, UInt64(time.nanoseconds))
      writer.end(open)
    case .enumeration(let name):
      guard let value = enumeration(name) else { return false }
      writer.varint(number, UInt64(bitPattern: Int64(value)))
    case .duration, .structure, .wrapped, .message, .list, .map: return false
    }
    return true
  }

  /// The integer in a number or a string, also with a fraction or an exponent, if the value is integral.
  private var integer: Int64? {
    switch kind {
    case .number:
      switch number {
      case .int(let value): return value
      case .double(let value): return Int64(exactly: value)
      }
    case .string:
      guard Self.isNumber(text) else { return nil }
      return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    default: return nil
    }
  }

  private var double: Double? {
    switch kind {
    case .number:
      switch number {
      case .int(let value): return value == 0 && isNegative ? -0.0 : Double(value)
      case .double(let value): return value == 0 && isNegative ? -0.0 : value
      }
    case .string:
      switch text {
      case "NaN": return .nan
      case "Infinity": return .infinity
      case "-Infinity": return -.infinity
      default:
        guard Self.isNumber(text), let value = Double(text), value.isFinite else { return nil }
        return value
      }
    default: return nil
    }
  }

  /// Whether a string looks like a JSON number. Swift's `Double` would also parse hexadecimal numbers and words such as
  /// `inf`.
  private static func isNumber(_ text: String) -> Bool {
    guard let first = text.utf8.first, first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") < 10 else {
      return false
    }
    return text.utf8.allSatisfy {
      $0 &- UInt8(ascii: "0") < 10 || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains($0)
    }
  }

  private func enumeration(_ name: EnumerationName) -> Int32? {
    switch kind {
    case .string: name.values.first { $0.name == text }?.number
    case .number: integer.flatMap { Int32(exactly: $0) }
    default: nil
    }
  }
}
