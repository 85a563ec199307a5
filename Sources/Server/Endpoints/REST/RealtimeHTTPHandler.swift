// One HTTP connection, or one HTTP/2 stream, of the Realtime Database's port. It collects a request and answers it
// as REST, turns it into an event stream (see RealtimeHTTPHandler+Events), or gives the connection over to a WebSocket.
//
// Invariants: one request at a time, and over HTTP/1.1 the next only once the answer was flushed; a body beyond the
// limit, or beyond what its connection may hold, is refused without being kept; what ends the connection ends its
// listen; once the port drains nothing long-lived begins.

import JSON
import Logging
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

final class RealtimeHTTPHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  let endpoint: RealtimeEndpoint
  let shared: RealtimeHTTPConnection
  let isHTTP2: Bool
  private(set) var context: ChannelHandlerContext?
  private(set) var head: HTTPRequestHead?
  private var body = ByteBuffer()
  private var heldBytes = 0
  private(set) var requestEnded = false
  private var isAnswering = false
  var isRefusing = false
  /// The request as which a large body may be taken while it arrives, and the body once it is.
  var streamable: RESTRequest?
  var arriving: ArrivingBody?
  var mostBodyBytes = 0
  var readIsHeld = false
  /// Whether the request becomes an event stream or a WebSocket, which end with the peer's direction.
  private var isOpening = false
  private var peerHasFinished = false
  /// Whether the last answer of the connection was flushed.
  private var hasSaidAll = false
  /// The making of an answer that nobody needs once its peer is gone.
  private var reading: ReadingTask?
  /// The event stream, once the request is one.
  var events: EventStreamState?
  var budget: OutputBudget
  /// The poll that the request is, while a session holds it.
  var heldPoll: HeldPoll?

  init(_ shared: RealtimeHTTPConnection, isHTTP2: Bool) {
    endpoint = shared.endpoint
    self.shared = shared
    self.isHTTP2 = isHTTP2
    budget = OutputBudget(limit: shared.endpoint.limits.data.queuedOutputBytes, isMeasurable: !isHTTP2)
  }

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
    // What follows on a connection that is told off already says nothing new.
    if isRefusing { return }
    guard !isHTTP2, let error = error as? HTTPParserError, !isAnswering else {
      return context.close(promise: nil)
    }
    if head == nil { head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/") }
    requestEnded = false
    refuse(RESTError(.badRequest, error.reason))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is RequestBodyIsLate {
      refuse(RESTError(.requestTimeout, "The request did not arrive whole in time."))
    } else if case .inputClosed? = event as? ChannelEvent {
      inputClosed(context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// The peer sends nothing more. What it asked is answered; of a stream that lasts, whoever asked is gone, also where
  /// it is only about to begin. What waits for its turn to be read is taken for abandoned, as almost all of it is: those that
  /// ask and go could otherwise have more waiting than is ever read.
  private func inputClosed(_ context: ChannelHandlerContext) {
    if isHTTP2 {
      if isAnswering { context.close(promise: nil) }
      return
    }
    peerHasFinished = true
    if let reading, reading.cancelIfWaiting() { return context.close(promise: nil) }
    if isOpening || hasSaidAll || !(isAnswering || isRefusing) { context.close(promise: nil) }
  }

  /// The port drains: what waits for nothing ends now, what is being answered is answered first.
  func drain() {
    if let events {
      finish(events)
    } else if let heldPoll {
      heldPoll.session.run { $0.drain() }
    } else if head == nil, !isAnswering {
      context?.close(promise: nil)
    }
  }

  /// Whether the port drains.
  var isDraining: Bool { shared.isDraining }

  /// The port's limits.
  var port: PortLimits { shared.port }

  /// What the connection holds of the server's memory.
  var memory: MemoryReservation { shared.memory }

  /// Ends everything on this side, whoever ended the connection or stream.
  func end() {
    context = nil
    shared.remove(self)
    release()
    endLongPoll()
    reading?.cancel()
    reading = nil
    arriving?.queue.finish(.broken)
    arriving = nil
    events?.end()
    events = nil
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let bytes): receive(bytes)
    case .end:
      requestEnded = true
      if let arriving {
        isAnswering = true
        return arriving.queue.finish(.end)
      }
      guard let head, !isAnswering else { return }
      do throws(RESTError) { try dispatch(head, context) } catch { answer(RESTResponse(error)) }
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    self.head = head
    body = ByteBuffer()
    isAnswering = false
    isOpening = false
    requestEnded = false
    let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    // A request with a small body, or none, is refused when it is whole, and leaves the connection as it is.
    if announced > Self.smallBodyBytes || head.headers.contains(name: "transfer-encoding"),
      let refusal = RESTRequest.refusal(of: head, endpoint)
    {
      return refuse(refusal)
    }
    expectBody(head)
    guard announced <= mostBodyBytes else { return refuse(RESTError(.writeTooBig)) }
    if !isHTTP2, head.headers.first(name: "expect")?.lowercased() == "100-continue" {
      let interim = HTTPResponseHead(version: head.version, status: .continue)
      context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
    }
  }

  private func receive(_ bytes: ByteBuffer) {
    guard !isRefusing, !isAnswering else { return }
    if let arriving { return receive(bytes, of: arriving) }
    let size = body.readableBytes + bytes.readableBytes
    guard size <= mostBodyBytes else { return refuse(RESTError(.writeTooBig)) }
    do { try hold(bytes.readableBytes) } catch { return refuse(error) }
    if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
    if size > endpoint.limits.arrivingBodyBytes, let streamable, let context {
      let begun = body
      body = ByteBuffer()
      beginArriving(streamable, begun, context)
    }
  }

  /// Holds so many bytes more of the request's body.
  func hold(_ bytes: Int) throws(RESTError) {
    try shared.hold(heldBytes + bytes, insteadOf: heldBytes)
    heldBytes += bytes
  }

  /// Gives back bytes of a body that is being taken while it arrives: they were written.
  func giveBack(_ bytes: Int) {
    // Behind the answer nothing is held.
    guard arriving != nil else { return }
    shared.release(bytes)
    heldBytes -= bytes
  }

  /// Answers a request that has not arrived whole, and takes no more of it.
  func refuse(_ error: RESTError) {
    guard !isAnswering else { return }
    arriving?.queue.finish(.broken)
    arriving = nil
    isRefusing = true
    answer(RESTResponse(error))
  }

  /// Gives back what the request's body held.
  private func release() {
    body = ByteBuffer()
    shared.release(heldBytes)
    heldBytes = 0
  }

  private func dispatch(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) throws(RESTError) {
    if let refusal = RESTRequest.refusal(of: head, endpoint) { throw refusal }
    if head.method == .OPTIONS { return answer(.preflight(head)) }
    let target = try RequestTarget(head.uri)
    switch target.rawPath {
    case "/.ws":
      guard !isHTTP2 else {
        throw RESTError(.badRequest, "WebSockets are served over HTTP/1.1 only.")
      }
      return open(try SocketRequest(head, target, endpoint), context)
    case "/.lp":
      return longPoll(try LongPollRequest(head, target, endpoint), context)
    case "/.inspect/databases.json" where head.method == .GET || head.method == .HEAD:
      return inspect(head, target)
    case let path where path.hasPrefix("/.settings/"):
      return set(try SettingsRequest(head, target, endpoint))
    case "/.inspect/coverage", "/.inspect/coverage.json":
      throw RESTError(
        .notImplemented, "Rules are not evaluated by this version of the server, so that none is covered.")
    case let path where path.hasPrefix("/.inspect/"):
      throw RESTError(.notImplemented, "\(path) is not supported by this server yet.")
    case let path where path.hasPrefix("/namespaces/"):
      if let request = try SettingsRequest(metadata: head, target, endpoint) { return set(request) }
    default: break
    }
    if isHTTP2, shared.owesReading { throw .unread(endpoint.limits.connectionAnswerBytes) }
    let request = try RESTRequest(head, target, endpoint)
    if request.wantsEventStream {
      beginOpening()
      return listen(request, context)
    }
    let service = RESTService(endpoint: endpoint)
    let body = body
    self.body = ByteBuffer()
    answer(reads: request.method == .get) { await service.respond(to: request, body: body) }
  }

  private func set(_ request: SettingsRequest) {
    let service = SettingsService(endpoint: endpoint)
    let body = body
    self.body = ByteBuffer()
    answer { await service.respond(to: request, body: body) }
  }

  private func inspect(_ head: HTTPRequestHead, _ target: RequestTarget) {
    let endpoint = endpoint
    answer {
      do {
        var probe = target
        probe.rawPath = "/.json"
        let caller = try RESTRequest(head, probe, endpoint).caller
        // The emulator's own page asks without a credential.
        guard caller == .administrator || endpoint.engine.allowsEverything(caller) else {
          throw RealtimeError.permissionDenied
        }
        let names = try await endpoint.engine.namespaces()
        let list = JSONValue.array(names.map { .object(["name": .string($0)]) })
        return RESTResponse(.ok, json: list.json())
      } catch {
        return RESTResponse(RESTError(error))
      }
    }
  }

  // MARK: Answers

  /// Makes an answer off the event loop and sends it.
  ///
  /// - Parameter reads: whether nothing is written, so that it need not be made for a peer that is gone.
  func answer(reads: Bool = false, _ make: @escaping @Sendable () async -> RESTResponse) {
    guard let context else { return }
    isAnswering = true
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    let run: @Sendable () async -> Void = {
      let response = await make()
      eventLoop.execute { this.value.answer(response) }
    }
    if reads {
      reading = RequestTasks.startReading(run)
    } else {
      _ = RequestTasks.start(run)
    }
  }

  func answer(_ response: RESTResponse) {
    guard let context, let request = head else { return }
    var response = response
    // Many may have been asked before the first was answered. What has been written is still said.
    if isHTTP2, shared.owesReading, request.method == .GET {
      response = RESTResponse(.unread(endpoint.limits.connectionAnswerBytes))
    }
    isAnswering = true
    isOpening = false
    head = nil
    reading = nil
    release()
    response = shared.counted(response, to: request)
    // A request to upgrade that is not upgraded leaves nothing that could be parsed behind it. Of HTTP/1.0 one is answered.
    let keepAlive =
      request.isKeepAlive && !shared.isDraining && !isRefusing && !peerHasFinished
      && !request.headers.contains(name: "upgrade") && (isHTTP2 || request.version == .http1_1)
    var headers = response.headers
    if response.rest != nil {
      // The head alone ends with itself, whatever length its value would have.
      if request.method != .HEAD { frameByChunks(&headers, request.version) }
    } else if response.status != .noContent, response.status != .notModified {
      headers.add(name: "content-length", value: String(response.body?.readableBytes ?? 0))
    }
    if !keepAlive, !isHTTP2 { headers.add(name: "connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: response.status, headers: headers)
    if let rest = response.rest, request.method != .HEAD {
      return deliver(head, response.body, rest, keepAlive, context)
    }
    deliver(head, request.method == .HEAD ? nil : response.body, keepAlive, context)
  }

  /// Writes an answer. Over HTTP/1.1 its end, behind which the next request is let in, follows once the rest was flushed.
  private func deliver(
    _ head: HTTPResponseHead, _ body: ByteBuffer?, _ keepAlive: Bool, _ context: ChannelHandlerContext
  ) {
    let delivery = AnswerDelivery(context.channel, isStream: isHTTP2, shared)
    var last = context.eventLoop.makePromise(of: Void.self)
    delivery.count(Self.headBytes, last.futureResult)
    context.write(wrapOutboundOut(.head(head)), promise: last)
    for piece in body.map(AnswerDelivery.pieces) ?? [] {
      last = context.eventLoop.makePromise(of: Void.self)
      delivery.count(piece.readableBytes, last.futureResult)
      context.write(wrapOutboundOut(.body(.byteBuffer(piece))), promise: last)
    }
    // The pieces are parts of the same memory, which is held until the last has gone out.
    let (held, memory) = (body?.readableBytes ?? 0, shared.memory)
    last.futureResult.assumeIsolated().whenComplete { _ in memory.release(held) }
    if isHTTP2 {
      let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
      if !keepAlive { close(context, after: written) }
      isAnswering = !requestEnded
    } else {
      // A request that was refused midway is not made whole by what still comes of it.
      let isWhole = requestEnded
      last.futureResult.assumeIsolated().whenComplete { result in
        guard case .success = result else { return self.context?.close(promise: nil) ?? () }
        self.finishAnswer(keepAlive, isWhole)
      }
      context.flush()
    }
    delivery.watch()
  }

  /// Says that the body comes in chunks, where there are any: over HTTP/1.0 only the end of the connection ends it.
  func frameByChunks(_ headers: inout HTTPHeaders, _ version: HTTPVersion) {
    if !isHTTP2, version == .http1_1 { headers.add(name: "transfer-encoding", value: "chunked") }
  }

  func finishAnswer(_ keepAlive: Bool, _ isWhole: Bool) {
    guard let context else { return }
    let keepAlive = keepAlive && !peerHasFinished
    isAnswering = !requestEnded
    let written = context.eventLoop.makePromise(of: Void.self)
    if !keepAlive {
      hasSaidAll = true
      requestEnded = isWhole || peerHasFinished
      close(context, after: written.futureResult)
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
  }

  /// A body that is rather read than refused, which ends the connection.
  private static let smallBodyBytes = 16 << 10

  /// What an answer's head counts as: about its size, so that many small answers count too.
  private static let headBytes = 256

  /// Ends the connection or stream behind the last answer.
  func close(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>) {
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
      written.whenComplete { _ in channel.closeLingering(grace) }
    }
  }

  /// Begins something that ends with the peer's direction.
  func beginOpening() {
    isAnswering = true
    isOpening = true
  }
}
