// One HTTP request of a channel and the answers that all of them have in common.

import NIOCore
import NIOHTTP1

struct WebChannelRequest: Sendable {
  let responder: HTTPResponder
  private let head: HTTPRequestHead
  private var session: String?

  init(_ request: HTTPRequest, _ responder: HTTPResponder) {
    head = request.head
    self.responder = responder
  }

  /// A header's first value.
  func header(_ name: String) -> String? { head.headers.first(name: name) }

  /// The same request, whose answer names the session for the sake of whoever routes requests.
  func withSession(_ id: String?) -> WebChannelRequest {
    var request = self
    request.session = id
    return request
  }

  /// Answers with a whole body.
  func answer(_ body: ByteBuffer) {
    responder.answer(HTTPResponse(status: .ok, headers: headers, body: body))
  }

  /// Begins an answer whose parts follow.
  func begin() { responder.begin(.ok, headers) }

  /// Says why the request is not served.
  func refuse(_ refusal: WebChannelRefusal) {
    responder.answer(
      HTTPResponse(
        status: HTTPResponseStatus(statusCode: refusal.status), headers: headers,
        body: ByteBuffer(string: refusal.text)))
  }

  /// What every answer says: take it as it is, pass it on at once, keep it for nobody.
  private var headers: HTTPHeaders {
    var headers: HTTPHeaders = [
      "content-type": "text/plain; charset=utf-8", "cache-control": "private, max-age=0",
      "x-content-type-options": "nosniff", "x-accel-buffering": "no",
    ]
    if let session { headers.add(name: "x-http-session-id", value: session) }
    // Clients send several messages at once when they know that requests share a connection.
    if head.version.major >= 2 { headers.add(name: "x-client-wire-protocol", value: "h2") }
    if head.headers.contains(name: "origin") {
      headers.add(
        name: "access-control-expose-headers",
        value: "x-client-wire-protocol, x-http-session-id, x-http-initial-response")
    }
    return headers
  }
}
