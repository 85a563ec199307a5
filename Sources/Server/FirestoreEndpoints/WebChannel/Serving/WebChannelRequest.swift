// A WebChannel request: one HTTP request with the response headers that all WebChannel responses have.

import NIOCore
import NIOHTTP1
import Ports

/// One HTTP request and its response.
struct WebChannelRequest: Sendable {
  let responder: HTTPResponder
  private let head: HTTPRequestHead
  private var session: String?

  init(_ request: HTTPRequest, _ responder: HTTPResponder) {
    head = request.head
    self.responder = responder
  }

  /// All values of a header.
  func headers(_ name: String) -> [String] { head.headers[name] }

  /// Returns the same request with a session ID for its response header, which load balancers use for routing.
  func withSession(_ id: String?) -> WebChannelRequest {
    var request = self
    request.session = id
    return request
  }

  /// Sends a complete response.
  func respond(_ body: ByteBuffer) {
    responder.respond(HTTPResponse(status: .ok, headers: headers, body: body))
  }

  /// Sends the head of a streaming response.
  func begin() { responder.begin(.ok, headers) }

  /// Rejects the request with an error.
  func reject(_ error: WebChannelError) {
    responder.respond(
      HTTPResponse(
        status: HTTPResponseStatus(statusCode: error.status), headers: headers,
        body: ByteBuffer(string: error.message)))
  }

  /// The headers of every response: they disable content sniffing, buffering by proxies, and caching.
  private var headers: HTTPHeaders {
    var headers: HTTPHeaders = [
      "content-type": "text/plain; charset=utf-8", "cache-control": "private, max-age=0",
      "x-content-type-options": "nosniff", "x-accel-buffering": "no",
    ]
    if let session { headers.add(name: "x-http-session-id", value: session) }
    // Over HTTP/2 clients send several requests concurrently.
    if head.version.major >= 2 { headers.add(name: "x-client-wire-protocol", value: "h2") }
    if head.headers.contains(name: "origin") {
      headers.add(
        name: "access-control-expose-headers",
        value: "x-client-wire-protocol, x-http-session-id, x-http-initial-response")
    }
    return headers
  }
}
