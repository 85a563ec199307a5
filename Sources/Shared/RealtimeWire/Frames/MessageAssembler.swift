// Assembles messages from incoming text frames, for clients and servers.
//
// Between messages, a frame that is a short decimal number announces the number of frames of the next message. `0` is a
// client's keep-alive. Any other frame is a message by itself.
//
// Invariants
//   1. An announced count reserves no memory; only received bytes are kept.
//   2. The frames of a message over the limit are scanned for the request's number but not kept. The number is needed
//      to respond with an error.

/// The state of receiving messages on one connection.
public struct MessageAssembler: Sendable {
  /// The result of receiving a frame.
  public enum Received: Sendable, Equatable {
    /// No message yet: the frame was a keep-alive, a count, or not the last frame of a message.
    case nothing
    /// The frame itself is a message.
    case message
    /// The frame completed this message.
    case assembled([UInt8])
    /// The frame ended a message over the limit. `request` is its request number, if it is known.
    case oversized(request: Int64?)
  }

  /// The maximum bytes of a message of several frames.
  public let maximumBytes: Int

  private enum State: Sendable {
    case idle
    case assembling(remaining: Int, bytes: [UInt8])
    case discarding(remaining: Int, number: RequestNumberScanner)
  }

  private var state = State.idle

  /// Creates a receiver of messages up to `maximumBytes`.
  public init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

  /// The number of buffered bytes of an incomplete message.
  public var heldBytes: Int {
    switch state {
    case .idle, .discarding: 0
    case .assembling(_, let bytes): bytes.count
    }
  }

  /// Receives the payload of one text frame.
  public mutating func receive(_ frame: UnsafeRawBufferPointer) -> Received {
    // Moves the state out of `self`, so that its bytes have a single owner and appending does not copy them.
    let current = state
    state = .idle
    switch current {
    case .idle:
      if frame.isEmpty { return .nothing }
      guard let count = Self.count(frame) else { return .message }
      if count > MessageSplitter.maximumFrames {
        state = .discarding(remaining: count, number: RequestNumberScanner())
      } else if count > 0 {
        state = .assembling(remaining: count, bytes: [])
      }
      return .nothing
    case .assembling(let remaining, var bytes):
      return add(frame, to: &bytes, remaining: remaining)
    case .discarding(let remaining, let number):
      return discard(frame, number, remaining: remaining)
    }
  }

  private mutating func add(
    _ frame: UnsafeRawBufferPointer, to bytes: inout [UInt8], remaining: Int
  ) -> Received {
    precondition(remaining > 0, "invariant: an incomplete message lacks at least one frame")
    if bytes.count + frame.count > maximumBytes {
      var number = RequestNumberScanner()
      bytes.withUnsafeBytes { number.scan($0) }
      return discard(frame, number, remaining: remaining)
    }
    bytes.append(contentsOf: frame)
    precondition(bytes.count <= maximumBytes, "invariant: a buffered message is within the limit")
    if remaining == 1 { return .assembled(bytes) }
    state = .assembling(remaining: remaining - 1, bytes: bytes)
    return .nothing
  }

  private mutating func discard(
    _ frame: UnsafeRawBufferPointer, _ number: RequestNumberScanner, remaining: Int
  ) -> Received {
    var number = number
    number.scan(frame)
    if remaining == 1 { return .oversized(request: number.value) }
    state = .discarding(remaining: remaining - 1, number: number)
    return .nothing
  }

  /// The number that a frame of one to six decimal digits spells.
  private static func count(_ frame: UnsafeRawBufferPointer) -> Int? {
    guard frame.count <= 6 else { return nil }
    var value = 0
    for byte in frame {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      value = value * 10 + Int(byte - 0x30)
    }
    return value
  }
}
