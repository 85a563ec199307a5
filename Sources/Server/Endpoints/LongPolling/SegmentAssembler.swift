// Puts what a browser sends in pieces, as parameters of its polls, together to messages again.
//
// Pieces are numbered over the whole session, a message's pieces one after the other. Polls overtake each other and may
// be sent twice: pieces that came early wait, pieces that came before are ignored. Invariants: what waits is bounded, in
// number and bytes; a message beyond the limit is counted to its end without being kept.

import JSON
import RealtimeWire

/// One piece of a message: URL-safe base64, padded by dots.
struct Segment: Sendable, Equatable {
  /// Its number among all pieces of the session, from 0.
  var number: Int
  /// The number of pieces that its message has.
  var total: Int
  /// The text.
  var text: String
}

/// The pieces received on one session.
struct SegmentAssembler: Sendable {
  /// What is wrong with a piece; the session cannot go on behind it.
  enum Fault: Error, Equatable {
    /// It is too far ahead of the pieces that came before, or too much waits for those.
    case tooFarAhead
    /// It says something else about its message than the pieces before it.
    case inconsistent
    /// The message is not base64.
    case notBase64

    /// What the client is told.
    var reason: String {
      switch self {
      case .tooFarAhead: "A piece of a message came too far ahead of the pieces before it."
      case .inconsistent: "The pieces of a message do not agree on how many they are."
      case .notBase64: "The pieces of a message are not URL-safe base64."
      }
    }
  }

  /// The most bytes of a message.
  let maximumBytes: Int
  /// How many pieces may wait for one that is missing.
  let window: Int

  private var next = 0
  private var early: [Int: Segment] = [:]
  private var earlyBytes = 0
  /// The message under way.
  private var text: [UInt8] = []
  private var total = 0
  private var taken = 0
  private var isOversized = false

  /// What the pieces that are kept take up.
  var heldBytes: Int { earlyBytes + early.count * Self.pieceBytes + text.count }

  /// What a piece that waits takes up beside its text, about.
  private static let pieceBytes = 128

  /// How much of an oversized message is kept; enough to find the number of its request, which browsers put first.
  private static let keptBeginning = 4096
  /// What the last group may be filled up by: the web SDK's dots, or base64's own sign.
  private static let padding = [UInt8(ascii: "."), UInt8(ascii: "=")]

  init(maximumBytes: Int, window: Int) {
    self.maximumBytes = maximumBytes
    self.window = window
  }

  /// Takes a piece and returns the messages that are whole with it, in order.
  mutating func receive(_ segment: Segment) throws(Fault) -> [MessageAssembler.Received] {
    guard segment.number >= next, early[segment.number] == nil else { return [] }
    guard segment.number - next < window, earlyBytes + segment.text.utf8.count <= maximumBytes else {
      throw .tooFarAhead
    }
    early[segment.number] = segment
    earlyBytes += segment.text.utf8.count
    var messages: [MessageAssembler.Received] = []
    while let segment = early.removeValue(forKey: next) {
      earlyBytes -= segment.text.utf8.count
      next += 1
      if let message = try append(segment) { messages.append(message) }
    }
    return messages
  }

  private mutating func append(_ segment: Segment) throws(Fault) -> MessageAssembler.Received? {
    if taken == 0 { total = segment.total }
    guard segment.total == total, total > 0 else { throw .inconsistent }
    taken += 1
    // Four characters are three bytes, of which two may be filling.
    if (text.count + segment.text.utf8.count) / 4 * 3 - 2 > maximumBytes {
      isOversized = true
      text.append(contentsOf: segment.text.utf8.prefix(max(0, Self.keptBeginning - text.count)))
      text.removeLast(max(0, text.count - Self.keptBeginning))
    } else if !isOversized {
      text.append(contentsOf: segment.text.utf8)
    }
    guard taken == total else { return nil }
    defer {
      text = []
      taken = 0
      isOversized = false
    }
    if isOversized {
      text.removeLast(text.count % 4)
      return oversized(Base64.decode(text, .urlSafe, paddedBy: Self.padding) ?? [])
    }
    guard let bytes = Base64.decode(text, .urlSafe, paddedBy: Self.padding) else { throw .notBase64 }
    // What the last characters hold may be too much.
    return bytes.count > maximumBytes ? oversized(bytes) : .assembled(bytes)
  }

  private func oversized(_ bytes: [UInt8]) -> MessageAssembler.Received {
    .oversized(request: bytes.withUnsafeBytes { ClientMessage.requestNumber(in: $0) })
  }
}
