// Writes JSON as bytes. The writer inserts commas and colons.
//
// Invariant: reading the text gives the same values. Integers are exact. A double has its shortest form that reads back
// as the same double. Strings are UTF-8 with only the escapes that JSON requires.

/// Writes one JSON text token by token.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.beginObject()
/// writer.key("r")
/// writer.int(7)
/// writer.endObject()
/// // writer.bytes is {"r":7}
/// ```
public struct JSONWriter: Sendable {
  @usableFromInline var buffer: [UInt8]
  @usableFromInline let pretty: Bool
  @usableFromInline var depth = 0
  /// Whether the next value or key needs a comma before it.
  @usableFromInline var needsComma = false
  /// Whether the last key has no value yet.
  @usableFromInline var afterKey = false

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - pretty: whether to write one member a line, with two spaces a level and a space on both sides of the colon, as
  ///     Firebase does; otherwise without white space.
  ///   - capacity: the number of bytes to reserve.
  public init(pretty: Bool = false, capacity: Int = 256) {
    self.pretty = pretty
    buffer = []
    buffer.reserveCapacity(capacity)
  }

  /// The bytes written so far.
  @inlinable public var bytes: [UInt8] { buffer }

  // MARK: Values

  /// Writes `null`.
  @inlinable public mutating func null() { literal("null") }

  /// Writes `true` or `false`.
  @inlinable public mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

  /// Writes an integer.
  @inlinable public mutating func int(_ value: Int64) {
    separate()
    digits(value)
  }

  /// Writes a number: integers below 2^53 without a fraction, all others in their shortest form. Infinity and NaN,
  /// which JSON cannot express, become `null`.
  @inlinable public mutating func double(_ value: Double) {
    guard value.isFinite else { return null() }
    separate()
    if abs(value) < 0x1p53, let whole = Int64(exactly: value) { return digits(whole) }
    buffer.append(contentsOf: value.description.utf8)
  }

  /// Writes a string.
  @inlinable public mutating func string(_ value: String) {
    separate()
    quoted(value)
  }

  /// Writes bytes that are an encoded JSON value.
  @inlinable public mutating func raw(_ json: UnsafeRawBufferPointer) {
    separate()
    buffer.append(contentsOf: json)
  }

  /// Writes bytes that are an encoded JSON value.
  @inlinable public mutating func raw(_ json: [UInt8]) {
    separate()
    buffer.append(contentsOf: json)
  }

  /// Writes any value.
  public mutating func write(_ value: JSONValue) {
    switch value {
    case .null: null()
    case .bool(let value): bool(value)
    case .int(let value): int(value)
    case .double(let value): double(value)
    case .string(let value): string(value)
    case .array(let elements):
      beginArray()
      for element in elements { write(element) }
      endArray()
    case .object(let object):
      beginObject()
      for member in object.members {
        key(member.key)
        write(member.value)
      }
      endObject()
    }
  }

  /// Whether the last key has no value yet.
  public var needsValue: Bool { afterKey }

  // MARK: Arrays and objects

  /// Opens an object.
  @inlinable public mutating func beginObject() { open(UInt8(ascii: "{")) }

  /// Closes the innermost object.
  @inlinable public mutating func endObject() { close(UInt8(ascii: "}")) }

  /// Opens an array.
  @inlinable public mutating func beginArray() { open(UInt8(ascii: "[")) }

  /// Closes the innermost array.
  @inlinable public mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes the name of the next member of the innermost object.
  @inlinable public mutating func key(_ name: String) {
    separate()
    quoted(name)
    if pretty {
      buffer.append(contentsOf: [0x20, 0x3A, 0x20])
    } else {
      buffer.append(0x3A)
    }
    needsComma = false
    afterKey = true
  }

  /// Writes a line feed, with which Firebase ends pretty texts.
  public mutating func lineFeed() { buffer.append(0x0A) }

  /// Removes and returns the bytes written since the last call. The text continues after them.
  public mutating func take() -> [UInt8] {
    let taken = buffer
    buffer.removeAll(keepingCapacity: false)
    return taken
  }

  // MARK: Bytes

  @inlinable @inline(__always)
  mutating func separate() {
    if needsComma { buffer.append(0x2C) }
    if pretty, depth > 0, !afterKey { newLine() }
    needsComma = true
    afterKey = false
  }

  @inlinable
  mutating func open(_ byte: UInt8) {
    separate()
    buffer.append(byte)
    depth += 1
    needsComma = false
  }

  @inlinable
  mutating func close(_ byte: UInt8) {
    precondition(depth > 0, "invariant: an end closes an open array or object")
    precondition(!afterKey, "invariant: every key has a value")
    depth -= 1
    if pretty, needsComma { newLine() }
    buffer.append(byte)
    needsComma = true
    afterKey = false
  }

  @usableFromInline
  mutating func newLine() {
    buffer.append(0x0A)
    for _ in 0..<max(depth, 0) { buffer.append(contentsOf: [0x20, 0x20]) }
  }

  @inlinable
  mutating func literal(_ text: StaticString) {
    separate()
    buffer.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  @usableFromInline
  mutating func digits(_ value: Int64) {
    var rest = value.magnitude
    if value < 0 { buffer.append(UInt8(ascii: "-")) }
    if rest < 10 { return buffer.append(UInt8(ascii: "0") + UInt8(rest)) }
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) {
      (space: UnsafeMutableBufferPointer<UInt8>) in
      var index = 20
      while rest > 0 {
        index -= 1
        space[index] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      buffer.append(contentsOf: UnsafeBufferPointer(rebasing: space[index..<20]))
    }
  }

  @usableFromInline
  mutating func quoted(_ text: String) {
    var text = text
    text.withUTF8 { (utf8: UnsafeBufferPointer<UInt8>) in
      buffer.append(UInt8(ascii: "\""))
      var start = 0
      var index = 0
      while index < utf8.count {
        let byte = utf8[index]
        if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
          index += 1
          continue
        }
        buffer.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<index]))
        escape(byte)
        index += 1
        start = index
      }
      buffer.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<utf8.count]))
      buffer.append(UInt8(ascii: "\""))
    }
  }

  private mutating func escape(_ byte: UInt8) {
    buffer.append(UInt8(ascii: "\\"))
    switch byte {
    case 0x08: buffer.append(UInt8(ascii: "b"))
    case 0x09: buffer.append(UInt8(ascii: "t"))
    case 0x0A: buffer.append(UInt8(ascii: "n"))
    case 0x0C: buffer.append(UInt8(ascii: "f"))
    case 0x0D: buffer.append(UInt8(ascii: "r"))
    case 0x22, 0x5C: buffer.append(byte)
    default:
      let digits = Array("0123456789abcdef".utf8)
      buffer.append(contentsOf: [
        UInt8(ascii: "u"), 0x30, 0x30, digits[Int(byte >> 4)], digits[Int(byte & 15)],
      ])
    }
  }
}
