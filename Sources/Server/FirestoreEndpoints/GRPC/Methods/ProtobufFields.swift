// Writes protobuf fields directly into a buffer.
//
// Stored documents are already protobuf. A response contains these bytes unchanged.

import FirestoreModel
import NIOCore

extension ByteBuffer {
  /// Writes a base-128 varint.
  mutating func writeVarint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    writeInteger(UInt8(rest))
  }

  /// Writes a length-delimited field.
  mutating func writeField(_ number: Int, _ bytes: [UInt8]) {
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(bytes.count))
    writeBytes(bytes)
  }

  /// Writes a string field; nothing for an empty string, as in proto3.
  mutating func writeField(_ number: Int, _ string: String) {
    guard !string.isEmpty else { return }
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(string.utf8.count))
    writeString(string)
  }

  /// Writes an integer field; nothing for zero, as in proto3.
  mutating func writeField(_ number: Int, _ value: Int) {
    guard value != 0 else { return }
    writeVarint(UInt64(number << 3))
    writeVarint(UInt64(bitPattern: Int64(value)))
  }

  /// Writes a repeated int32 field in the "packed" encoding; nothing without values.
  mutating func writeField(_ number: Int, repeated values: [Int32]) {
    guard !values.isEmpty else { return }
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(values.reduce(0) { $0 + Self.varintSize(Self.bits($1)) }))
    for value in values { writeVarint(Self.bits(value)) }
  }

  /// Writes a google.protobuf.Timestamp field. The epoch is not omitted, in contrast to the number 0.
  mutating func writeField(_ number: Int, _ time: Timestamp) {
    writeMessage(number) { buffer in
      buffer.writeField(1, Int(time.seconds))
      buffer.writeField(2, Int(time.nanoseconds))
    }
  }

  /// Writes a message field. `body` writes the message. Its length is then inserted before it.
  mutating func writeMessage(_ number: Int, _ body: (inout ByteBuffer) -> Void) {
    writeVarint(UInt64(number << 3 | 2))
    let start = writerIndex
    writeInteger(UInt8(0))
    body(&self)
    let length = writerIndex - start - 1
    if length < 0x80 {
      setInteger(UInt8(length), at: start)
    } else if let message = getSlice(at: start + 1, length: length) {
      moveWriterIndex(to: start)
      writeVarint(UInt64(length))
      writeImmutableBuffer(message)
    }
  }

  /// The encoded size in bytes of a length-delimited field with a number below 16.
  static func fieldSize(_ length: Int) -> Int { 1 + varintSize(UInt64(length)) + length }

  /// The encoded size in bytes of a repeated int32 field with a number below 16; 0 without values.
  static func repeatedFieldSize(_ values: [Int32]) -> Int {
    values.isEmpty ? 0 : fieldSize(values.reduce(0) { $0 + varintSize(bits($1)) })
  }

  /// Sign-extends a value, since a negative int32 has ten bytes in protobuf.
  private static func bits(_ value: Int32) -> UInt64 { UInt64(bitPattern: Int64(value)) }

  private static func varintSize(_ value: UInt64) -> Int { max(1, (70 - value.leadingZeroBitCount) / 7) }
}
