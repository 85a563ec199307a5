// Reads protobuf's wire format from memory, for messages on hot paths.
//
// Invariant: no read passes `end`, whatever the bytes contain. Every error is INVALID_ARGUMENT.

package import FirestoreModel

/// A cursor over the fields of one message.
public struct ProtobufReader {
  /// The wire type of a field.
  package enum WireType: UInt8 {
    case varint = 0
    case fixed64 = 1
    case bytes = 2
    case groupStart = 3
    case groupEnd = 4
    case fixed32 = 5
  }

  /// A field's number and wire type.
  package struct Tag {
    package let field: Int
    package let type: WireType
  }

  private let buffer: UnsafeRawBufferPointer
  private var position: Int
  private let end: Int

  /// Starts at the beginning of a message. The bytes must outlive the reader.
  public init(_ buffer: UnsafeRawBufferPointer) {
    self.buffer = buffer
    position = 0
    end = buffer.count
  }

  /// Whether the end of the message is reached.
  package var isAtEnd: Bool { position == end }

  private init(_ buffer: UnsafeRawBufferPointer, _ range: Range<Int>) {
    self.buffer = buffer
    position = range.lowerBound
    end = range.upperBound
  }

  /// The maximum nesting depth of unknown groups.
  private static let groupDepth = 100

  static let malformed = FirestoreError.invalidArgument("Request contains a malformed protobuf message.")
  static let invalidUTF8 = FirestoreError.invalidArgument("Request contains text that is not valid UTF-8.")

  /// The next field's tag; nil at the end of the message.
  @inline(__always)
  package mutating func nextTag() throws(FirestoreError) -> Tag? {
    if position == end { return nil }
    let start = position
    let raw = try varint()
    // A tag has at most 32 bits. As in protobuf's own runtimes, it may have at most five bytes, the length of a
    // 32-bit varint.
    guard raw <= UInt32.max, position &- start <= 5, raw >> 3 != 0,
      let type = WireType(rawValue: UInt8(raw & 7))
    else { throw ProtobufReader.malformed }
    return Tag(field: Int(raw >> 3), type: type)
  }

  @inline(__always)
  package mutating func varint() throws(FirestoreError) -> UInt64 {
    if position < end {
      let byte = buffer[position]
      if byte < 0x80 {
        position &+= 1
        return UInt64(byte)
      }
    }
    return try longVarint()
  }

  private mutating func longVarint() throws(FirestoreError) -> UInt64 {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while position < end {
      let byte = buffer[position]
      position &+= 1
      if shift == 63, byte > 1 { break }
      result |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return result }
      shift &+= 7
      if shift > 63 { break }
    }
    throw ProtobufReader.malformed
  }

  mutating func fixed64() throws(FirestoreError) -> UInt64 {
    guard end &- position >= 8 else { throw ProtobufReader.malformed }
    let value = buffer.loadUnaligned(fromByteOffset: position, as: UInt64.self)
    position &+= 8
    return UInt64(littleEndian: value)
  }

  mutating func double() throws(FirestoreError) -> Double { Double(bitPattern: try fixed64()) }

  /// The range of a length-delimited field. The reader skips it.
  @inline(__always)
  private mutating func range() throws(FirestoreError) -> Range<Int> {
    let length = try varint()
    guard length <= UInt64(end &- position) else { throw ProtobufReader.malformed }
    let start = position
    position &+= Int(truncatingIfNeeded: length)
    return start..<position
  }

  /// A reader over a nested message. This reader skips the message.
  @inline(__always)
  mutating func message() throws(FirestoreError) -> ProtobufReader {
    ProtobufReader(buffer, try range())
  }

  mutating func bytes() throws(FirestoreError) -> [UInt8] {
    let range = try range()
    return Array(UnsafeRawBufferPointer(rebasing: buffer[range]))
  }

  mutating func string() throws(FirestoreError) -> String {
    let range = try range()
    guard let text = String(strictUTF8: UnsafeRawBufferPointer(rebasing: buffer[range])) else {
      throw ProtobufReader.invalidUTF8
    }
    return text
  }

  /// Skips an unknown field.
  package mutating func skip(_ tag: Tag) throws(FirestoreError) {
    switch tag.type {
    case .varint: _ = try varint()
    case .fixed64: try advance(8)
    case .fixed32: try advance(4)
    case .bytes: _ = try range()
    case .groupEnd: throw ProtobufReader.malformed
    case .groupStart:
      // Keeps a stack of the open groups instead of recursing. The maximum depth is that of protobuf's own runtimes.
      var open = [tag.field]
      while let last = open.last {
        guard let tag = try nextTag() else { throw ProtobufReader.malformed }
        switch tag.type {
        case .groupStart:
          guard open.count < ProtobufReader.groupDepth else { throw ProtobufReader.malformed }
          open.append(tag.field)
        case .groupEnd:
          guard tag.field == last else { throw ProtobufReader.malformed }
          open.removeLast()
        default: try skip(tag)
        }
      }
    }
  }

  private mutating func advance(_ count: Int) throws(FirestoreError) {
    guard end &- position >= count else { throw ProtobufReader.malformed }
    position &+= count
  }

  /// Checks the wire type of a known field.
  @inline(__always)
  func expect(_ tag: Tag, _ type: WireType) throws(FirestoreError) {
    if tag.type != type { throw ProtobufReader.malformed }
  }
}

// MARK: Known fields

/// The content of a known field, whose wire type must match.
extension ProtobufReader {
  @inline(__always)
  package mutating func message(_ tag: Tag) throws(FirestoreError) -> ProtobufReader {
    try expect(tag, .bytes)
    return try message()
  }

  @inline(__always)
  package mutating func bytes(_ tag: Tag) throws(FirestoreError) -> [UInt8] {
    try expect(tag, .bytes)
    return try bytes()
  }

  @inline(__always)
  package mutating func string(_ tag: Tag) throws(FirestoreError) -> String {
    try expect(tag, .bytes)
    return try string()
  }

  @inline(__always)
  package mutating func varint(_ tag: Tag) throws(FirestoreError) -> UInt64 {
    try expect(tag, .varint)
    return try varint()
  }

  @inline(__always)
  package mutating func double(_ tag: Tag) throws(FirestoreError) -> Double {
    try expect(tag, .fixed64)
    return try double()
  }

  package mutating func int32(_ tag: Tag) throws(FirestoreError) -> Int32 {
    Int32(truncatingIfNeeded: try varint(tag))
  }
}
