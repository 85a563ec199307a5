// Puts incoming text frames together to messages, for both ends.
//
// A frame that is a short decimal number, when nothing is being assembled, announces that many
// pieces; `0` is a client's sign of life; anything else is a message. Invariants: nothing is
// reserved on the word of a peer, only what has arrived is kept; a message beyond the limit is
// counted to its end without being kept, so that its request can still be answered.

/// The state of receiving messages on one connection.
public struct MessageAssembler: Sendable {
  /// What a frame amounts to.
  public enum Received: Sendable, Equatable {
    /// Nothing yet: a sign of life, a count, or a piece that is not the last.
    case nothing
    /// The frame itself is a message.
    case message
    /// The frame was the last piece of this message.
    case assembled([UInt8])
    /// The frame ended a message that is too large, with this number if it is a request that can be told.
    case oversized(request: Int64?)
  }

  /// The most bytes a message put together from pieces may have.
  public let maximumBytes: Int

  private enum State: Sendable {
    case idle
    case assembling(remaining: Int, bytes: [UInt8])
    case discarding(remaining: Int, number: RequestNumberScanner)
  }

  private var state = State.idle

  /// Creates a receiver of messages up to `maximumBytes`.
  public init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

  /// The bytes that are kept of a message that is not whole.
  public var heldBytes: Int {
    switch state {
    case .idle, .discarding: 0
    case .assembling(_, let bytes): bytes.count
    }
  }

  /// Takes the payload of one text frame.
  public mutating func receive(_ frame: UnsafeRawBufferPointer) -> Received {
    // Taken out of `self`, so that appending to the bytes does not copy them.
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
    if bytes.count + frame.count > maximumBytes {
      var number = RequestNumberScanner()
      bytes.withUnsafeBytes { number.scan($0) }
      return discard(frame, number, remaining: remaining)
    }
    bytes.append(contentsOf: frame)
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
