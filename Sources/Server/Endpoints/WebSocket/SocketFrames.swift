// Messages as WebSocket frames, header included. A server's frames carry no mask, so the same bytes go
// to every subscriber and are made once.

import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

/// One message as the bytes of its frames: one frame, or a count and the pieces.
struct SocketFrames: Sendable {
  let bytes: ByteBuffer

  /// Frames a message; `nil` if it has more pieces than a client can count.
  init?(message: [UInt8], pieces most: Int = MessageSplitter.maximumFrames) {
    var buffer = ByteBuffer()
    let fits = message.withUnsafeBytes { raw in
      guard let pieces = MessageSplitter.frames(of: raw, maximum: most) else { return false }
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

  /// The frames of a push, made once for all who are told it.
  static func encoded(_ push: RealtimePush, pieces: Int) -> EncodedPush {
    push.encoded(as: Encoded.self, variant: pieces) { push in
      Encoded(push: EncodedPush(SocketFrames(message: push.message, pieces: pieces)?.bytes))
    }.push
  }

  /// What a push keeps.
  private struct Encoded: Sendable {
    let push: EncodedPush
  }
}

extension RealtimePush {
  /// The push as a message, but for revoked listens, whose text differs from client to client.
  var message: [UInt8] {
    switch body {
    case .set(let node): PushEncoder(data: node, at: path).message(tag: tag)
    case .merge(let children):
      PushEncoder(merge: children.map { ($0.path, $0.value) }, at: path).message(tag: tag)
    case .rangeMerge(let merges):
      PushEncoder(
        ranges: merges.map { RangeMergeFields(start: $0.start, end: $0.end, data: $0.updates) }, at: path
      ).message(tag: tag)
    case .cancel: ServerPush.cancel(path: path, queryText: nil).json()
    }
  }
}

/// The kinds of frames a server sends.
enum SocketFrameKind: UInt8 {
  case text = 0x1
  case close = 0x8
  case ping = 0x9
  case pong = 0xA
}

extension ByteBuffer {
  /// Writes the header of an unmasked frame that is a message of its own.
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

  /// Writes a request's plain success, with the header of a frame or bare.
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
