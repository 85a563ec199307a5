// A request that becomes a WebSocket: HTTP leaves the pipeline, and a socket takes its place.

import NIOCore
import NIOHTTP1
import NIOWebSocket
import RealtimeEngine
import RealtimeModel

extension RealtimeHTTPHandler {
  func open(_ request: SocketRequest, _ context: ChannelHandlerContext) {
    beginOpening()
    if let session = request.upgradedSession {
      // The session has its database already.
      let found = endpoint.longPolls.session(name: session)
      return upgrade(request, SocketRelay(endpoint, host: request.host, session: found))
    }
    withDatabase(request.namespace, context) { handler, database in
      handler.upgrade(request, SocketSession(handler.endpoint, database, request))
    }
  }

  /// Goes on with a database, at once if it is open already; one that cannot be opened is the answer.
  func withDatabase(
    _ namespace: String, _ context: ChannelHandlerContext,
    _ body: @escaping @Sendable (RealtimeHTTPHandler, RealtimeDatabase) -> Void
  ) {
    let engine = endpoint.engine
    if let database = engine.openDatabase(namespace) { return body(self, database) }
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    Task {
      do {
        let database = try await engine.database(namespace)
        eventLoop.execute { body(this.value, database) }
      } catch {
        let response = RESTResponse(RESTError(error))
        eventLoop.execute { this.value.answer(response) }
      }
    }
  }

  private func upgrade(_ request: SocketRequest, _ delegate: any WebSocketDelegate) {
    guard let context, let head else { return }
    guard !shared.isDraining else { return answer(RESTResponse(.draining)) }
    let headers: HTTPHeaders = [
      "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": request.accept,
    ]
    let response = HTTPResponseHead(version: head.version, status: .switchingProtocols, headers: headers)
    context.write(wrapOutboundOut(.head(response)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    let channel = context.channel
    do {
      try channel.pipeline.syncOperations.allowHalfClosure(false)
      let frames = SocketFrameDecoder(maximumFrameBytes: endpoint.limits.messageBytes)
      try channel.pipeline.syncOperations.replaceRealtimeHTTP1(
        by: frames, SocketHandler(shared, delegate: delegate, incoming: frames))
    } catch {
      channel.close(promise: nil)
    }
  }
}
