// Incoming messages of a session: restores the order of the messages that the client posts. POSTs may arrive reordered
// and repeated; each message is delivered exactly once, in the order of the numbers.
//
// Invariants
//   1. Every number below `nextNumber` was made deliverable once, in order.
//   2. `early` contains only numbers above `nextNumber`, within `maximumGap`.

import NIOCore

/// The reorder buffer of a forward channel.
struct IncomingMessages {
  private let limits: WebChannelLimits
  /// The lowest number that has not arrived.
  private var nextNumber = 0
  /// Messages that arrived before a message with a lower number.
  private var early: [Int: ByteBuffer?] = [:]
  /// Messages that the stream can receive now.
  private var deliverable = CircularBuffer<ByteBuffer>()
  /// Bytes of all buffered messages, with their overhead.
  private(set) var heldBytes = 0

  /// The approximate memory of a buffered message in addition to its bytes: its buffer and its entry in a
  /// collection. Without it, a message of one byte would take a hundred times the memory that is counted for it.
  private static let overheadBytes = 160

  init(_ limits: WebChannelLimits) {
    self.limits = limits
  }

  /// Adds the messages of one POST.
  /// - Throws: an error for numbers more than `maximumGap` ahead; no message is added then.
  mutating func receive(_ messages: [ForwardBody.Message]) throws(WebChannelError) {
    let last = messages.map(\.number).max() ?? 0
    guard last < nextNumber + limits.maximumGap else {
      throw .malformed(
        "Message \(last) is more than \(limits.maximumGap) ahead of message \(nextNumber), which has not arrived."
      )
    }
    for message in messages where message.number >= nextNumber && early[message.number] == nil {
      early[message.number] = .some(message.bytes)
      heldBytes += Self.size(message.bytes)
    }
    while let message = early.removeValue(forKey: nextNumber) {
      nextNumber += 1
      if let message { deliverable.append(message) } else { heldBytes -= Self.size(nil) }
    }
  }

  /// Removes the next message in order; nil if it has not arrived.
  mutating func next() -> ByteBuffer? {
    guard let message = deliverable.popFirst() else { return nil }
    heldBytes -= Self.size(message)
    return message
  }

  private static func size(_ message: ByteBuffer?) -> Int { overheadBytes + (message?.readableBytes ?? 0) }

  /// Discards all messages.
  mutating func discardAll() {
    early = [:]
    deliverable = []
    heldBytes = 0
  }
}
