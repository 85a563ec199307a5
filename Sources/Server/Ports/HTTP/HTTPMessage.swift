// The request and the response of one HTTP exchange, as services see them.

package import NIOCore
package import NIOHTTP1

/// A request whose body is complete.
package struct HTTPRequest: Sendable {
  package var head: HTTPRequestHead
  package var target: RequestTarget
  package var body = ByteBuffer()

  /// Creates a request with a complete body.
  package init(head: HTTPRequestHead, target: RequestTarget, body: ByteBuffer = ByteBuffer()) {
    self.head = head
    self.target = target
    self.body = body
  }
}

/// A response. Its body is complete, or the first part of a body that is produced while the client reads it.
package struct HTTPResponse: Sendable {
  package var status: HTTPResponseStatus
  package var headers: HTTPHeaders = [:]
  package var body = ByteBuffer()
  /// Produces the parts after `body`; nil if `body` is complete.
  package var rest: (any HTTPBodySource)?

  /// Creates a response; `rest` supplies the chunks after `body`.
  package init(
    status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: ByteBuffer = ByteBuffer(),
    rest: (any HTTPBodySource)? = nil
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.rest = rest
  }
}

/// Produces a response body part by part, because the complete body is too large for memory.
package protocol HTTPBodySource: Sendable {
  /// Returns the next part, or nil after the last. Not called before the client accepted the previous part.
  func next() async throws -> ByteBuffer?
  /// Reports that the response was truncated because the server has no memory for the next part.
  func outOfMemory()
}
