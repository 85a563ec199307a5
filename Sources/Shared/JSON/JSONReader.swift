// A strict pull reader over the bytes of one JSON text (RFC 8259).
//
// The caller requests the token that it expects: an object's next key, a number, a string. The reader builds nothing
// else, so that messages become requests and nodes without an intermediate value.
//
// Invariant: `offset <= count`, and the reader checks each index against `count` before it reads the byte. The accepted
// part of the text is a prefix of a valid JSON text.
//
// Decision: docs/decisions/0005-own-json-parser.md

/// Reads one JSON text token by token.
///
/// ```swift
/// var reader = try JSONReader(unsafeBytes: bytes)
/// try reader.beginObject()
/// while let key = try reader.nextKey() {
///   if key == "p" { path = try reader.readString() } else { try reader.skipValue() }
/// }
/// try reader.finish()
/// ```
public struct JSONReader: ~Copyable {
  /// The kind of a value.
  public enum Kind: Sendable, Equatable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool
    /// A number.
    case number
    /// A string.
    case string
    /// An array.
    case array
    /// An object.
    case object
  }

  /// A number. It is an integer if it has neither fraction nor exponent and fits 64 bits.
  public enum Number: Sendable, Equatable {
    /// An integer of 64 bits.
    case int(Int64)
    /// Any other finite number.
    case double(Double)
  }

  @usableFromInline let base: UnsafePointer<UInt8>
  @usableFromInline let count: Int
  @usableFromInline var position = 0
  @usableFromInline var openCount = 0
  @usableFromInline let limits: JSONLimits
  /// Whether the innermost array or object was opened, but none of its members or elements was read yet.
  @usableFromInline var isFirst = false

  /// The base address of an empty text.
  private static let emptyText: StaticString = ""

  /// Creates a reader at the start of a text.
  ///
  /// - Parameters:
  ///   - bytes: the text, which must outlive the reader.
  ///   - limits: the limits of the text.
  /// - Throws: ``JSONError/Code/tooLarge`` if the text has more bytes than `limits` allows.
  public init(unsafeBytes bytes: UnsafeRawBufferPointer, limits: JSONLimits = .standard) throws(JSONError) {
    guard bytes.count <= limits.bytes else { throw JSONError(.tooLarge, at: limits.bytes) }
    self.base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? Self.emptyText.utf8Start
    self.count = bytes.count
    self.limits = limits
  }

  /// The offset of the next byte.
  @inlinable public var offset: Int { position }

  /// The number of open arrays and objects.
  @inlinable public var depth: Int { openCount }

  // MARK: Bytes

  /// The next byte that is not white space. It is not consumed.
  @inlinable @inline(__always)
  mutating func peek() throws(JSONError) -> UInt8 {
    while position < count {
      let byte = base[position]
      if byte > 0x20 { return byte }
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else {
        throw JSONError(.unexpectedByte, at: position)
      }
      position += 1
    }
    throw JSONError(.unexpectedEnd, at: count)
  }

  /// Consumes white space, then `byte` if it comes next. The end of the text is not an error.
  ///
  /// For texts that contain more than JSON, such as a query parameter `value,"key"`.
  public mutating func consume(_ byte: UInt8) throws(JSONError) -> Bool {
    guard try !isAtEnd(), try peek() == byte else { return false }
    position += 1
    return true
  }

  /// Whether only white space remains.
  @inlinable public mutating func isAtEnd() throws(JSONError) -> Bool {
    while position < count {
      let byte = base[position]
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return false }
      position += 1
    }
    return true
  }

  /// Ends the text.
  ///
  /// - Throws: ``JSONError/Code/trailingBytes`` if anything except white space remains.
  @inlinable public mutating func finish() throws(JSONError) {
    guard try isAtEnd() else { throw JSONError(.trailingBytes, at: position) }
  }

  /// Returns to an offset that ``offset`` had directly before a value at the same depth.
  @inlinable public mutating func rewind(to offset: Int) {
    position = min(max(offset, 0), count)
    isFirst = false
  }

  // MARK: Values

  /// The kind of the next value. The value is not consumed.
  @inlinable public mutating func peekKind() throws(JSONError) -> Kind {
    switch try peek() {
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
    case UInt8(ascii: "n"): return .null
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
    default: throw JSONError(.unexpectedByte, at: position)
    }
  }

  /// Reads `null`.
  @inlinable public mutating func readNull() throws(JSONError) {
    try expect(.null)
    try literal("null")
  }

  /// Reads `true` or `false`.
  @inlinable public mutating func readBool() throws(JSONError) -> Bool {
    try expect(.bool)
    if base[position] == UInt8(ascii: "t") {
      try literal("true")
      return true
    }
    try literal("false")
    return false
  }

  /// Reads a string.
  @inlinable public mutating func readString() throws(JSONError) -> String {
    try expect(.string)
    isFirst = false
    position += 1
    return try stringBody()
  }

  /// Reads a number.
  @inlinable public mutating func readNumber() throws(JSONError) -> Number {
    try expect(.number)
    isFirst = false
    return try numberBody()
  }

  @inlinable @inline(__always)
  mutating func expect(_ kind: Kind) throws(JSONError) {
    guard try peekKind() == kind else { throw JSONError(.unexpectedType, at: position) }
  }

  @inlinable @inline(__always)
  mutating func literal(_ text: StaticString) throws(JSONError) {
    let length = text.utf8CodeUnitCount
    for index in 0..<length {
      guard position + index < count else { throw JSONError(.unexpectedEnd, at: count) }
      guard base[position + index] == text.utf8Start[index] else {
        throw JSONError(.unexpectedByte, at: position + index)
      }
    }
    position += length
    isFirst = false
  }

  // MARK: Arrays and objects

  /// Opens an object; read it with ``nextKey()``.
  @inlinable public mutating func beginObject() throws(JSONError) {
    try expect(.object)
    try open()
  }

  /// Opens an array; read it with ``nextElement()``.
  @inlinable public mutating func beginArray() throws(JSONError) {
    try expect(.array)
    try open()
  }

  /// Reads the innermost object's next key and the colon after it; `nil` at the end of the object.
  ///
  /// The caller must then read or skip the value. Repeated names are returned repeatedly.
  @inlinable public mutating func nextKey() throws(JSONError) -> String? {
    guard try next(before: UInt8(ascii: "}")) else { return nil }
    guard try peek() == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: position) }
    position += 1
    let key = try stringBody()
    guard try peek() == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: position) }
    position += 1
    return key
  }

  /// Whether the innermost array has another element. The caller must then read or skip it.
  @inlinable public mutating func nextElement() throws(JSONError) -> Bool {
    try next(before: UInt8(ascii: "]"))
  }

  @inlinable @inline(__always)
  mutating func open() throws(JSONError) {
    guard openCount < limits.depth else { throw JSONError(.tooDeep, at: position) }
    position += 1
    openCount += 1
    isFirst = true
  }

  /// Consumes the comma before the next member; consumes the closing byte and returns `false` at the end.
  @inlinable @inline(__always)
  mutating func next(before closing: UInt8) throws(JSONError) -> Bool {
    let byte = try peek()
    if byte == closing {
      position += 1
      assert(openCount > 0, "invariant: a closing byte ends an open array or object")
      openCount -= 1
      isFirst = false
      return false
    }
    if isFirst {
      isFirst = false
    } else {
      guard byte == UInt8(ascii: ",") else { throw JSONError(.unexpectedByte, at: position) }
      position += 1
      // Reading the value fails for a comma directly before the closing byte.
    }
    return true
  }

  // MARK: Complete values

  /// Reads any value.
  public mutating func readValue() throws(JSONError) -> JSONValue {
    switch try peekKind() {
    case .null:
      try literal("null")
      return .null
    case .bool:
      return .bool(try readBool())
    case .number:
      switch try readNumber() {
      case .int(let value): return .int(value)
      case .double(let value): return .double(value)
      }
    case .string:
      return .string(try readString())
    case .array:
      try open()
      var elements: [JSONValue] = []
      while try nextElement() { elements.append(try readValue()) }
      return .array(elements)
    case .object:
      try open()
      var object = JSONObject()
      while let key = try nextKey() { object[key] = try readValue() }
      return .object(object)
    }
  }

  /// Skips and validates any value.
  ///
  /// - Returns: the range of its bytes.
  @discardableResult
  public mutating func skipValue() throws(JSONError) -> Range<Int> {
    let kind = try peekKind()
    let start = position
    switch kind {
    case .null: try literal("null")
    case .bool: _ = try readBool()
    case .number: _ = try readNumber()
    case .string:
      isFirst = false
      position += 1
      try skipStringBody()
    case .array:
      try open()
      while try nextElement() { try skipValue() }
    case .object:
      try open()
      while try skipKey() { try skipValue() }
    }
    return start..<position
  }

  private mutating func skipKey() throws(JSONError) -> Bool {
    guard try next(before: UInt8(ascii: "}")) else { return false }
    guard try peek() == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: position) }
    position += 1
    try skipStringBody()
    guard try peek() == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: position) }
    position += 1
    return true
  }

  // MARK: Errors

  /// The offset of the opening quote of a key.
  ///
  /// - Parameter valueStart: the offset directly after the key's colon.
  package func keyStart(before valueStart: Int) -> Int {
    var index = valueStart - 1
    while index > 0, base[index] != UInt8(ascii: "\"") { index -= 1 }
    index -= 1
    while index > 0 {
      if base[index] == UInt8(ascii: "\"") {
        var slashes = 0
        while index - slashes > 0, base[index - slashes - 1] == UInt8(ascii: "\\") { slashes += 1 }
        if slashes.isMultiple(of: 2) { break }
      }
      index -= 1
    }
    return max(index, 0)
  }
}
