// Receives the HTTP requests of one HTTP/1.1 connection or HTTP/2 stream, passes them to a service and writes the
// responses (see HTTPRequestHandler+Responses). `HTTPRequestState` decides when each step may follow.
//
// Invariants
//   1. A body beyond its limit, or beyond the limits of its connection, is rejected without being stored.
//   2. The end of the connection ends the exchange.
//   3. At most one exchange exists at a time.

import NIOCore
import NIOHTTP1

/// One HTTP/1.1 connection or HTTP/2 stream. Confined to its event loop.
final class HTTPRequestHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// A body that a service consumes while it arrives.
  private struct Upload {
    /// The number of the upload on this connection. The consumer of an earlier upload may still report bytes under its
    /// number.
    let number: Int
    let queue: BodyQueue
    var receivedBytes: Int
  }

  let connection: HTTPConnection
  let isHTTP2: Bool
  var context: ChannelHandlerContext?
  var state = HTTPRequestState()
  var head: HTTPRequestHead?
  var exchange: HTTPExchange?
  var delivery: ResponseDelivery?
  /// Completes when the last part of the response was flushed.
  var lastWrite: EventLoopFuture<Void>?

  private var plan = HTTPBodyPlan.collect(maximumBytes: 0)
  private var body = ByteBuffer()
  private var heldBytes = 0
  private var upload: Upload?
  private var uploadCount = 0
  /// Whether a read waits until the upload's consumer catches up.
  private var isReadPaused = false
  private var decompression: DecompressionQueue.Job?

  init(_ connection: HTTPConnection, isHTTP2: Bool) {
    self.connection = connection
    self.isHTTP2 = isHTTP2
  }

  // MARK: Channel events

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    connection.add(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The connection ends after the current response anyway.
    if state.isLast, state.isResponding { return }
    guard !isHTTP2, let error = error as? HTTPParserError else { return context.close(promise: nil) }
    if state.isResponding {
      // Malformed bytes follow a complete request: its response is sent, and the connection ends after it.
      if upload == nil { return state.setLast() }
      return context.close(promise: nil)
    }
    if head == nil {
      head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
      state.beginRequest()
    }
    reject(.malformed(error.reason))
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { exchange?.becameWritable() }
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is RequestBodyTimeout {
      reject(.bodyTimeout)
    } else if case .inputClosed? = event as? ChannelEvent, !isHTTP2 {
      let isAbandoned = exchange?.peerHalfClosed() ?? false
      if state.peerHalfClosed(isAbandoned: isAbandoned) {
        // The end of the previous response may be written, but not flushed.
        context.flush()
        context.close(promise: nil)
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func read(context: ChannelHandlerContext) {
    if upload?.queue.pauseIfFull() == true { isReadPaused = true } else { context.read() }
  }

  /// The port drains: an idle connection ends now, any other one after its response.
  func drain() {
    state.setLast()
    if let exchange {
      exchange.drain()
    } else if !isHTTP2, !state.hasRequest, !state.isResponding {
      context?.close(promise: nil)
    }
  }

  private func end() {
    context = nil
    connection.remove(self)
    endUpload(.broken)
    release()
    exchange?.end()
    exchange = nil
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let bytes): receive(bytes)
    case .end: endRequest(context)
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    // A pipelined request after the last response is not served.
    if state.isLast, state.isResponding { return }
    self.head = head
    body = ByteBuffer()
    state.beginRequest()
    // RFC 9112, section 3.2: a request without a Host, or with several, must be rejected.
    if head.version == .http1_1, !isHTTP2, head.headers[canonicalForm: "host"].count != 1 {
      return reject(.malformed("A request of HTTP/1.1 must have exactly one Host header."))
    }
    if let refusal = connection.port.origins.refusal(of: head) { return reject(.forbidden(refusal)) }
    plan = connection.service.bodyPlan(for: head, connection.port)
    if case .reject(let response) = plan { return respond(response) }
    let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    guard announced <= plan.maximumBytes else {
      return reject(.bodyTooLarge(bytes: announced, limit: plan.maximumBytes))
    }
    if !isHTTP2, head.headers.first(name: "expect")?.lowercased() == "100-continue" {
      let interim = HTTPResponseHead(version: head.version, status: .continue)
      context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
    }
  }

  private func receive(_ bytes: ByteBuffer) {
    guard state.acceptsBody else { return }
    let size = (upload?.receivedBytes ?? body.readableBytes) + bytes.readableBytes
    guard size <= plan.maximumBytes else {
      return reject(.bodyTooLarge(bytes: nil, limit: plan.maximumBytes))
    }
    do { try resize(to: heldBytes + bytes.readableBytes) } catch { return reject(error) }
    if upload != nil {
      upload?.receivedBytes = size
      upload?.queue.add(bytes)
      return
    }
    if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
    if case .stream(_, let threshold, let consume) = plan, size > threshold { beginUpload(consume) }
  }

  private func resize(to bytes: Int) throws(HTTPRequestFailure) {
    try connection.resizeRequest(from: heldBytes, to: bytes)
    heldBytes = bytes
  }

  private func endRequest(_ context: ChannelHandlerContext) {
    state.endRequest()
    guard let head, !state.isResponding else { return }
    state.serve()
    if let upload { return upload.queue.finish(.end) }
    guard body.readableBytes > 0, connection.service.acceptsCompressedBodies else {
      return serve(head, context)
    }
    switch ContentEncoding(head.headers) {
    case .identity: serve(head, context)
    case .compressed(let algorithm): decompress(algorithm, head, context)
    case .unsupported(let name): respond(connection.service.response(to: .unsupportedEncoding(name)))
    }
  }

  private func serve(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let body = body
    self.body = ByteBuffer()
    connection.service.serve(head, body, beginExchange(context), on: connection)
    // Over HTTP/2 a request may arrive after the port began to drain.
    if connection.isDraining { exchange?.drain() }
  }

  private func beginExchange(_ context: ChannelHandlerContext) -> HTTPExchange {
    precondition(exchange == nil, "invariant: at most one exchange of a connection exists at a time")
    let exchange = HTTPExchange(self, connection.memory, connection.pageMemory, on: context.eventLoop)
    self.exchange = exchange
    return exchange
  }

  /// Responds to a request before its body is complete, and ignores the remaining bytes of the body.
  private func reject(_ failure: HTTPRequestFailure) {
    guard !state.isResponding, head != nil else { return }
    endUpload(.broken)
    let exchange = exchange
    respond(connection.service.response(to: failure))
    exchange?.end()
  }

  // MARK: Uploads

  /// Passes the body to a consumer, beginning with the bytes that arrived.
  private func beginUpload(_ consume: (BodyQueue, HTTPExchange) -> Void) {
    guard let context else { return }
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    uploadCount += 1
    let number = uploadCount
    let queue = BodyQueue {
      eventLoop.execute { bound.value.resumeReading() }
    } onConsumed: { bytes in
      eventLoop.execute { bound.value.consumed(bytes, ofUpload: number) }
    }
    upload = Upload(number: number, queue: queue, receivedBytes: body.readableBytes)
    queue.add(body)
    body = ByteBuffer()
    consume(queue, beginExchange(context))
  }

  private func consumed(_ bytes: Int, ofUpload number: Int) {
    // If the response was written first, it has already released the bytes of the upload.
    guard upload?.number == number else { return }
    connection.releaseRequest(bytes)
    heldBytes -= bytes
    precondition(heldBytes >= 0, "invariant: a consumer releases no more bytes than it received")
  }

  private func endUpload(_ end: BodyQueue.Next) {
    upload?.queue.finish(end)
    upload = nil
    resumeReading()
  }

  private func resumeReading() {
    guard isReadPaused else { return }
    isReadPaused = false
    context?.read()
  }

  // MARK: Decompression

  /// Decompresses the body, a large one on another thread, and serves the request.
  private func decompress(
    _ algorithm: CompressionAlgorithm, _ head: HTTPRequestHead, _ context: ChannelHandlerContext
  ) {
    let limit = plan.maximumBytes
    do throws(Decompression.Failure) {
      if let decompressed = try Decompression.decompressIfSmall(body, algorithm, limit: limit) {
        return serve(.success(decompressed), head)
      }
    } catch {
      return serve(.failure(error), head)
    }
    let job = DecompressionQueue.Job(body, algorithm, limit: limit, on: context.eventLoop) { result in
      self.decompression = nil
      self.serve(result, head)
    }
    body = ByteBuffer()
    decompression = job
    connection.decompressions.add(job)
  }

  private func serve(_ decompressed: Result<ByteBuffer, Decompression.Failure>, _ head: HTTPRequestHead) {
    guard let context else { return }
    switch decompressed {
    case .failure(let failure):
      respond(connection.service.response(to: .decompression(failure, limit: plan.maximumBytes)))
    case .success(let bytes):
      do {
        try resize(to: bytes.readableBytes)
      } catch {
        return respond(connection.service.response(to: error))
      }
      body = bytes
      serve(head, context)
    }
  }

  /// Releases the request's head and body, with their memory. Called when the response is written.
  func releaseRequest() {
    endUpload(.broken)
    release()
    head = nil
  }

  /// Releases the memory of the body, once no thread uses it.
  private func release() {
    body = ByteBuffer()
    let held = heldBytes
    heldBytes = 0
    guard let decompression else { return connection.releaseRequest(held) }
    self.decompression = nil
    connection.decompressions.cancel(decompression) { [connection] in connection.releaseRequest(held) }
  }
}

extension HTTPBodyPlan {
  fileprivate var maximumBytes: Int {
    switch self {
    case .reject: 0
    case .collect(let maximumBytes), .stream(let maximumBytes, _, _): maximumBytes
    }
  }
}
