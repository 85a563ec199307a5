// The other direction of MessageParser: the five bytes before a message. What is encoded once for many streams
// is framed once too, since the prefix depends on the message alone.

public import NIOCore

extension ByteBuffer {
  /// Appends a message with its prefix, uncompressed. `body` writes the message itself.
  ///
  /// - Throws: what `body` throws, and RESOURCE_EXHAUSTED if it wrote more than a prefix can name (4 GiB); in both
  ///   cases the buffer is as it was.
  public mutating func writeGRPCMessage<Failure: Error>(
    _ body: (inout ByteBuffer) throws(Failure) -> Void
  ) throws {
    let start = writerIndex
    writeInteger(UInt8(0))
    writeInteger(UInt32(0))
    do {
      try body(&self)
      guard let length = UInt32(exactly: writerIndex - start - GRPCMessageParser.prefixLength) else {
        throw GRPCStatus(.resourceExhausted, "A message must be smaller than 4 GiB.")
      }
      setInteger(length, at: start + 1)
    } catch {
      moveWriterIndex(to: start)
      throw error
    }
  }

  /// Appends the prefix of an uncompressed message of `length` bytes; the caller writes exactly these next.
  public mutating func writeGRPCPrefix(length: UInt32) {
    writeInteger(UInt8(0))
    writeInteger(length)
  }

  /// Appends a message with its prefix, uncompressed.
  public mutating func writeGRPCMessage(bytes: some Collection<UInt8>) {
    reserveCapacity(minimumWritableBytes: bytes.count + GRPCMessageParser.prefixLength)
    writeGRPCPrefix(length: UInt32(clamping: bytes.count))
    writeBytes(bytes)
  }
}
