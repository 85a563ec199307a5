// One HTTP connection, or one HTTP/2 stream, of the Realtime Database's port. It collects a request and answers it
// as REST, turns it into an event stream, or gives the connection over to a WebSocket.
//
// Invariants: one request at a time; a body beyond the limit ends the connection without being kept; what
// ends the connection ends its listen.

import Logging
import NIOCore
import NIOHTTP1
import NIOWebSocket
import RealtimeEngine
import RealtimeModel

final class RealtimeHTTPHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  let endpoint: RealtimeEndpoint
  private let mayUpgrade: Bool
  private var context: ChannelHandlerContext?
  private var head: HTTPRequestHead?
  private var body = ByteBuffer()
  private var isAnswering = false
  private var isDraining = false
  private var isRefusing = false

  // An event stream, once the request is one.
  private var stream: EventStream?
  private var streamBegan = false
  private var connection: RealtimeConnection?
  private var sink: LoopSink?
  private var keepAlive: RepeatedTask?
  private var budget: OutputBudget

  init(endpoint: RealtimeEndpoint, mayUpgrade: Bool) {
    self.endpoint = endpoint
    self.mayUpgrade = mayUpgrade
    budget = OutputBudget(limit: endpoint.limits.data.queuedOutputBytes, isMeasurable: mayUpgrade)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      isDraining = true
      if stream != nil || head == nil { context.close(promise: nil) }
    } else if case .inputClosed? = event as? ChannelEvent, stream != nil {
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func end() {
    context = nil
    keepAlive?.cancel()
    keepAlive = nil
    connection?.close()
    connection = nil
    sink?.detach()
    sink = nil
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      body = ByteBuffer()
      isAnswering = false
      if head.headers.first(name: "expect")?.lowercased() == "100-continue", mayUpgrade {
        let interim = HTTPResponseHead(version: head.version, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
      }
    case .body(let bytes):
      guard !isRefusing else { return }
      guard body.readableBytes + bytes.readableBytes <= endpoint.limits.data.restWriteBytes else {
        isRefusing = true
        body = ByteBuffer()
        answer(RESTResponse(RESTError(.writeTooBig)))
        return
      }
      if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
    case .end:
      guard let head, !isAnswering else { return }
      do throws(RESTError) { try dispatch(head, context) } catch { answer(RESTResponse(error)) }
    }
  }

  private func dispatch(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) throws(RESTError) {
    let target = try RequestTarget(head.uri)
    switch target.rawPath {
    case "/.ws":
      guard mayUpgrade else {
        throw RESTError(.badRequest, "WebSockets are served over HTTP/1.1 only.")
      }
      return open(try SocketRequest(head, target, endpoint), context)
    case "/.lp":
      throw RESTError(
        .notImplemented, "Long polling is not supported by this server yet; connect by WebSocket.")
    case "/.inspect/databases.json" where head.method == .GET:
      return inspect(head, target)
    case let path where path.hasPrefix("/.settings/") || path.hasPrefix("/.inspect/"):
      throw RESTError(.notImplemented, "\(path) is not supported by this server yet.")
    default: break
    }
    if head.method == .OPTIONS { return answer(.preflight(head)) }
    let request = try RESTRequest(head, target, endpoint)
    if request.wantsEventStream { return listen(request, context) }
    let service = RESTService(endpoint: endpoint)
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
        guard try RESTRequest(head, probe, endpoint).caller == .administrator else {
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
  private func answer(_ make: @escaping @Sendable () async -> RESTResponse) {
    guard let context else { return }
    isAnswering = true
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    Task {
      let response = await make()
      eventLoop.execute { this.value.answer(response) }
    }
  }

  private func answer(_ response: RESTResponse) {
    guard let context, let request = head else { return }
    isAnswering = true
    head = nil
    // A request to upgrade that is not upgraded leaves nothing that could be parsed behind it.
    let keepAlive =
      request.isKeepAlive && !isDraining && !isRefusing && !request.headers.contains(name: "upgrade")
    var headers = response.headers
    if response.status != .noContent, response.status != .notModified {
      headers.add(name: "content-length", value: String(response.body?.readableBytes ?? 0))
    }
    if !keepAlive, mayUpgrade { headers.add(name: "connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: response.status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if let body = response.body, request.method != .HEAD {
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    }
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    if !keepAlive {
      let channel = context.channel
      written.whenComplete { _ in channel.close(promise: nil) }
    }
  }

  // MARK: WebSockets

  private func open(_ request: SocketRequest, _ context: ChannelHandlerContext) {
    isAnswering = true
    if let database = endpoint.openDatabase(request.namespace) {
      return upgrade(request, database)
    }
    let endpoint = endpoint
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    Task {
      do {
        let database = try await endpoint.database(request.namespace)
        eventLoop.execute { this.value.upgrade(request, database) }
      } catch {
        let response = RESTResponse(RESTError(error))
        eventLoop.execute { this.value.answer(response) }
      }
    }
  }

  private func upgrade(_ request: SocketRequest, _ database: RealtimeDatabase) {
    guard let context, let head else { return }
    let headers: HTTPHeaders = [
      "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": request.accept,
    ]
    let response = HTTPResponseHead(version: head.version, status: .switchingProtocols, headers: headers)
    context.write(wrapOutboundOut(.head(response)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    let channel = context.channel
    do {
      try channel.pipeline.syncOperations.replaceRealtimeHTTP1(
        by: ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: endpoint.limits.messageBytes)),
        SocketHandler(endpoint: endpoint, database: database, request: request))
    } catch {
      channel.close(promise: nil)
    }
  }

  // MARK: Event streams

  private func listen(_ request: RESTRequest, _ context: ChannelHandlerContext) {
    isAnswering = true
    let endpoint = endpoint
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    Task {
      do {
        let database = try await endpoint.database(request.namespace)
        eventLoop.execute { this.value.begin(request, database) }
      } catch {
        let response = RESTResponse(RESTError(error))
        eventLoop.execute { this.value.answer(response) }
      }
    }
  }

  private func begin(_ request: RESTRequest, _ database: RealtimeDatabase) {
    guard let context else { return }
    let stream = EventStream(
      path: request.path, query: request.query ?? .default, isExport: request.isExport)
    self.stream = stream
    let sink = LoopSink(endpoint.sinkGroup(of: context.eventLoop), self)
    self.sink = sink
    let connection = database.connect(as: request.caller, to: sink)
    self.connection = connection
    connection.listen(stream.path, query: stream.query, tag: stream.tag, hash: nil, request: 0)
  }

  private func beginResponse(_ context: ChannelHandlerContext) {
    streamBegan = true
    let headers: HTTPHeaders = [
      "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache",
      "access-control-allow-origin": "*",
    ]
    let head = HTTPResponseHead(version: head?.version ?? .http1_1, status: .ok, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    let period = endpoint.limits.eventStreamKeepAlive
    let this = NIOLoopBound(self, eventLoop: context.eventLoop)
    keepAlive = context.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
      this.value.send(EventStream.keepAlive)
      this.value.flush(EventStream.keepAlive.readableBytes)
    }
  }

  private func send(_ events: ByteBuffer) {
    context?.write(wrapOutboundOut(.body(.byteBuffer(events))), promise: nil)
  }

  private func flush(_ bytes: Int) {
    guard let context else { return }
    context.flush()
    if budget.isExceeded(writing: bytes, to: context.channel) {
      endpoint.log.info("event stream cut off: its peer does not read")
      // A stream of HTTP/2 closes only when its peer lets it; nothing more may be queued until then.
      let channel = context.channel
      end()
      channel.close(promise: nil)
    }
  }
}

extension RealtimeHTTPHandler: LoopReceiver {
  func receive(_ outputs: [RealtimeOutput]) {
    var bytes = 0
    for output in outputs {
      guard let context, let step = stream?.receive(output) else { return }
      switch step {
      case .nothing: break
      case .refuse(let error):
        stream = nil
        connection?.close()
        answer(RESTResponse(error))
        return
      case .send(let events):
        if !streamBegan { beginResponse(context) }
        bytes += events.readableBytes
        send(events)
      case .finish(let events):
        if !streamBegan { beginResponse(context) }
        send(events)
        stream = nil
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
        return
      }
    }
    flush(bytes)
  }
}
