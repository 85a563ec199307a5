// Long polling on a connection: each request begins a session, is held by one until it has something to tell, or ends one.

import NIOCore
import NIOHTTP1
import RealtimeEngine

extension RealtimeHTTPHandler {
  /// A poll that a session holds.
  struct HeldPoll {
    let session: LongPollSessions.Handle
    let serial: Int
  }

  /// Answers a request of long polling.
  func longPoll(_ request: LongPollRequest, _ context: ChannelHandlerContext) {
    guard !isDraining else { return answer(RESTResponse(.draining)) }
    switch request {
    case .start(let start):
      beginOpening()
      withDatabase(start.namespace, context) { $0.start(start, $1) }
    case .poll(let poll):
      guard let session = endpoint.longPolls.session(id: poll.id) else {
        return answer(.script(LongPollScript.close))
      }
      beginOpening()
      heldPoll = HeldPoll(session: session, serial: poll.serial)
      let answer = LongPollAnswer(self, context)
      session.run { $0.poll(poll, answer) }
    case .disconnectFrame(let id, let password):
      answer(.page(LongPollScript.disconnectFrame(id: id, password: password)))
    case .disconnect(let id, let password):
      endpoint.longPolls.session(id: id)?.run { $0.disconnect(password: password) }
      answer(.script(ByteBuffer()))
    }
  }

  private func start(_ start: LongPollRequest.Start, _ database: RealtimeDatabase) {
    guard let context else { return }
    guard !isDraining else { return answer(RESTResponse(.draining)) }
    let session = LongPollSession(endpoint, port, on: context.eventLoop)
    if let script = session.open(database, start) {
      answer(.script(script))
    } else {
      answer(
        RESTResponse(
          RESTError(
            .serviceUnavailable,
            "There are \(endpoint.limits.longPollSessions) long-polling sessions; no more are possible.")))
    }
  }

  /// The connection ends or the port drains: the session that holds its poll is told.
  func endLongPoll() {
    guard let held = heldPoll else { return }
    heldPoll = nil
    held.session.run { $0.abandon(held.serial) }
  }
}

/// The answer to a poll, which may be given once and from any event loop.
struct LongPollAnswer: Sendable {
  private let eventLoop: any EventLoop
  private let handler: NIOLoopBound<RealtimeHTTPHandler>

  init(_ handler: RealtimeHTTPHandler, _ context: ChannelHandlerContext) {
    eventLoop = context.eventLoop
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  /// Answers with a script. Where the connection has ended nothing happens.
  func give(_ script: ByteBuffer) {
    eventLoop.execute {
      let handler = handler.value
      handler.heldPoll = nil
      handler.answer(.script(script))
    }
  }
}
