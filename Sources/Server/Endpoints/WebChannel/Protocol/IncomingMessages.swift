// The forward channel's order: POSTs come in any order and more than once, and each message is handed on exactly once,
// in the order of the numbers.
//
// Invariants
//   1. What was made ready are the numbers below `missing`, each once, in order.
//   2. `early` has numbers above `missing` only, within the gap that the limits allow.

import NIOCore

struct IncomingMessages {
  private let limits: WebChannelLimits
  private var missing = 0
  private var early: [Int: ByteBuffer?] = [:]
  private var ready = CircularBuffer<ByteBuffer>()
  /// Bytes of messages that wait, for one before them or for the stream.
  private(set) var heldBytes = 0

  /// What a message that waits takes up beside its bytes, about: its buffer and its place. Without it the smallest
  /// messages would hold a hundred times what they count.
  private static let messageBytes = 160

  init(_ limits: WebChannelLimits) {
    self.limits = limits
  }

  /// Takes the messages of one POST.
  /// - Throws: a refusal for numbers that are too far ahead; nothing is taken then.
  mutating func receive(_ messages: [ForwardBody.Message]) throws(WebChannelRefusal) {
    let last = messages.map(\.number).max() ?? 0
    guard last < missing + limits.maximumGap else {
      throw .malformed(
        "Message \(last) is more than \(limits.maximumGap) ahead of message \(missing), which has not come.")
    }
    for message in messages where message.number >= missing && early[message.number] == nil {
      early[message.number] = .some(message.bytes)
      heldBytes += Self.size(message.bytes)
    }
    while let message = early.removeValue(forKey: missing) {
      missing += 1
      if let message { ready.append(message) } else { heldBytes -= Self.size(nil) }
    }
  }

  /// Takes out the message whose turn it is.
  mutating func next() -> ByteBuffer? {
    guard let message = ready.popFirst() else { return nil }
    heldBytes -= Self.size(message)
    return message
  }

  private static func size(_ message: ByteBuffer?) -> Int { messageBytes + (message?.readableBytes ?? 0) }

  /// Forgets all messages, those to come too: nobody wants them.
  mutating func close() {
    early = [:]
    ready = []
    heldBytes = 0
  }
}
