// Protobuf fields written straight into a buffer, so that stored documents, which lie in wire form already, are
// spliced into answers without being decoded.

import FirestoreModel
import NIOCore

extension ByteBuffer {
  mutating func writeVarint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    writeInteger(UInt8(rest))
  }

  /// A length-delimited field.
  mutating func writeField(_ number: Int, _ bytes: [UInt8]) {
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(bytes.count))
    writeBytes(bytes)
  }

  /// A string field; nothing if it is empty, as proto3 has it.
  mutating func writeField(_ number: Int, _ text: String) {
    guard !text.isEmpty else { return }
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(text.utf8.count))
    writeString(text)
  }

  /// An integer field; nothing if it is zero.
  mutating func writeField(_ number: Int, _ value: Int) {
    guard value != 0 else { return }
    writeVarint(UInt64(number << 3))
    writeVarint(UInt64(bitPattern: Int64(value)))
  }

  /// A packed repeated int32 field; nothing if there are none.
  mutating func writeField(_ number: Int, packed values: [Int32]) {
    guard !values.isEmpty else { return }
    writeVarint(UInt64(number << 3 | 2))
    writeVarint(UInt64(values.reduce(0) { $0 + Self.varintSize(Self.bits($1)) }))
    for value in values { writeVarint(Self.bits(value)) }
  }

  /// A google.protobuf.Timestamp field, present also at the epoch.
  mutating func writeField(_ number: Int, _ time: Timestamp) {
    writeMessage(number) { buffer in
      buffer.writeField(1, Int(time.seconds))
      buffer.writeField(2, Int(time.nanoseconds))
    }
  }

  /// A message field. `body` writes the message; its length is put before it afterwards.
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

  /// The size of a length-delimited field with a number below 16.
  static func fieldSize(_ length: Int) -> Int { 1 + varintSize(UInt64(length)) + length }

  /// The size of a packed field with a number below 16; 0 if it is left out.
  static func packedSize(_ values: [Int32]) -> Int {
    values.isEmpty ? 0 : fieldSize(values.reduce(0) { $0 + varintSize(bits($1)) })
  }

  /// Negative numbers take ten bytes, as int32 has it.
  private static func bits(_ value: Int32) -> UInt64 { UInt64(bitPattern: Int64(value)) }

  private static func varintSize(_ value: UInt64) -> Int { max(1, (70 - value.leadingZeroBitCount) / 7) }
}
