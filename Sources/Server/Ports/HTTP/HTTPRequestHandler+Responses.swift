// Writes responses: framing, the order of writes and flushes, and the end of the connection.
//
// Invariants
//   1. Over HTTP/1.1 the end of a response is written after all earlier parts were flushed. The next request may begin
//      after it.
//   2. Bytes of a response count against the connection's memory until the socket has accepted them.

import NIOCore
import NIOHTTP1

extension HTTPRequestHandler: HTTPExchangeOutput {
  /// The bytes that are counted for a response's head, so that many small responses also reach the memory limits.
  private static let headBytes = 256

  var channel: (any Channel)? { context?.channel }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  var method: HTTPMethod { head?.method ?? .GET }

  /// An HTTP/2 stream has the addresses of its connection.
  var localAddress: SocketAddress? { connectionChannel?.localAddress }

  var remoteAddress: SocketAddress? { connectionChannel?.remoteAddress }

  private var connectionChannel: (any Channel)? { isHTTP2 ? context?.channel.parent : context?.channel }

  func respond(_ response: HTTPResponse) {
    guard let context, let request = head else { return }
    exchange = nil
    let response = replacement(of: response, request) ?? response
    var headers = response.headers
    // A body with a `rest` has an unknown length. The response to HEAD then has no content-length either.
    if response.rest == nil, response.status != .noContent, response.status != .notModified {
      headers.add(name: "content-length", value: String(response.body.readableBytes))
    }
    writeHead(response.status, headers, request, context)
    if request.method != .HEAD { writeBody(response.body, context) }
    finishResponse(context)
  }

  /// Returns the error that replaces the response to a GET: the server lacks the memory for the response, or the client has
  /// too many unread responses. The response to any other method reports completed work and is always sent.
  private func replacement(of response: HTTPResponse, _ request: HTTPRequestHead) -> HTTPResponse? {
    guard request.method == .GET else { return nil }
    if isHTTP2, let limit = connection.exceededUnreadLimit {
      return connection.service.response(to: .tooManyUnreadBytes(limit: limit))
    }
    guard !connection.memory.hasRoom(for: response.body.readableBytes) else { return nil }
    return connection.service.response(to: .outOfMemory(connection.memory.budget.refusal))
  }

  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    guard let context, let request = head else { return }
    var headers = headers
    addFraming(to: &headers, request)
    writeHead(status, headers, request, context)
    context.flush()
    delivery?.startTimeout()
  }

  func beginEventStream(_ headers: HTTPHeaders) {
    guard let context, let request = head else { return }
    var headers = headers
    addFraming(to: &headers, request)
    // No `ResponseDelivery` watches an event stream: the service that writes it enforces separate limits.
    state.beginResponse(closes: true)
    let head = HTTPResponseHead(version: request.version, status: .ok, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
  }

  /// Over HTTP/1.0 only the end of the connection ends a body of unknown length.
  private func addFraming(to headers: inout HTTPHeaders, _ request: HTTPRequestHead) {
    if !isHTTP2, request.version == .http1_1 { headers.add(name: "transfer-encoding", value: "chunked") }
  }

  func write(_ bytes: ByteBuffer) {
    guard let context else { return }
    writeBody(bytes, context)
    context.flush()
    delivery?.startTimeout()
  }

  func writeEvent(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
    guard let context else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
    context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: promise)
  }

  func finish() {
    guard let context else { return }
    exchange = nil
    finishResponse(context)
  }

  func abort() {
    exchange = nil
    context?.close(promise: nil)
  }

  func upgrade(_ headers: HTTPHeaders, to handlers: (ChannelPipeline.SynchronousOperations) throws -> Void) {
    guard let context, let request = head else { return }
    exchange = nil
    let head = HTTPResponseHead(version: request.version, status: .switchingProtocols, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    let channel = context.channel
    do {
      try channel.allowHalfClosure(false)
      try handlers(channel.pipeline.syncOperations)
    } catch {
      channel.close(promise: nil)
    }
  }

  // MARK: Writing

  private func writeHead(
    _ status: HTTPResponseStatus, _ headers: HTTPHeaders, _ request: HTTPRequestHead,
    _ context: ChannelHandlerContext
  ) {
    var headers = headers
    connection.service.addHeaders(to: &headers, respondingTo: request)
    // NIO's decoder parses nothing after a request with an `upgrade` header. An HTTP/1.0 connection serves one request,
    // since its end may mark the end of the body.
    let closes =
      !request.isKeepAlive || connection.isDraining || request.headers.contains(name: "upgrade")
      || !isHTTP2 && request.version != .http1_1
    state.beginResponse(closes: closes)
    if state.isLast, !isHTTP2 { headers.add(name: "connection", value: "close") }
    delivery = ResponseDelivery(context.channel, isStream: isHTTP2, connection)
    let head = HTTPResponseHead(version: request.version, status: status, headers: headers)
    write(.head(head), bytes: Self.headBytes, context)
    reserve(Self.headBytes)
  }

  /// Writes a body in parts, so that `ResponseDelivery` can measure the progress of a client that reads slowly.
  private func writeBody(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    guard bytes.readableBytes > 0 else { return }
    for part in ResponseDelivery.parts(of: bytes) {
      write(.body(.byteBuffer(part)), bytes: part.readableBytes, context)
    }
    // All parts share one buffer, which stays in memory until the last part was flushed.
    reserve(bytes.readableBytes)
  }

  private func write(_ part: HTTPServerResponsePart, bytes: Int, _ context: ChannelHandlerContext) {
    let promise = context.eventLoop.makePromise(of: Void.self)
    delivery?.track(bytes, promise.futureResult)
    lastWrite = promise.futureResult
    context.write(wrapOutboundOut(part), promise: promise)
  }

  /// Counts bytes until the last write was flushed.
  private func reserve(_ bytes: Int) {
    let memory = connection.memory
    memory.reserveUnchecked(bytes)
    lastWrite?.assumeIsolated().whenComplete { _ in memory.release(bytes) }
  }

  /// Ends a response whose parts are written.
  private func finishResponse(_ context: ChannelHandlerContext) {
    let delivery = delivery
    self.delivery = nil
    state.finishResponse()
    releaseRequest()
    let written = lastWrite ?? context.eventLoop.makeSucceededVoidFuture()
    lastWrite = nil
    if isHTTP2 {
      let ended = context.writeAndFlush(wrapOutboundOut(.end(nil)))
      continueConnection(context, after: ended)
    } else {
      written.assumeIsolated().whenComplete { result in
        guard let context = self.context else { return }
        guard case .success = result else { return context.close(promise: nil) }
        // The state changes before the write, since the next request may begin during the write.
        let promise = context.eventLoop.makePromise(of: Void.self)
        self.continueConnection(context, after: promise.futureResult)
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: promise)
      }
      context.flush()
    }
    delivery?.startTimeout()
  }

  /// Prepares for the next request, or ends the connection or stream when `written` completes.
  private func continueConnection(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>) {
    let channel = context.channel
    switch state.flushedResponse() {
    case .nextRequest: break
    case .close:
      // An HTTP/2 stream ends by itself when both sides have ended.
      if !isHTTP2 { written.whenComplete { _ in channel.close(promise: nil) } }
    case .linger where isHTTP2:
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      written.whenSuccess { bound.value.pipeline.syncOperations.stopHTTP2Request() }
    case .linger:
      let timeout = connection.port.lingerTimeout
      written.assumeIsolated().whenComplete { _ in
        self.state.linger()
        if self.state.isHalfClosed { channel.close(promise: nil) } else { channel.closeLingering(timeout) }
      }
    }
  }
}
