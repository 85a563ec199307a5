// Cuts a stream of bytes into length-prefixed messages: one flag byte, four bytes of length, the message.
//
// Invariants
//   1. However the bytes are split, the same messages come out in the same order.
//   2. A length above the limit is refused when its prefix is read, before any of the message is kept, and an
//      announced length reserves no memory by itself.
//   3. A message that arrived within one buffer is a slice of it: nothing is copied.
//   4. After an error the parser stays in error: a framing error cannot be skipped over.

public import NIOCore

/// An incremental parser of gRPC's length-prefixed messages.
public struct GRPCMessageParser: Sendable {
  /// The default limit for one message, each way: 17 MiB, what genuine clients set.
  public static let defaultMaximumMessageSize = 17 << 20

  /// The number of bytes before every message.
  public static let prefixLength = 5

  /// What there is next.
  enum Frame {
    /// A whole message.
    case message(ByteBuffer)
    /// A whole message, compressed in the encoding that the call's headers name.
    case packed(ByteBuffer)
    /// A message of so many bytes, which is above the limit: neither it nor anything behind it is kept.
    case oversized(Int)
  }

  /// Whether the call's headers name an encoding for messages that are marked as compressed.
  var acceptsPacked = false
  private let maximumMessageSize: Int
  private var pending: ByteBuffer?
  private var failure: GRPCStatus?

  /// Makes a parser that refuses messages of more than `maximumMessageSize` bytes.
  public init(maximumMessageSize: Int = GRPCMessageParser.defaultMaximumMessageSize) {
    self.maximumMessageSize = maximumMessageSize
  }

  /// Whether bytes of a message that is not complete are held.
  public var hasPartialMessage: Bool { pending.map { $0.readableBytes > 0 } ?? false }

  /// The number of bytes held.
  public var bufferedBytes: Int { pending?.readableBytes ?? 0 }

  /// Adds bytes as they arrived.
  public mutating func append(_ bytes: ByteBuffer) {
    guard failure == nil, bytes.readableBytes > 0 else { return }
    guard var held = pending, held.readableBytes > 0 else {
      pending = bytes
      return
    }
    pending = nil  // so that `held` is the only owner and grows in place
    held.discardReadBytes()
    held.writeImmutableBuffer(bytes)
    pending = held
  }

  /// The next whole message, or nil if more bytes are needed.
  /// - Throws: RESOURCE_EXHAUSTED for a message above the limit, INTERNAL for a compressed one, since no encoding was
  ///   agreed upon, and for a flag that gRPC does not define. Every later call throws the same.
  public mutating func next() throws(GRPCStatus) -> ByteBuffer? {
    switch try nextFrame() {
    case .message(let message), .packed(let message): return message
    case .oversized(let length): throw oversized(length)
    case nil: return nil
    }
  }

  /// As ``next()``; tells whether the message is compressed, where the call's headers say how, and once of a message above
  /// the limit.
  mutating func nextFrame() throws(GRPCStatus) -> Frame? {
    if let failure { throw failure }
    guard var held = pending, held.readableBytes >= Self.prefixLength,
      let flag = held.getInteger(at: held.readerIndex, as: UInt8.self),
      let length = held.getInteger(at: held.readerIndex + 1, as: UInt32.self).map(Int.init)
    else { return nil }
    guard flag == 0 || (flag == 1 && acceptsPacked) else {
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
    guard let message = held.readSlice(length: length) else { return nil }
    if held.readableBytes > 0 { pending = held }
    return flag == 1 ? .packed(message) : .message(message)
  }

  private func oversized(_ length: Int) -> GRPCStatus {
    GRPCStatus(
      .resourceExhausted, "A message of \(length) bytes exceeds the limit of \(maximumMessageSize) bytes.")
  }

  private mutating func fail(_ status: GRPCStatus) -> GRPCStatus {
    failure = status
    pending = nil
    return status
  }
}
