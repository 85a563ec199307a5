// Serves the HTTP requests of long polling. Each request starts a session, polls a session for messages, or
// ends a session.

import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine

extension RealtimeHTTPService {
  /// Serves one request.
  func longPoll(_ request: LongPollRequest, _ exchange: HTTPExchange, _ connection: HTTPConnection) {
    guard !connection.isDraining else { return exchange.respond(HTTPResponse(.draining)) }
    switch request {
    case .start(let start):
      exchange.endWithPeer()
      let bound = NIOLoopBound(connection, eventLoop: exchange.eventLoop)
      withDatabase(start.namespace, exchange) { self.start(start, $1, $0, bound.value) }
    case .poll(let poll):
      guard let session = endpoint.longPolls.session(id: poll.id) else {
        return exchange.respond(.script(LongPollScript.close))
      }
      exchange.endWithPeer()
      let response = PendingPollResponse(exchange) { session.run { $0.abandon(poll.serial) } }
      exchange.onDrain { session.run { $0.drain() } }
      session.run { $0.poll(poll, response) }
    case .disconnectFrame(let id, let password):
      exchange.respond(.page(LongPollScript.disconnectFrame(id: id, password: password)))
    case .disconnect(let id, let password):
      endpoint.longPolls.session(id: id)?.run { $0.disconnect(password: password) }
      exchange.respond(.script(ByteBuffer()))
    }
  }

  private func start(
    _ start: LongPollRequest.Start, _ database: RealtimeDatabase, _ exchange: HTTPExchange,
    _ connection: HTTPConnection
  ) {
    guard !exchange.isOver else { return }
    guard !connection.isDraining else { return exchange.respond(HTTPResponse(.draining)) }
    let session = LongPollSession(
      endpoint, connection.port, address: exchange.remoteAddress?.ipAddress ?? "", on: exchange.eventLoop)
    if let script = session.open(database, start) {
      exchange.respond(.script(script))
    } else {
      exchange.respond(
        HTTPResponse(
          RESTError(
            .serviceUnavailable,
            "There are \(endpoint.limits.longPollSessions) long-polling sessions; no more are possible.")))
    }
  }
}

/// The pending response to a poll. Any event loop may send it, once.
struct PendingPollResponse: Sendable {
  private let responder: HTTPResponder
  private let isSent: NIOLoopBoundBox<Bool>

  /// - Parameter abandon: called if the connection ends before the response.
  init(_ exchange: HTTPExchange, abandon: @escaping () -> Void) {
    responder = HTTPResponder(exchange)
    let isSent = NIOLoopBoundBox(false, eventLoop: exchange.eventLoop)
    self.isSent = isSent
    exchange.onEnd { if !isSent.value { abandon() } }
  }

  /// Responds with a script. Has no effect after the end of the connection.
  func send(_ script: ByteBuffer) {
    responder.eventLoop.execute {
      isSent.value = true
      responder.respond(.script(script))
    }
  }
}
