// The transport of a session as a protocol: a WebSocket, or long polling in a browser without WebSockets.

import NIOCore
import RealtimeEngine
import RealtimeModel

/// Carries a session's messages to its client; confined to the session's event loop.
protocol SessionTransport: AnyObject {
  /// Writes a message in the transport's encoding. The transport may delay it until ``flush()``.
  ///
  /// - Parameter counted: whether the bytes count in the memory budget until they are written.
  func write(_ message: ByteBuffer, counted: Bool)
  /// Whether the transport can carry a message in its encoding.
  func canSend(_ message: ByteBuffer) -> Bool
  /// Sends the messages written so far.
  func flush()
  /// Called after responses of the engine: the transport may read more requests.
  func requestsWereAnswered()
  /// Sends the client an error about its message, and ends the connection.
  ///
  /// - Parameter code: the reason as a WebSocket close code (RFC 6455, section 7.4.1).
  func reject(_ reason: String, code: UInt16)
  /// Called when a new connection of the same client has ended this session. Sends the output so far and ends
  /// the connection.
  func sessionWasReplaced()
  /// Whether the client reads more slowly than the server writes. When the client has read, the transport
  /// calls ``RealtimeSession/resume()``.
  var isBackpressured: Bool { get }
  /// Closes a connection whose queue exceeds its limit.
  func disconnectForOverflow()
}

extension SessionTransport {
  /// A transport without a limit carries every message that could be encoded.
  func canSend(_ message: ByteBuffer) -> Bool { true }
  /// A transport without back-pressure accepts all output immediately.
  var isBackpressured: Bool { false }
  /// Without back-pressure nothing is queued.
  func disconnectForOverflow() {}
}

/// The encoding of a transport's messages.
enum MessageEncoding: Sendable {
  /// WebSocket frames including their headers, at most `pieces` frames for each message.
  case frames(pieces: Int)
  /// JSON.
  case text

  /// Encodes a message. Returns nil if the message needs more frames than the encoding permits.
  func bytes(_ message: [UInt8]) -> ByteBuffer? {
    switch self {
    case .frames(let pieces): SocketFrames(message: message, pieces: pieces)?.bytes
    case .text: ByteBuffer(bytes: message)
    }
  }

  /// Encodes a push, once for all listeners that receive it.
  func encoded(_ push: RealtimePush) -> EncodedPush {
    switch self {
    case .frames(let pieces): SocketFrames.encoded(push, pieces: pieces)
    case .text:
      push.encoded(as: PushEncoder.self) { PushEncoder(push: EncodedPush(ByteBuffer(bytes: $0.message))) }
        .push
    }
  }

  /// Encodes a plain success, the most frequent message.
  func success(_ request: Int64) -> ByteBuffer {
    var buffer = ByteBuffer()
    let isFramed = if case .frames = self { true } else { false }
    buffer.writeSuccess(request: request, framed: isFramed)
    return buffer
  }

  /// The JSON form of a push.
  private struct PushEncoder: Sendable {
    let push: EncodedPush
  }
}
