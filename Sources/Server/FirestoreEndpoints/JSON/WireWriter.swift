// Writes protobuf's wire format front to back. The length of a message precedes it, so lengths are recorded and
// inserted at the end. A nested message is thereby copied once, instead of once per nesting level.

package import NIOCore

/// Writes fields in protobuf's wire format to a buffer.
package struct WireWriter {
  private struct LengthPrefix {
    /// The offset at which the length is inserted.
    var offset: UInt32
    var length: UInt32 = 0
  }

  /// A message that was begun and has not ended.
  package struct OpenMessage {
    fileprivate var prefix: Int
    fileprivate var lengthBytes: Int
  }

  private var bytes: [UInt8] = []
  private var lengthPrefixes: [LengthPrefix] = []
  /// The size of all recorded lengths, in bytes.
  private var lengthBytes = 0

  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  package mutating func varint(_ number: Int, _ value: UInt64) {
    raw(UInt64(number) << 3)
    raw(value)
  }

  package mutating func double(_ number: Int, _ value: Double) {
    raw(UInt64(number) << 3 | 1)
    withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
  }

  package mutating func bytes(_ number: Int, _ value: [UInt8]) {
    raw(UInt64(number) << 3 | 2)
    raw(UInt64(value.count))
    bytes.append(contentsOf: value)
  }

  package mutating func string(_ number: Int, _ value: String) {
    raw(UInt64(number) << 3 | 2)
    raw(UInt64(value.utf8.count))
    bytes.append(contentsOf: value.utf8)
  }

  /// Begins a message. Messages must be ended in reverse order.
  package mutating func begin(_ number: Int) -> OpenMessage {
    raw(UInt64(number) << 3 | 2)
    lengthPrefixes.append(LengthPrefix(offset: UInt32(truncatingIfNeeded: bytes.count)))
    return OpenMessage(prefix: lengthPrefixes.count - 1, lengthBytes: lengthBytes)
  }

  package mutating func end(_ open: OpenMessage) {
    let length = bytes.count - Int(lengthPrefixes[open.prefix].offset) + (lengthBytes - open.lengthBytes)
    lengthPrefixes[open.prefix].length = UInt32(truncatingIfNeeded: length)
    lengthBytes += Self.size(UInt64(length))
  }

  /// Begins a group, protobuf's old form of a nested message.
  package mutating func startGroup(_ number: Int) { raw(UInt64(number) << 3 | 3) }

  package mutating func endGroup(_ number: Int) { raw(UInt64(number) << 3 | 4) }

  /// The size of the complete message, in bytes.
  package var count: Int { bytes.count + lengthBytes }

  /// Passes the complete message to `body` in chunks, without copying it.
  package func forEachChunk(_ body: (ArraySlice<UInt8>) throws -> Void) rethrows {
    var start = 0
    var length: [UInt8] = []
    for prefix in lengthPrefixes {
      if start < prefix.offset { try body(bytes[start..<Int(prefix.offset)]) }
      start = Int(prefix.offset)
      length.removeAll(keepingCapacity: true)
      Self.append(UInt64(prefix.length), to: &length)
      try body(length[...])
    }
    try body(bytes[start...])
  }

  /// Returns the complete message.
  package func finish() -> ByteBuffer {
    var buffer = ByteBufferAllocator().buffer(capacity: bytes.count + lengthBytes)
    var start = 0
    for prefix in lengthPrefixes {
      buffer.writeBytes(bytes[start..<Int(prefix.offset)])
      buffer.writeVarint(UInt64(prefix.length))
      start = Int(prefix.offset)
    }
    buffer.writeBytes(bytes[start...])
    return buffer
  }

  private mutating func raw(_ value: UInt64) { Self.append(value, to: &bytes) }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  private static func size(_ value: UInt64) -> Int { max(1, (70 - value.leadingZeroBitCount) / 7) }
}
