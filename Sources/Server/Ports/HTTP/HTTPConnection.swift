// The state that the requests of one HTTP connection share: limits of requests and responses, decompression, and whether
// the port is draining (ending gracefully). Requests run one after another (HTTP/1.1) or concurrently (HTTP/2).
//
// Invariant: the bodies of all requests without a response stay within the connection's limit and the server's memory.

import NIOCore
import NIOHTTP1

/// One HTTP connection. Confined to its event loop, except for its constants.
package final class HTTPConnection: ResponseAccounting {
  let service: any HTTPService
  package let port: PortLimits
  package let memory: MemoryReservation
  /// The memory of the query results that this connection's streams hold.
  package let pageMemory: PageMemory
  private(set) lazy var decompressions = DecompressionQueue()
  package private(set) lazy var largeResponses = LargeResponseQueue(self)
  package private(set) var isDraining = false
  private(set) var writtenPartCount = 0
  /// The response bytes that are not yet written to the socket.
  private(set) var unreadResponseBytes = 0
  private let limits: HTTPConnectionLimits
  private var requestBytes = 0
  private var handlers: [ObjectIdentifier: HTTPRequestHandler] = [:]

  init(_ service: any HTTPService, _ port: PortLimits, _ channel: any Channel) {
    self.service = service
    self.port = port
    limits = service.connectionLimits(port)
    memory = MemoryReservation(port, of: channel)
    pageMemory = PageMemory(memory.holder, port, on: channel.eventLoop)
  }

  // MARK: Requests

  /// Changes the counted bytes of one request from `old` to `new`. Changes nothing if it throws.
  func resizeRequest(from old: Int, to new: Int) throws(HTTPRequestFailure) {
    let total = requestBytes + new - old
    if new > old, total > limits.maximumRequestBytes {
      throw .tooManyRequestBytes(limit: limits.maximumRequestBytes)
    }
    guard memory.resize(from: old, to: new) else { throw .outOfMemory(memory.budget.refusal) }
    requestBytes = total
  }

  /// Releases bytes of a request.
  func releaseRequest(_ bytes: Int) {
    precondition(
      bytes <= requestBytes, "invariant: a connection releases no more request bytes than it holds")
    requestBytes -= bytes
    memory.release(bytes)
  }

  // MARK: Responses

  var responseTimeout: TimeAmount { port.responseTimeout }

  func addUnreadBytes(_ bytes: Int) { unreadResponseBytes += bytes }

  func removeUnreadBytes(_ bytes: Int) {
    unreadResponseBytes -= bytes
    precondition(unreadResponseBytes >= 0, "invariant: unread response bytes are released once")
    writtenPartCount &+= 1
    largeResponses.startNext()
  }

  /// The limit of unread response bytes if it is exceeded; otherwise nil.
  package var exceededUnreadLimit: Int? {
    limits.maximumUnreadResponseBytes.flatMap { unreadResponseBytes >= $0 ? $0 : nil }
  }

  // MARK: Drain

  func add(_ handler: HTTPRequestHandler) { handlers[ObjectIdentifier(handler)] = handler }

  func remove(_ handler: HTTPRequestHandler) { handlers[ObjectIdentifier(handler)] = nil }

  /// Called when the port begins to drain (to shut down gracefully).
  func drain() {
    guard !isDraining else { return }
    isDraining = true
    for handler in Array(handlers.values) { handler.drain() }
  }
}

/// Notifies the `HTTPConnection` that the port drains, and ends its waiting streams at the end of the connection. It
/// precedes NIO's `HTTPServerPipelineHandler` in the pipeline, because that handler does not forward the drain event during a
/// request.
final class HTTPDrainHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  private let connection: HTTPConnection

  init(_ connection: HTTPConnection) { self.connection = connection }

  func handlerRemoved(context: ChannelHandlerContext) { connection.pageMemory.close() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if event is ChannelShouldQuiesceEvent { connection.drain() }
  }
}
