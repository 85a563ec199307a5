// Parses a stream of bytes into length-prefixed messages: one flag byte, four bytes of length, the message.
//
// Invariants
//   1. The split of the bytes into buffers does not affect the messages and their order.
//   2. A length above the limit is rejected as soon as its prefix is read, before any of the message is buffered. An
//      announced length reserves no memory.
//   3. A message within one buffer is a slice of that buffer, without a copy.
//   4. After an error, every call fails: framing errors are not recoverable.

public import NIOCore

/// An incremental parser of gRPC's length-prefixed messages.
public struct GRPCMessageParser: Sendable {
  /// The default maximum bytes of a message in each direction: 17 MiB, the limit of the official clients.
  public static let defaultMaximumMessageSize = 17 << 20

  /// The number of bytes before every message.
  public static let prefixLength = 5

  /// The next frame.
  enum Frame {
    /// An uncompressed message.
    case message(ByteBuffer)
    /// A message, compressed with the encoding in the call's headers.
    case compressed(ByteBuffer)
    /// A message over the limit, with its announced bytes. All further input is discarded.
    case oversized(Int)
  }

  /// Whether the call's headers name an encoding for compressed messages.
  var acceptsCompressed = false
  private let maximumMessageSize: Int
  private var pending: ByteBuffer?
  private var failure: GRPCStatus?

  /// Creates a parser that rejects messages of more than `maximumMessageSize` bytes.
  public init(maximumMessageSize: Int = GRPCMessageParser.defaultMaximumMessageSize) {
    self.maximumMessageSize = maximumMessageSize
  }

  /// Whether bytes of an incomplete message are buffered.
  public var hasPartialMessage: Bool { pending.map { $0.readableBytes > 0 } ?? false }

  /// The number of buffered bytes.
  public var bufferedBytes: Int { pending?.readableBytes ?? 0 }

  /// Appends received bytes.
  public mutating func append(_ bytes: ByteBuffer) {
    guard failure == nil, bytes.readableBytes > 0 else { return }
    guard var held = pending, held.readableBytes > 0 else {
      pending = bytes
      return
    }
    pending = nil  // `held` is then the only owner and grows in place.
    held.discardReadBytes()
    held.writeImmutableBuffer(bytes)
    pending = held
  }

  /// The next message; nil if more bytes are needed.
  ///
  /// - Throws: RESOURCE_EXHAUSTED for a message over the limit; INTERNAL for a compressed message without a negotiated
  ///   encoding, and for an undefined flag. Every later call throws the same error.
  public mutating func next() throws(GRPCStatus) -> ByteBuffer? {
    switch try nextFrame() {
    case .message(let message), .compressed(let message): return message
    case .oversized(let length): throw oversized(length)
    case nil: return nil
    }
  }

  /// As ``next()``, but distinguishes compressed messages if the call's headers name an encoding, and reports a message
  /// over the limit once before it throws.
  mutating func nextFrame() throws(GRPCStatus) -> Frame? {
    if let failure { throw failure }
    guard var held = pending, held.readableBytes >= Self.prefixLength,
      let flag = held.getInteger(at: held.readerIndex, as: UInt8.self),
      let length = held.getInteger(at: held.readerIndex + 1, as: UInt32.self).map(Int.init)
    else { return nil }
    guard flag == 0 || (flag == 1 && acceptsCompressed) else {
      throw fail(
        GRPCStatus(
          .internal,
          flag == 1
            ? "The message is compressed, and the call names no encoding (grpc-encoding)."
            : "The message has the flag byte \(flag), which gRPC does not define."))
    }
    guard length <= maximumMessageSize else {
      _ = fail(oversized(length))
      return .oversized(length)
    }
    guard held.readableBytes - Self.prefixLength >= length else { return nil }
    pending = nil
    held.moveReaderIndex(forwardBy: Self.prefixLength)
    guard let message = held.readSlice(length: length) else {
      preconditionFailure("invariant: the buffer holds the message that was checked")
    }
    if held.readableBytes > 0 { pending = held }
    return flag == 1 ? .compressed(message) : .message(message)
  }

  private func oversized(_ length: Int) -> GRPCStatus {
    GRPCStatus(
      .resourceExhausted, "A message of \(length) bytes exceeds the limit of \(maximumMessageSize) bytes.")
  }

  private mutating func fail(_ status: GRPCStatus) -> GRPCStatus {
    precondition(failure == nil, "invariant: the parser fails once")
    failure = status
    pending = nil
    return status
  }
}
