// Socket frames: a message encoded as WebSocket frames with headers. A server does not mask its frames, so
// the same bytes can be sent to every subscriber.

import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

/// The frames of one message. A large message is split: its first frame contains the number of the frames
/// that follow.
struct SocketFrames: Sendable {
  let bytes: ByteBuffer

  /// Encodes a message. Returns nil if it needs more than `maximum` frames.
  init?(message: [UInt8], pieces maximum: Int = MessageSplitter.maximumFrames) {
    var buffer = ByteBuffer()
    let fits = message.withUnsafeBytes { raw in
      guard let pieces = MessageSplitter.frames(of: raw, maximum: maximum) else { return false }
      buffer.reserveCapacity(raw.count + 10 * (pieces.count + 1))
      if pieces.count > 1 { buffer.writeTextFrame(String(pieces.count).utf8) }
      for piece in pieces {
        buffer.writeFrameHeader(.text, length: piece.count)
        buffer.writeBytes(UnsafeRawBufferPointer(rebasing: raw[piece]))
      }
      return true
    }
    guard fits else { return nil }
    bytes = buffer
  }

  /// Returns the frames of a push, encoded once for all its listeners.
  static func encoded(_ push: RealtimePush, pieces: Int) -> EncodedPush {
    push.encoded(as: Encoded.self, variant: pieces) { push in
      Encoded(push: EncodedPush(SocketFrames(message: push.message, pieces: pieces)?.bytes))
    }.push
  }

  /// The encoded form of a push.
  private struct Encoded: Sendable {
    let push: EncodedPush
  }
}

extension RealtimePush {
  /// The push as JSON. For a cancelled listen the session builds the message instead, because it must contain
  /// the listen's query.
  var message: [UInt8] {
    switch body {
    case .set(let node): UntaggedPush(data: node, at: path).message(tag: tag)
    case .merge(let children):
      UntaggedPush(merge: children.map { ($0.path, $0.value) }, at: path).message(tag: tag)
    case .rangeMerge(let merges):
      UntaggedPush(
        ranges: merges.map { RangeMergeFields(start: $0.start, end: $0.end, data: $0.updates) }, at: path
      ).message(tag: tag)
    case .cancel: ServerPush.cancel(path: path, queryText: nil).json()
    }
  }
}

/// The kinds of frames that a server sends.
enum SocketFrameKind: UInt8 {
  case text = 0x1
  case close = 0x8
  case ping = 0x9
  case pong = 0xA
}

extension ByteBuffer {
  /// Writes the header of an unmasked frame that is a complete message.
  mutating func writeFrameHeader(_ kind: SocketFrameKind, length: Int) {
    writeInteger(0x80 | kind.rawValue)
    switch length {
    case ..<126: writeInteger(UInt8(length))
    case ..<65_536:
      writeInteger(UInt8(126))
      writeInteger(UInt16(length))
    default:
      writeInteger(UInt8(127))
      writeInteger(UInt64(length))
    }
  }

  fileprivate mutating func writeTextFrame(_ text: String.UTF8View) {
    writeFrameHeader(.text, length: text.count)
    writeBytes(text)
  }

  /// Writes a plain success, with or without a frame header.
  mutating func writeSuccess(request: Int64, framed: Bool) {
    let before: StaticString = #"{"t":"d","d":{"r":"#
    let after: StaticString = #","b":{"s":"ok","d":""}}}"#
    let number = String(request)
    let length = before.utf8CodeUnitCount + number.utf8.count + after.utf8CodeUnitCount
    reserveCapacity(length + 4)
    if framed { writeFrameHeader(.text, length: length) }
    writeStaticString(before)
    writeString(number)
    writeStaticString(after)
  }

  /// Writes a close frame with a code and a reason.
  mutating func writeCloseFrame(code: UInt16, reason: String = "") {
    let reason = reason.utf8.prefix(120)
    writeFrameHeader(.close, length: 2 + reason.count)
    writeInteger(code)
    writeBytes(reason)
  }
}
