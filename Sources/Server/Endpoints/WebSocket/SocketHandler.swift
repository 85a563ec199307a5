// One WebSocket connection of protocol v5, from the hello to the close.
//
// Invariants
//   1. Requests go to the engine in the order in which they came; answers leave in that order too, also those
//      that the handler gives itself.
//   2. Nothing is read while too many requests, or too large ones, wait for answers or the peer does not read: a
//      connection holds a bounded number and size of requests, and output beyond its budget ends it.
//   3. A silent connection is asked, then ended; whatever ends it, its session ends in the engine.

import Logging
import NIOCore
import NIOWebSocket
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class SocketHandler: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = Never
  typealias OutboundOut = ByteBuffer

  let endpoint: RealtimeEndpoint
  private let database: RealtimeDatabase
  private let request: SocketRequest
  private var context: ChannelHandlerContext?
  private(set) var connection: RealtimeConnection?
  private var sink: LoopSink?

  private let incoming: SocketFrameDecoder
  private let memory: PeerMemoryAccount
  private let lingerTimeout: TimeAmount
  /// What the connection holds of the server's memory for messages and requests.
  private var heldBytes = 0
  private var assembler: MessageAssembler
  /// The parts of a message that the peer sends in several WebSocket frames.
  private var fragments: ByteBuffer?

  /// Requests handed to the engine, and answers that came back.
  private var submitted = 0
  private var answered = 0
  /// The bytes of the requests that the engine has not answered, in order, and their sum.
  private var sizes = CircularBuffer<Int>(initialCapacity: 0)
  private var outstandingBytes = 0
  /// The bytes of the message being handled.
  private var messageBytes = 0
  /// The handler's own answers that wait for the engine's before them.
  private var waiting: [(after: Int, frames: ByteBuffer)] = []
  /// What the engine's plain success means for requests that promise more than that.
  var successTexts: [Int64: [UInt8]] = [:]
  /// The query objects of filtered listens, as they were sent, by tag.
  var queryTexts: [Int64: [UInt8]] = [:]

  private var needsFlush = false
  private var unflushed = 0
  private var budget: OutputBudget
  private var readIsHeld = false
  private var isClosing = false
  private var isDraining = false
  private var lastRead = NIODeadline.now()
  private var pinged = false

  /// - Parameters:
  ///   - shared: the HTTP connection that becomes a WebSocket.
  ///   - incoming: what decodes the frames that this handler gets.
  init(
    _ shared: RealtimeHTTPConnection, database: RealtimeDatabase, request: SocketRequest,
    incoming: SocketFrameDecoder
  ) {
    endpoint = shared.endpoint
    self.database = database
    self.request = request
    self.incoming = incoming
    memory = shared.memory
    lingerTimeout = shared.port.lingerTimeout
    assembler = MessageAssembler(maximumBytes: endpoint.limits.messageBytes)
    budget = OutputBudget(limit: endpoint.limits.data.queuedOutputBytes, isMeasurable: true)
  }

  // MARK: Life

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    let sink = LoopSink(endpoint.sinkGroup(of: context.eventLoop), self)
    self.sink = sink
    if let last = request.lastSession { database.takeOver(session: last) }
    let connection = database.connect(as: .anonymous, to: sink)
    self.connection = connection
    if request.isUpgrade {
      // A session to go on with on this socket: without long polling there is none.
      send(ServerControl.reset(host: request.host).json())
    } else {
      let now = endpoint.now()
      send(
        ServerControl.hello(ServerHello(timestamp: now, host: request.host, sessionID: connection.session))
          .json())
    }
    flush(context)
    watch(context)
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  private func end() {
    connection?.close()
    connection = nil
    sink?.detach()
    sink = nil
    context = nil
    waiting = []
    fragments = nil
    memory.give(heldBytes)
    heldBytes = 0
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      isDraining = true
      closeIfDrained(context)
    } else if case .inputClosed? = event as? ChannelEvent {
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error as? NIOWebSocketError {
    case .invalidFrameLength: close(code: 1009, "message too large")
    case nil: context.close(promise: nil)
    default: close(code: 1002, "broken frame")
    }
  }

  /// Looks after the connection from time to time: asks a silent peer, and gives a lost one up.
  private func watch(_ context: ChannelHandlerContext) {
    let limits = endpoint.limits
    let next = pinged ? limits.lostAfter : limits.pingAfter
    context.eventLoop.assumeIsolated().scheduleTask(deadline: lastRead + next) { [weak self] in
      guard let self, let context = self.context else { return }
      // A peer that is not read because the engine is busy with its requests is not silent.
      if self.isFull(limits.outstandingRequests / 2 + 1, limits.outstandingRequestBytes / 2 + 1) {
        self.lastRead = .now()
      }
      let silence = NIODeadline.now() - self.lastRead
      if silence >= limits.lostAfter {
        context.close(promise: nil)
        return
      }
      if silence >= limits.pingAfter, !self.pinged {
        self.pinged = true
        var frame = context.channel.allocator.buffer(capacity: 2)
        frame.writeFrameHeader(.ping, length: 0)
        context.writeAndFlush(self.wrapOutboundOut(frame), promise: nil)
      }
      self.watch(context)
    }
  }

  // MARK: Reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastRead = .now()
    pinged = false
    guard !isClosing else { return }
    let frame = unwrapInboundIn(data)
    guard frame.maskKey != nil else { return close(code: 1002, "a client's frames must be masked") }
    guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
      return close(code: 1002, "reserved bits without an extension")
    }
    switch frame.opcode {
    case .text:
      guard fragments == nil else { return close(code: 1002, "a message inside a message") }
      if frame.fin {
        receive(frame.unmaskedData)
      } else {
        fragments = frame.unmaskedData
      }
    case .continuation: continuation(frame)
    case .ping:
      let data = frame.unmaskedData
      var answer = context.channel.allocator.buffer(capacity: data.readableBytes + 2)
      answer.writeFrameHeader(.pong, length: data.readableBytes)
      answer.writeImmutableBuffer(data)
      context.write(wrapOutboundOut(answer), promise: nil)
      needsFlush = true
    case .pong: break
    case .connectionClose: close(code: 1000, "")
    case .binary: close(code: 1003, "text frames only")
    default: close(code: 1002, "unknown frame")
    }
  }

  private func continuation(_ frame: WebSocketFrame) {
    guard var message = fragments else { return close(code: 1002, "a continuation of nothing") }
    fragments = nil
    let data = frame.unmaskedData
    guard message.readableBytes + data.readableBytes <= endpoint.limits.messageBytes else {
      return close(code: 1009, "message too large")
    }
    message.writeImmutableBuffer(data)
    if frame.fin {
      receive(message)
    } else {
      fragments = message
    }
  }

  private func receive(_ frame: ByteBuffer) {
    let received = frame.withUnsafeReadableBytes { assembler.receive($0) }
    switch received {
    case .nothing: break
    case .message: frame.withUnsafeReadableBytes { handle($0) }
    case .assembled(let bytes): bytes.withUnsafeBytes { handle($0) }
    case .oversized(let beginning):
      let number = beginning.withUnsafeBytes { ClientMessage.requestNumber(inBeginning: $0) }
      if let number {
        reply(ServerResponse(number, .writeTooBig).json())
      } else {
        refuse("The message is too large.", code: 1009)
      }
    }
  }

  private func handle(_ bytes: UnsafeRawBufferPointer) {
    messageBytes = bytes.count
    do throws(WireError) {
      switch try ClientMessage(json: bytes) {
      case .control(.ping): send(ServerControl.pong.json())
      case .control: break
      case .request(let request):
        if let connection { perform(request, on: connection) }
      }
    } catch {
      switch error {
      case .notJSON(let error): refuse("The message is not JSON: \(error)", code: 1007)
      case .notAMessage(let reason):
        refuse("The message is not one of protocol version 5: \(reason)", code: 1002)
      }
    }
  }

  /// Counts what the connection holds: the frame and the message that are coming in, and requests under way.
  private func account() {
    guard context != nil, !isClosing else { return }
    let holds =
      incoming.heldBytes + (fragments?.readableBytes ?? 0) + assembler.heldBytes + outstandingBytes
    guard memory.hold(holds, insteadOf: heldBytes) else { return closeForWantOfMemory() }
    heldBytes = holds
  }

  private func closeForWantOfMemory() { close(code: 1013, memory.memory.refusal) }

  func channelReadComplete(context: ChannelHandlerContext) {
    account()
    if needsFlush { flush(context) }
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    if isFull(endpoint.limits.outstandingRequests, endpoint.limits.outstandingRequestBytes)
      || !context.channel.isWritable
    {
      readIsHeld = true
    } else {
      context.read()
    }
  }

  /// Whether so many requests, or so many bytes of them, wait for their answers.
  private func isFull(_ requests: Int, _ bytes: Int) -> Bool {
    submitted - answered + waiting.count >= requests || outstandingBytes >= bytes
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    resumeReading(context)
    context.fireChannelWritabilityChanged()
  }

  private func resumeReading(_ context: ChannelHandlerContext) {
    let limits = endpoint.limits
    guard readIsHeld, context.channel.isWritable,
      !isFull(limits.outstandingRequests / 2 + 1, limits.outstandingRequestBytes / 2 + 1)
    else { return }
    readIsHeld = false
    context.read()
  }

  // MARK: Writing

  /// Counts a request that the engine will answer.
  func willBeAnswered() {
    submitted += 1
    sizes.append(messageBytes)
    outstandingBytes += messageBytes
  }

  /// Sends the handler's own answer to a request, behind the answers to the requests before it.
  func reply(_ message: [UInt8]) {
    guard let frames = SocketFrames(message: message) else { return }
    if answered == submitted {
      write(frames.bytes)
    } else {
      waiting.append((submitted, frames.bytes))
    }
  }

  /// Sends a message now.
  private func send(_ message: [UInt8]) {
    if let frames = SocketFrames(message: message) { write(frames.bytes) }
  }

  /// - Parameter counted: whether the bytes count in what the server holds until they have gone out.
  private func write(_ bytes: ByteBuffer, counted: Bool = false) {
    guard let context, !isClosing else { return }
    var written: EventLoopPromise<Void>?
    if counted {
      written = memory.take(bytes.readableBytes, on: context.eventLoop)
      if written == nil { return closeForWantOfMemory() }
    }
    unflushed += bytes.readableBytes
    context.write(wrapOutboundOut(bytes), promise: written)
    needsFlush = true
  }

  private func flush(_ context: ChannelHandlerContext) {
    needsFlush = false
    context.flush()
    let bytes = unflushed
    unflushed = 0
    // A peer that does not read is cut off before it costs more memory than its budget.
    guard budget.isExceeded(writing: bytes, to: context.channel) else { return }
    endpoint.log.info("connection cut off: it does not read what it listens to")
    isClosing = true
    context.close(promise: nil)
  }

  /// Tells what is wrong with what the peer sent, and ends the connection.
  private func refuse(_ reason: String, code: UInt16) {
    send(ServerControl.error(reason).json())
    close(code: code, "")
  }

  private func close(code: UInt16, _ reason: String) {
    guard let context, !isClosing else { return }
    isClosing = true
    incoming.isDiscarding = true
    var frame = context.channel.allocator.buffer(capacity: 4 + reason.utf8.count)
    frame.writeCloseFrame(code: code, reason: reason)
    let written = context.eventLoop.makePromise(of: Void.self)
    context.writeAndFlush(wrapOutboundOut(frame), promise: written)
    let channel = context.channel
    let grace = lingerTimeout
    written.futureResult.whenComplete { _ in
      // The peer may be sending, and should be able to read why it may not, unless it has closed itself.
      if code == 1000 { channel.close(promise: nil) } else { channel.closeLingering(grace) }
    }
  }

  private func closeIfDrained(_ context: ChannelHandlerContext) {
    if isDraining, submitted == answered, waiting.isEmpty { close(code: 1001, "the server shuts down") }
  }
}

extension SocketHandler: LoopReceiver {
  func receive(_ outputs: [RealtimeOutput]) {
    guard let context, !isClosing else { return }
    for output in outputs {
      switch output {
      case .push(let push): self.push(push)
      case .response(let request, let response): answer(frames(of: response, to: request, context))
      }
    }
    account()
    flush(context)
    resumeReading(context)
    closeIfDrained(context)
  }

  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
    switch output {
    case .push(let push) where push.estimatedSize >= endpoint.limits.loopEncodingBytes:
      return { SocketFrames.encoded(push).bytes }
    case .response(let request, .value(let node))
    where node.estimatedSize >= endpoint.limits.loopEncodingBytes:
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return nil }
      return { SocketFrames(message: ServerResponse(request, .ok, node).json())?.bytes }
    default: return nil
    }
  }

  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
    guard let context, !isClosing else { return }
    switch output {
    // The push has kept what was encoded.
    case .push(let push): self.push(push)
    case .response(let request, _): answer(encoded ?? failure(.tooBig, request))
    }
    account()
    flush(context)
    resumeReading(context)
    closeIfDrained(context)
  }

  /// Writes the engine's answer to the oldest request, and the handler's own that waited for it.
  private func answer(_ frames: ByteBuffer) {
    answered += 1
    outstandingBytes -= sizes.popFirst() ?? 0
    write(frames, counted: frames.readableBytes >= EncodedPush.countedBytes)
    while let first = waiting.first, first.after <= answered {
      waiting.removeFirst()
      write(first.frames)
    }
  }

  private func push(_ push: RealtimePush) {
    if case .cancel = push.body {
      let query = push.tag.flatMap { queryTexts.removeValue(forKey: $0) }
      send(ServerPush.cancel(path: push.path, queryText: query).json())
      return
    }
    let encoded = SocketFrames.encoded(push)
    if let bytes = encoded.bytes {
      write(bytes, counted: encoded.mustBeCounted())
    } else {
      // More pieces than a client can count; going on without it would show it a state that never was.
      refuse(RealtimeError.tooBig.message, code: 1009)
    }
  }

  private func frames(
    of response: RealtimeResponse, to request: Int64, _ context: ChannelHandlerContext
  ) -> ByteBuffer {
    switch response {
    case .done:
      if !successTexts.isEmpty, let text = successTexts.removeValue(forKey: request) {
        return SocketFrames(message: text)?.bytes ?? ByteBuffer()
      }
      var buffer = context.channel.allocator.buffer(capacity: 64)
      buffer.writeSuccessFrame(request: request)
      return buffer
    case .listening(let warnings): return ok(request) { $0.warnings(warnings) }
    case .value(let node):
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return failure(.tooBig, request) }
      return SocketFrames(message: ServerResponse(request, .ok, node).json())?.bytes
        ?? failure(.tooBig, request)
    case .failure(let error):
      successTexts[request] = nil
      return failure(error, request)
    }
  }

  private func failure(_ error: RealtimeError, _ request: Int64) -> ByteBuffer {
    SocketFrames(message: ServerResponse(request, error).json())?.bytes ?? ByteBuffer()
  }

  private func ok(_ request: Int64, _ write: (inout JSONWriter) -> Void) -> ByteBuffer {
    SocketFrames(message: ServerResponse.json(request, .ok, write))?.bytes ?? ByteBuffer()
  }
}

extension JSONWriter {
  /// Writes the payload of a listen's success.
  fileprivate mutating func warnings(_ warnings: [String]) {
    beginObject()
    if !warnings.isEmpty {
      key("w")
      beginArray()
      for warning in warnings { string(warning) }
      endArray()
    }
    endObject()
  }
}
