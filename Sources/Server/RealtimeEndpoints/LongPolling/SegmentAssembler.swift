// A segment assembler joins segments into messages. A browser sends the segments as URL parameters of its polls.
//
// All segments of a session are numbered consecutively. Polls may overtake each other, or be repeated. A
// segment that arrives before an earlier one is kept until that one arrives. A repeated segment is ignored.
//
// Invariants
//   1. The number and the bytes of kept segments are bounded.
//   2. Only a prefix of a message above the size limit is kept. The message's other segments are counted and dropped.

import JSON
import RealtimeWire

/// One segment of a message: URL-safe base64, padded with dots.
struct Segment: Sendable, Equatable {
  /// The number among all segments of the session, from 0.
  var number: Int
  /// The number of segments of its message.
  var total: Int
  /// The encoded bytes.
  var text: String
}

/// The segments received on one session.
struct SegmentAssembler: Sendable {
  /// The reason that a segment is invalid. The session cannot continue after it.
  enum Fault: Error, Equatable {
    /// The segment's number is too far above that of a missing segment, or too many bytes wait for the
    /// missing segment.
    case tooFarAhead
    /// The segment's total differs from that of earlier segments of its message, or is 0.
    case inconsistent
    /// The message is not base64.
    case notBase64

    /// The error text for the client.
    var reason: String {
      switch self {
      case .tooFarAhead: "A piece of a message came too far ahead of the pieces before it."
      case .inconsistent: "The pieces of a message do not agree on how many they are."
      case .notBase64: "The pieces of a message are not URL-safe base64."
      }
    }
  }

  /// Maximum bytes of a message.
  let maximumBytes: Int
  /// The number of segments that may wait for a missing one.
  let window: Int

  private var next = 0
  private var pending: [Int: Segment] = [:]
  private var pendingBytes = 0
  /// The base64 characters of the message in progress.
  private var text: [UInt8] = []
  private var total = 0
  private var receivedCount = 0
  private var isOversized = false

  /// The estimated memory of the kept segments, in bytes.
  var heldBytes: Int { pendingBytes + pending.count * Self.segmentOverheadBytes + text.count }

  /// The estimated memory of a kept segment without its characters, in bytes.
  private static let segmentOverheadBytes = 128

  /// The number of characters that are kept of an oversized message. They contain the number of the request,
  /// which browsers write first.
  private static let oversizedPrefixBytes = 4096
  /// The padding characters of the last group: the dot of the web SDK, and the standard sign of base64.
  private static let padding = [UInt8(ascii: "."), UInt8(ascii: "=")]

  init(maximumBytes: Int, window: Int) {
    self.maximumBytes = maximumBytes
    self.window = window
  }

  /// Accepts a segment, and returns the messages that it completes, in order.
  mutating func receive(_ segment: Segment) throws(Fault) -> [MessageAssembler.Received] {
    guard segment.number >= next, pending[segment.number] == nil else { return [] }
    guard segment.number - next < window, pendingBytes + segment.text.utf8.count <= maximumBytes else {
      throw .tooFarAhead
    }
    pending[segment.number] = segment
    pendingBytes += segment.text.utf8.count
    var messages: [MessageAssembler.Received] = []
    while let segment = pending.removeValue(forKey: next) {
      pendingBytes -= segment.text.utf8.count
      next += 1
      if let message = try append(segment) { messages.append(message) }
    }
    return messages
  }

  private mutating func append(_ segment: Segment) throws(Fault) -> MessageAssembler.Received? {
    if receivedCount == 0 { total = segment.total }
    guard segment.total == total, total > 0 else { throw .inconsistent }
    receivedCount += 1
    // Four characters encode three bytes. Padding may replace up to two of these characters.
    if (text.count + segment.text.utf8.count) / 4 * 3 - 2 > maximumBytes {
      isOversized = true
      text.append(contentsOf: segment.text.utf8.prefix(max(0, Self.oversizedPrefixBytes - text.count)))
      text.removeLast(max(0, text.count - Self.oversizedPrefixBytes))
    } else if !isOversized {
      text.append(contentsOf: segment.text.utf8)
    }
    guard receivedCount == total else { return nil }
    defer {
      text = []
      receivedCount = 0
      isOversized = false
    }
    if isOversized {
      text.removeLast(text.count % 4)
      return oversized(Base64.decode(text, .urlSafe, paddedBy: Self.padding) ?? [])
    }
    guard let bytes = Base64.decode(text, .urlSafe, paddedBy: Self.padding) else { throw .notBase64 }
    // The check above ignores up to two bytes of padding, so the decoded message may still exceed the limit.
    return bytes.count > maximumBytes ? oversized(bytes) : .assembled(bytes)
  }

  private func oversized(_ bytes: [UInt8]) -> MessageAssembler.Received {
    .oversized(request: bytes.withUnsafeBytes { ClientMessage.requestNumber(in: $0) })
  }
}
