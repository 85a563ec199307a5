// One HTTP/1.1 connection, or one HTTP/2 stream, of plain HTTP on the Firestore port. It collects a request, hands it to
// the service, and writes what that answers.
//
// Invariants: one request at a time, and over HTTP/1.1 the next only once the answer was flushed; a body beyond the
// limit, or beyond what its connection may hold, is refused without being kept; what ends the connection ends its
// exchange.

import FirestoreModel
import NIOCore
import NIOHTTP1

final class FirestoreHTTPHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let shared: FirestoreHTTPConnection
  private let isHTTP2: Bool
  private var context: ChannelHandlerContext?
  private var head: HTTPRequestHead?
  private var body = ByteBuffer()
  private var bodyLimit = 0
  private var heldBytes = 0
  /// The body that is being unpacked elsewhere.
  private var unpacking: DecompressionQueue.Job?
  private var requestEnded = false
  /// Whether this connection or stream takes nothing more after the answer under way.
  private var isLast = false
  /// Whether a request was given its answer, or is being served, and what comes of it is dropped.
  private var isAnswered = false
  /// Whether an answer was given whole and its end has yet to follow.
  private var isEnding = false
  /// Whether the last answer was said, and only the end of what the peer sends is waited for.
  private var isLingering = false
  private var peerHasFinished = false
  private var exchange: HTTPExchange?
  private var delivery: AnswerDelivery?

  init(_ shared: FirestoreHTTPConnection, isHTTP2: Bool) {
    self.shared = shared
    self.isHTTP2 = isHTTP2
  }

  // MARK: Channel events

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    shared.add(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // What follows on a connection that takes no more requests says nothing new.
    if isLast, isAnswered { return }
    guard !isHTTP2, let error = error as? HTTPParserError, exchange == nil, delivery == nil else {
      return context.close(promise: nil)
    }
    if head == nil { head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/") }
    isAnswered = false
    requestEnded = false
    refuse(.invalidArgument(error.reason))
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { exchange?.becameWritable() }
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is RequestBodyIsLate {
      refuse(FirestoreError(.deadlineExceeded, "The request did not arrive whole in time."), .requestTimeout)
    } else if case .inputClosed? = event as? ChannelEvent, !isHTTP2 {
      inputClosed(context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// The peer sends nothing more. What it asked is answered, and nothing comes behind; of an answer that lasts, whoever
  /// asked is gone.
  private func inputClosed(_ context: ChannelHandlerContext) {
    peerHasFinished = true
    isLast = true
    let isAnswering = isEnding || head != nil && isAnswered
    guard isLingering || !isAnswering || exchange?.endsWithPeer == true else { return }
    // The end of an answer before may have been written and not flushed.
    context.flush()
    context.close(promise: nil)
  }

  /// The port drains: what waits for nothing ends now, what is being answered is answered first.
  func drain() {
    isLast = true
    if let exchange {
      exchange.drain()
    } else if !isHTTP2, head == nil {
      context?.close(promise: nil)
    }
  }

  private func end() {
    context = nil
    shared.remove(self)
    release()
    exchange?.end()
    exchange = nil
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let bytes): receive(bytes)
    case .end:
      requestEnded = true
      guard let head, !isAnswered else { return }
      // Nothing is nothing, however it is said to be packed.
      guard body.readableBytes > 0 else { return serve(head, context) }
      switch HTTPPacking(head.headers) {
      case .none: serve(head, context)
      case .packed(let packing): unpack(packing, head, context)
      case .unknown(let name): write(HTTPPacking.refusal(of: name))
      }
    }
  }

  /// Unpacks the body, at once or on a thread that may be kept busy, then serves the request.
  private func unpack(_ packing: CompressionAlgorithm, _ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    isAnswered = true
    let limit = bodyLimit
    do throws(Decompression.Failure) {
      if let unpacked = try Decompression.atOnce(body, packing, limit: limit) {
        return serveUnpacked(.success(unpacked), head)
      }
    } catch {
      return serveUnpacked(.failure(FirestoreError(error, limit)), head)
    }
    let job = DecompressionQueue.Job(body, packing, limit: limit, on: context.eventLoop) { outcome in
      self.unpacking = nil
      self.serveUnpacked(outcome.mapError { FirestoreError($0, limit) }, head)
    }
    body = ByteBuffer()
    unpacking = job
    shared.inflations.add(job)
  }

  private func serveUnpacked(_ unpacked: Result<ByteBuffer, FirestoreError>, _ head: HTTPRequestHead) {
    guard let context else { return }
    do throws(FirestoreError) {
      let unpacked = try unpacked.get()
      try shared.hold(unpacked.readableBytes, insteadOf: heldBytes)
      heldBytes = unpacked.readableBytes
      body = unpacked
      serve(head, context)
    } catch {
      write(.error(error))
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    self.head = head
    body = ByteBuffer()
    isAnswered = false
    requestEnded = false
    if let refusal = shared.service.refusal(of: head) {
      isLast = true
      return write(refusal)
    }
    bodyLimit = FirestoreRoute.bodyLimit(of: head.uri, shared.port)
    let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    guard announced <= bodyLimit else { return refuseTooLarge(announced) }
    if !isHTTP2, head.headers.first(name: "expect")?.lowercased() == "100-continue" {
      let interim = HTTPResponseHead(version: head.version, status: .continue)
      context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
    }
  }

  private func receive(_ bytes: ByteBuffer) {
    guard !isAnswered else { return }
    let size = body.readableBytes + bytes.readableBytes
    guard size <= bodyLimit else { return refuseTooLarge(nil) }
    do { try shared.hold(size, insteadOf: heldBytes) } catch { return refuse(error) }
    heldBytes = size
    if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
  }

  /// - Parameter bytes: what the body has, where it was announced; else it is cut off here.
  private func refuseTooLarge(_ bytes: Int?) {
    refuse(FirestoreRequestLimits.tooLarge(bytes, bodyLimit))
  }

  /// Answers a request that has not arrived whole, and takes no more of it.
  private func refuse(_ error: FirestoreError, _ status: HTTPResponseStatus? = nil) {
    guard !isAnswered, head != nil else { return }
    isLast = true
    write(.error(error, as: status))
  }

  /// Gives back what the request's body held, once nothing holds it.
  private func release() {
    body = ByteBuffer()
    let held = heldBytes
    heldBytes = 0
    guard let unpacking else { return shared.release(held) }
    self.unpacking = nil
    shared.inflations.giveUp(unpacking) { [shared] in shared.release(held) }
  }

  private func serve(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    isAnswered = true
    do throws(RESTError) {
      let request = HTTPRequest(head: head, target: try RequestTarget(head.uri), body: body)
      body = ByteBuffer()
      let exchange = HTTPExchange(self, on: context.eventLoop)
      self.exchange = exchange
      shared.service.serve(request, HTTPResponder(exchange), on: shared)
      // Over HTTP/2 a request may cross the news that the port drains.
      if shared.isDraining { self.exchange?.drain() }
    } catch {
      write(.error(.invalidArgument(error.message)))
    }
  }
}

// MARK: Answers

extension FirestoreHTTPHandler: HTTPExchangeOutput {
  /// What an answer's head counts as: about its size, so that many small answers count too.
  private static let headBytes = 256

  var isWritable: Bool { context?.channel.isWritable ?? false }

  /// A stream of HTTP/2 has the address of its connection.
  var localAddress: SocketAddress? { (isHTTP2 ? context?.channel.parent : context?.channel)?.localAddress }

  func write(_ answer: HTTPResponse) {
    guard let context, let request = head else { return }
    isAnswered = true
    exchange = nil
    // An answer that only tells what there is gives way where there is no room to keep it until it is read.
    let gives = request.method == .GET && !shared.memory.hasRoom(for: answer.body.readableBytes)
    let answer = gives ? .error(shared.noMemory) : answer
    var headers = answer.headers
    headers.add(name: "content-length", value: String(answer.body.readableBytes))
    let written = writeHead(answer.status, headers, request, context)
    finish(written, request.method == .HEAD ? ByteBuffer() : answer.body, context)
  }

  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    guard let context, let request = head else { return }
    _ = writeHead(status, headers, request, context)
    context.flush()
    delivery?.watch()
  }

  func write(_ bytes: ByteBuffer) {
    guard let context, let delivery else { return }
    for piece in AnswerDelivery.pieces(of: bytes) { _ = write(piece, delivery, context) }
    context.flush()
    delivery.watch()
  }

  func finish() {
    guard let context else { return }
    exchange = nil
    let flushed = context.eventLoop.makeSucceededVoidFuture()
    finish(flushed, ByteBuffer(), context)
  }

  func abort() {
    exchange = nil
    context?.close(promise: nil)
  }

  private func writeHead(
    _ status: HTTPResponseStatus, _ headers: HTTPHeaders, _ request: HTTPRequestHead,
    _ context: ChannelHandlerContext
  ) -> EventLoopFuture<Void> {
    var headers = headers
    headers.addCORS(request)
    // Of HTTP/1.0 one request is answered: it has no chunks, so that the end of the connection may have to end a body.
    if !isHTTP2, request.version != .http1_1 { isLast = true }
    isLast = isLast || !request.isKeepAlive || shared.isDraining
    if isLast, !isHTTP2 { headers.add(name: "connection", value: "close") }
    let delivery = AnswerDelivery(context.channel, isStream: isHTTP2, shared)
    self.delivery = delivery
    let written = context.eventLoop.makePromise(of: Void.self)
    delivery.count(Self.headBytes, written.futureResult)
    let head = HTTPResponseHead(version: request.version, status: status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: written)
    return written.futureResult
  }

  private func write(
    _ piece: ByteBuffer, _ delivery: AnswerDelivery, _ context: ChannelHandlerContext
  ) -> EventLoopFuture<Void> {
    let written = context.eventLoop.makePromise(of: Void.self)
    delivery.count(piece.readableBytes, written.futureResult)
    context.write(wrapOutboundOut(.body(.byteBuffer(piece))), promise: written)
    return written.futureResult
  }

  /// Writes the rest of an answer and its end. Over HTTP/1.1 the end, behind which the next request is let in, follows
  /// once the rest was flushed.
  private func finish(
    _ written: EventLoopFuture<Void>, _ rest: ByteBuffer, _ context: ChannelHandlerContext
  ) {
    guard let delivery else { return }
    release()
    head = nil
    var last = written
    for piece in AnswerDelivery.pieces(of: rest) { last = write(piece, delivery, context) }
    if isHTTP2 {
      let ended = context.writeAndFlush(wrapOutboundOut(.end(nil)))
      if isLast { close(context, after: ended) }
    } else {
      // A request that was refused midway is not made whole by what still comes of it.
      let isWhole = requestEnded
      isEnding = true
      last.assumeIsolated().whenComplete { result in
        guard case .success = result else { return self.context?.close(promise: nil) ?? () }
        self.writeEnd(isWhole)
      }
      context.flush()
    }
    delivery.watch()
    self.delivery = nil
  }

  private func writeEnd(_ isWhole: Bool) {
    guard let context else { return }
    let written = context.eventLoop.makePromise(of: Void.self)
    if isLast {
      requestEnded = isWhole || peerHasFinished
      close(context, after: written.futureResult)
    }
    // Behind it the next request may begin at once.
    isEnding = isLast
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
  }

  /// Ends the connection or stream behind the last answer.
  private func close(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>) {
    let channel = context.channel
    if isHTTP2 {
      // A stream ends by itself once both sides have said all they have to say.
      guard !requestEnded else { return }
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      written.whenSuccess { bound.value.pipeline.syncOperations.stopRequestOfHTTP2() }
    } else if requestEnded {
      written.whenComplete { _ in channel.close(promise: nil) }
    } else {
      let grace = shared.port.lingerTimeout
      written.assumeIsolated().whenComplete { _ in
        self.isLingering = true
        if self.peerHasFinished { channel.close(promise: nil) } else { channel.closeLingering(grace) }
      }
    }
  }
}

extension HTTPHeaders {
  /// The longest header of a request that its answer repeats. Two of them have to fit into one frame of HTTP/2, where
  /// some bytes take four: headers that do not end the connection.
  private static let reflectedBytes = 2 << 10

  /// Reflects the origin, as the web SDK's credentialed requests need.
  fileprivate mutating func addCORS(_ request: HTTPRequestHead) {
    guard let origin = request.headers.first(name: "origin"), origin.utf8.count <= Self.reflectedBytes else {
      return
    }
    add(name: "access-control-allow-origin", value: origin)
    add(name: "access-control-allow-credentials", value: "true")
    add(name: "vary", value: "Origin")
    guard request.method == .OPTIONS else { return }
    add(name: "access-control-allow-methods", value: "DELETE,GET,HEAD,PATCH,POST,PUT")
    if let requested = request.headers.first(name: "access-control-request-headers"),
      requested.utf8.count <= Self.reflectedBytes
    {
      add(name: "access-control-allow-headers", value: requested)
    }
    if request.headers.contains(name: "access-control-request-private-network") {
      add(name: "access-control-allow-private-network", value: "true")
    }
  }
}
