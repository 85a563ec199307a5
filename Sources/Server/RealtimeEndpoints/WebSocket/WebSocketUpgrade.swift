// Upgrades an HTTP/1.1 connection to a WebSocket.

import NIOCore
import NIOHTTP1
import NIOWebSocket
import Ports
import RealtimeEngine
import RealtimeModel

extension RealtimeHTTPService {
  /// Opens the database of a request, and upgrades its connection.
  func openWebSocket(_ request: SocketRequest, _ exchange: HTTPExchange, _ connection: HTTPConnection) {
    exchange.endWithPeer()
    if let session = request.upgradedSession {
      // A long-polling session that moves to a WebSocket has already opened its database.
      let found = endpoint.longPolls.session(name: session)
      return upgrade(request, SocketRelay(endpoint, host: request.host, session: found), exchange, connection)
    }
    let bound = NIOLoopBound(connection, eventLoop: exchange.eventLoop)
    withDatabase(request.namespace, exchange) { exchange, database in
      upgrade(request, SocketSession(endpoint, database, request), exchange, bound.value)
    }
  }

  private func upgrade(
    _ request: SocketRequest, _ delegate: any WebSocketDelegate, _ exchange: HTTPExchange,
    _ connection: HTTPConnection
  ) {
    guard !connection.isDraining else { return exchange.respond(HTTPResponse(.draining)) }
    let headers: HTTPHeaders = [
      "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": request.accept,
    ]
    exchange.upgrade(headers) { pipeline in
      let frames = SocketFrameDecoder(maximumFrameBytes: endpoint.limits.messageBytes)
      let socket = SocketHandler(endpoint, connection, delegate: delegate, incoming: frames)
      try pipeline.replaceHTTP1(by: frames, socket) { socket.readIsComplete() }
    }
  }
}
