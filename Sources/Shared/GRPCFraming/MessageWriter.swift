// Writes length-prefixed messages, the inverse of GRPCMessageParser. The prefix depends only on the message, so a
// message for many streams is framed once.

public import NIOCore

extension ByteBuffer {
  /// Appends an uncompressed message with its prefix. `body` writes the message.
  ///
  /// - Throws: errors of `body`, and RESOURCE_EXHAUSTED for a message of 4 GiB or more. The buffer is then unchanged.
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

  /// Appends the prefix of an uncompressed message. The caller must write `length` bytes next.
  public mutating func writeGRPCPrefix(length: UInt32) {
    writeInteger(UInt8(0))
    writeInteger(length)
  }

  /// Appends an uncompressed message with its prefix.
  public mutating func writeGRPCMessage(bytes: some Collection<UInt8>) {
    reserveCapacity(minimumWritableBytes: bytes.count + GRPCMessageParser.prefixLength)
    writeGRPCPrefix(length: UInt32(clamping: bytes.count))
    writeBytes(bytes)
  }
}
