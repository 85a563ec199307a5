// A socket session connects a WebSocket to a new session. A WebSocket that continues a long-polling session
// uses SocketRelay instead.

import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class SocketSession: WebSocketDelegate {
  private let session: RealtimeSession
  /// The arguments of the session; nil after it was opened.
  private var opening: (database: RealtimeDatabase, host: String, lastSession: String?)?

  init(_ endpoint: RealtimeEndpoint, _ database: RealtimeDatabase, _ request: SocketRequest) {
    opening = (database, request.host, request.lastSession)
    session = RealtimeSession(endpoint, encoding: .frames(pieces: endpoint.limits.socketFrames))
  }

  func open(_ socket: SocketHandler, on eventLoop: any EventLoop) {
    guard let (database, host, lastSession) = opening else {
      preconditionFailure("invariant: a WebSocket opens its session once")
    }
    opening = nil
    let name = session.open(database, lastSession: lastSession, on: eventLoop, over: socket)
    let hello = ServerHello(timestamp: session.endpoint.now(), host: host, sessionID: name)
    socket.send(ServerControl.hello(hello).json())
  }

  func receive(_ message: UnsafeRawBufferPointer, from socket: SocketHandler) {
    if case .ping? = session.receive(message) { socket.send(ServerControl.pong.json()) }
  }

  func receiveOversized(request: Int64?) { session.receiveOversized(request: request) }

  func isFull(half: Bool) -> Bool { session.isFull(session.endpoint.limits, half: half) }

  var heldBytes: Int { session.outstandingBytes }

  var isIdle: Bool { session.isIdle }

  func resume() { session.resume() }

  func end() { session.end() }
}

extension RealtimeSession {
  /// Whether the limits of unanswered requests are reached; with `half`, whether half of them is exceeded.
  func isFull(_ limits: RealtimeEndpointLimits, half: Bool) -> Bool {
    let part = half ? 2 : 1
    return reachesLimits(
      requests: limits.outstandingRequests / part + part - 1,
      bytes: limits.outstandingRequestBytes / part + part - 1)
  }
}
