// The request and the response of one HTTP exchange, as services see them.

import NIOCore
import NIOHTTP1

/// A request that arrived completely.
package struct HTTPRequest: Sendable {
  var head: HTTPRequestHead
  var target: RequestTarget
  var body = ByteBuffer()
}

/// A response with its body, or with the first part of a body that is produced while the client reads it.
struct HTTPResponse: Sendable {
  var status: HTTPResponseStatus
  var headers: HTTPHeaders = [:]
  var body = ByteBuffer()
  /// Produces the parts after `body`; nil if `body` is complete.
  var rest: (any HTTPBodySource)?
}

/// Produces the parts of a body that is too large for memory.
protocol HTTPBodySource: Sendable {
  /// Returns the next part, or nil after the last. Not called before the client accepted the previous part.
  func next() async throws -> ByteBuffer?
  /// Reports that the response was truncated because the server has no memory for the next part.
  func outOfMemory()
}
