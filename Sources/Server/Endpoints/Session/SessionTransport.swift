// What a session needs of whatever carries its messages: a WebSocket, or the polls of a browser that has none.

import NIOCore
import RealtimeEngine
import RealtimeModel

/// What carries a session's messages to its client; confined to the session's event loop.
protocol SessionTransport: AnyObject {
  /// Takes a message in the session's form; it need not leave before ``flush()``.
  ///
  /// - Parameter counted: whether the bytes count in what the server holds until they have gone out.
  func write(_ message: ByteBuffer, counted: Bool)
  /// Whether a message in the session's form can go this way.
  func takes(_ message: ByteBuffer) -> Bool
  /// Has the messages taken so far leave.
  func flush()
  /// Hears that the engine has answered requests, so that more may be taken.
  func requestsWereAnswered()
  /// Tells the client what is wrong with what it sent, and ends the connection.
  ///
  /// - Parameter code: the reason as the close code of a WebSocket (RFC 6455, section 7.4.1).
  func refuse(_ reason: String, code: UInt16)
  /// Hears that the client has come back on another connection, which ended this session: ends the connection, behind
  /// what the session was told.
  func sessionWasTakenOver()
  /// Whether the peer does not read as fast as it is told; ``RealtimeSession/goOn()`` tells when it does again.
  var isBehind: Bool { get }
  /// Ends a connection for which more waits than may.
  func cutOff()
}

extension SessionTransport {
  /// Frames that could be made can be sent.
  func takes(_ message: ByteBuffer) -> Bool { true }
  /// A transport that says nothing of its peer is told everything at once.
  var isBehind: Bool { false }
  /// One that is never behind has nothing waiting.
  func cutOff() {}
}

/// The form in which a transport takes messages.
enum MessageForm: Sendable {
  /// The frames of a WebSocket, headers included, where a client counts so many pieces of a message.
  case frames(pieces: Int)
  /// The JSON text.
  case text

  /// A message in this form; nil if it has more pieces than a client can count.
  func bytes(_ message: [UInt8]) -> ByteBuffer? {
    switch self {
    case .frames(let pieces): SocketFrames(message: message, pieces: pieces)?.bytes
    case .text: ByteBuffer(bytes: message)
    }
  }

  /// A push in this form, made once for all listeners that are told the same.
  func encoded(_ push: RealtimePush) -> EncodedPush {
    switch self {
    case .frames(let pieces): SocketFrames.encoded(push, pieces: pieces)
    case .text:
      push.encoded(as: PushEncoder.self) { PushEncoder(push: EncodedPush(ByteBuffer(bytes: $0.message))) }.push
    }
  }

  /// A request's plain success in this form, the most frequent message of all.
  func success(_ request: Int64) -> ByteBuffer {
    var buffer = ByteBuffer()
    let isFramed = if case .frames = self { true } else { false }
    buffer.writeSuccess(request: request, framed: isFramed)
    return buffer
  }

  /// What a push keeps as text.
  private struct PushEncoder: Sendable {
    let push: EncodedPush
  }
}
