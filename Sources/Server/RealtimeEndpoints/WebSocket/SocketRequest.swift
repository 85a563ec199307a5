// A socket request is the HTTP request that opens a WebSocket. It is parsed and validated here.

import Crypto
import JSON
import NIOHTTP1
import Ports

/// A request for a WebSocket of protocol v5.
struct SocketRequest: Sendable {
  /// The host name that the client sent. The server's hello message repeats it, because clients reconnect to
  /// the host in that message.
  var host: String
  var namespace: String
  /// The client's previous session, which the new session ends.
  var lastSession: String?
  /// The long-polling session to continue on this socket.
  var upgradedSession: String?
  /// The value of `Sec-WebSocket-Accept` for the client's key.
  var accept: String

  /// Parses a request.
  ///
  /// - Throws: ``RESTError`` with the reason.
  init(_ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint) throws(RESTError) {
    guard head.method == .GET, head.version.major == 1, head.version.minor >= 1 else {
      throw RESTError(.badRequest, "A WebSocket is opened by GET over HTTP/1.1.")
    }
    guard let key = head.headers.first(name: "sec-websocket-key"), key.utf8.count == 24,
      head.headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == "websocket" })
    else {
      throw RESTError(.badRequest, "This address is for WebSockets: the upgrade headers are missing.")
    }
    guard head.headers.first(name: "sec-websocket-version") == "13" else {
      throw RESTError(.upgradeRequired, "Only version 13 of the WebSocket protocol is spoken.")
    }
    if let version = target["v"], version != "5" {
      throw RESTError(
        .badRequest, "Protocol version \(version) is not supported; this server speaks version 5.")
    }
    let host = head.headers.first(name: "host") ?? ""
    self.host = host
    namespace = endpoint.namespace(parameter: target["ns"], host: host)
    lastSession = target["ls"].flatMap { $0.isEmpty ? nil : $0 }
    upgradedSession = target["s"].flatMap { $0.isEmpty ? nil : $0 }
    accept = Self.accept(key)
  }

  /// Returns the proof that the server speaks WebSocket (RFC 6455, section 4.2.2).
  static func accept(_ key: String) -> String {
    let digest = Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
    return Base64.encode(Array(digest))
  }
}
