// The interface between HTTP connections and the services of a port. A service knows its product: routes, error texts and
// headers. The connection knows HTTP: framing, half-closure, cancellation, back-pressure and memory.

package import NIOCore
package import NIOHTTP1

/// Serves the HTTP requests of a port. Every method is called on the event loop of the request's connection.
package protocol HTTPService: Sendable {
  /// The limits of one connection.
  func connectionLimits(_ port: PortLimits) -> HTTPConnectionLimits
  /// Whether request bodies may be compressed.
  var acceptsCompressedBodies: Bool { get }
  /// Decides from a request's head how its body is received.
  func bodyPlan(for head: HTTPRequestHead, _ port: PortLimits) -> HTTPBodyPlan
  /// Serves a request. The service must respond once, now or later.
  func serve(
    _ head: HTTPRequestHead, _ body: ByteBuffer, _ exchange: HTTPExchange, on connection: HTTPConnection)
  /// Returns the error response to a request that the connection rejects without the service.
  func response(to failure: HTTPRequestFailure) -> HTTPResponse
  /// Adds headers that every response to a request has, such as CORS headers.
  func addHeaders(to headers: inout HTTPHeaders, respondingTo request: HTTPRequestHead)
}

/// The limits of one HTTP connection.
package struct HTTPConnectionLimits: Sendable {
  /// Maximum bytes of all request bodies without a response.
  package var maximumRequestBytes: Int
  /// Unread response bytes of an HTTP/2 connection beyond which a GET gets an error; nil for no such limit.
  package var maximumUnreadResponseBytes: Int?

  /// Creates the limits of one connection.
  package init(maximumRequestBytes: Int, maximumUnreadResponseBytes: Int? = nil) {
    self.maximumRequestBytes = maximumRequestBytes
    self.maximumUnreadResponseBytes = maximumUnreadResponseBytes
  }
}

/// How the body of a request is received.
package enum HTTPBodyPlan {
  /// The head is sufficient to reject the request. The connection ends after the response.
  case reject(HTTPResponse)
  /// The body is collected in memory.
  case collect(maximumBytes: Int)
  /// A body of more than `threshold` bytes is consumed while it arrives; a smaller one is collected.
  case stream(maximumBytes: Int, threshold: Int, consume: (BodyQueue, HTTPExchange) -> Void)
}

/// The reason for which a connection rejects a request without the service.
package enum HTTPRequestFailure: Error {
  /// The bytes are not an HTTP request, or the target cannot be decoded.
  case malformed(String)
  /// The port does not serve the request's host or the web page that sent it. The text names both.
  case forbidden(String)
  /// The body did not arrive within its deadline.
  case bodyTimeout
  /// The body exceeds its limit. `bytes` is the announced length, if any.
  case bodyTooLarge(bytes: Int?, limit: Int)
  /// The bodies of the connection's requests exceed their limit.
  case tooManyRequestBytes(limit: Int)
  /// The server has no memory for the request or its response. The text names the limit.
  case outOfMemory(String)
  /// The unread responses of the connection exceed their limit.
  case tooManyUnreadBytes(limit: Int)
  /// The Content-Encoding is not supported.
  case unsupportedEncoding(String)
  /// The compressed body cannot be decompressed, or exceeds `limit` bytes.
  case decompression(Decompression.Failure, limit: Int)
}
