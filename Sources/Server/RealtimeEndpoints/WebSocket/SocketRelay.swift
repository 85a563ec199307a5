// A socket relay passes the messages of a WebSocket to a session that began with long polling. The session
// stays on its event loop, so messages hop between that loop and the WebSocket's.
//
// Invariant: the unanswered requests of a relayed WebSocket have the same limits as those of any other
// WebSocket.

import NIOCore
import RealtimeModel
import RealtimeWire

final class SocketRelay: WebSocketDelegate {
  /// A message from the WebSocket to the session.
  enum Request: Sendable {
    case request(ClientRequest, size: Int)
    case oversized(request: Int64?)
    case malformed(WireError)

    var size: Int {
      switch self {
      case .request(_, let size): size
      case .oversized, .malformed: 0
      }
    }
  }

  private let endpoint: RealtimeEndpoint
  private let host: String
  private let session: LongPollSessions.Handle?
  private var socket: SocketHandler?
  /// The size of each unanswered request in order, in bytes. `bytes` is the sum.
  private var sizes = CircularBuffer<Int>(initialCapacity: 0)
  private var bytes = 0

  /// - Parameter session: the session to continue; nil if no session has the name that the client sent.
  init(_ endpoint: RealtimeEndpoint, host: String, session: LongPollSessions.Handle?) {
    self.endpoint = endpoint
    self.host = host
    self.session = session
  }

  func open(_ socket: SocketHandler, on eventLoop: any EventLoop) {
    self.socket = socket
    guard let session else { return notifyClient(isAccepted: false) }
    let handle = Handle(self, on: eventLoop)
    session.run { session in
      let isAccepted = session.offer(handle)
      handle.run { $0.notifyClient(isAccepted: isAccepted) }
    }
  }

  /// Notifies the client whether the session continues here.
  private func notifyClient(isAccepted: Bool) {
    socket?.send((isAccepted ? ServerControl.switchAcknowledged : .reset(host: host)).json())
    socket?.flush()
  }

  func receive(_ message: UnsafeRawBufferPointer, from socket: SocketHandler) {
    do throws(WireError) {
      switch try ClientMessage(json: message, limits: endpoint.limits.data) {
      case .control(.ping): socket.send(ServerControl.pong.json())
      // The client sends its control messages on both transports. The session handles the messages of long polling,
      // so those of the WebSocket are ignored.
      case .control: break
      case .request(let request): forward(.request(request, size: message.count))
      }
    } catch {
      forward(.malformed(error))
    }
  }

  func receiveOversized(request: Int64?) { forward(.oversized(request: request)) }

  private func forward(_ request: Request) {
    guard let session else { return }
    sizes.append(request.size)
    bytes += request.size
    session.run { $0.receive(request) }
  }

  func isFull(half: Bool) -> Bool {
    let limits = endpoint.limits
    let part = half ? 2 : 1
    return sizes.count >= limits.outstandingRequests / part + part - 1
      || bytes >= limits.outstandingRequestBytes / part + part - 1
  }

  var heldBytes: Int { bytes }

  var isIdle: Bool { sizes.isEmpty }

  func end() {
    socket = nil
    let id = ID(self)
    session?.run { $0.socketEnded(id) }
  }

  /// Identifies a WebSocket of a session.
  typealias ID = ObjectIdentifier

  /// The session's handle on the WebSocket; every call hops to the WebSocket's event loop.
  struct Handle: Sendable {
    private let eventLoop: any EventLoop
    private let relay: NIOLoopBound<SocketRelay>
    let id: ID

    fileprivate init(_ relay: SocketRelay, on eventLoop: any EventLoop) {
      self.eventLoop = eventLoop
      id = ID(relay)
      self.relay = NIOLoopBound(relay, eventLoop: eventLoop)
    }

    fileprivate func run(_ body: @escaping @Sendable (SocketRelay) -> Void) {
      eventLoop.execute { body(relay.value) }
    }

    /// Sends messages, given as JSON.
    func deliver(_ messages: [ByteBuffer]) {
      run { relay in
        for message in messages {
          let text = Array(message.readableBytesView)
          guard let frames = SocketFrames(message: text, pieces: relay.endpoint.limits.socketFrames) else {
            // The session has checked the size, so this is not expected. Without the message the client would
            // show a state that never existed, so the connection ends.
            relay.socket?.reject(RealtimeError.tooBig.message, code: 1009)
            return
          }
          relay.socket?.write(
            frames.bytes, counted: frames.bytes.readableBytes >= EncodedPush.minimumCountedBytes)
        }
        relay.socket?.flush()
      }
    }

    /// Counts this number of requests as answered, oldest first.
    func acknowledge(_ count: Int) {
      run { relay in
        for _ in 0..<count { relay.bytes -= relay.sizes.popFirst() ?? 0 }
        relay.socket?.requestsWereAnswered()
      }
    }

    /// Sends the client an error about its message, and ends the connection.
    func reject(_ reason: String, code: UInt16) { run { $0.socket?.reject(reason, code: code) } }

    /// Closes the connection: the session has ended.
    func close() { run { $0.socket?.close(code: 1000, "") } }
  }
}
