// A socket handler runs one WebSocket of protocol v5 from the first frame to the close. It is responsible for
// framing, keep-alive and back-pressure.
//
// Its delegate handles the messages. The delegate is a new session, or a relay to a session that began with
// long polling.
//
// Invariants
//   1. The handler stops reading while the unanswered requests of its delegate reach a limit, or while the
//      client does not read. It ends the connection if unread output exceeds the budget.
//   2. The handler pings an idle client, and closes the connection if the client does not answer. The
//      delegate is notified of the end exactly once.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif
import Logging
import NIOCore
import NIOWebSocket
import Ports
import RealtimeModel
import RealtimeWire

/// Receives the messages of a WebSocket; confined to the WebSocket's event loop.
protocol WebSocketDelegate: AnyObject {
  /// Called before all other methods. The socket can be written to.
  func open(_ socket: SocketHandler, on eventLoop: any EventLoop)
  /// Called with each message.
  func receive(_ message: UnsafeRawBufferPointer, from socket: SocketHandler)
  /// Called for a message that was too large to be buffered. `request` is the number of its request if its
  /// first bytes contain it.
  func receiveOversized(request: Int64?)
  /// Whether the limit of unanswered requests is reached; with `half`, whether half of it is exceeded.
  func isFull(half: Bool) -> Bool
  /// The bytes of the unanswered requests.
  var heldBytes: Int { get }
  /// Whether every request has its response.
  var isIdle: Bool { get }
  /// Called when the client has read and more output may be sent.
  func resume()
  /// Called when the connection has ended.
  func end()
}

extension WebSocketDelegate {
  /// The default for delegates without a queue does nothing.
  func resume() {}
}

final class SocketHandler: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = Never
  typealias OutboundOut = ByteBuffer

  private let endpoint: RealtimeEndpoint
  private var delegate: (any WebSocketDelegate)?
  private var context: ChannelHandlerContext?

  private let incoming: SocketFrameDecoder
  private let memory: MemoryReservation
  private let lingerTimeout: TimeAmount
  /// The bytes reserved in the server's memory budget for messages and requests.
  private var heldBytes = 0
  private var assembler: MessageAssembler
  /// The frames of a fragmented message.
  private var fragments: ByteBuffer?

  private var needsFlush = false
  private var unflushedBytes = 0
  private var budget: OutputBudget
  private var isReadPaused = false
  private var isClosing = false
  private var isDraining = false
  private var lastRead = NIODeadline.now()
  private var lastWritten = NIODeadline.now()
  private var isPingPending = false
  /// The bytes in the channel's write queue when it was last measured.
  private var queuedBytes = 0
  private let timer = SocketTimer()

  /// - Parameters:
  ///   - connection: the HTTP connection that becomes a WebSocket.
  ///   - incoming: the decoder of the frames that this handler gets.
  init(
    _ endpoint: RealtimeEndpoint, _ connection: HTTPConnection, delegate: any WebSocketDelegate,
    incoming: SocketFrameDecoder
  ) {
    self.endpoint = endpoint
    self.delegate = delegate
    self.incoming = incoming
    memory = connection.memory
    lingerTimeout = connection.port.lingerTimeout
    assembler = MessageAssembler(maximumBytes: endpoint.limits.messageBytes)
    budget = OutputBudget(limit: endpoint.limits.data.queuedOutputBytes, isMeasurable: true)
  }

  // MARK: Lifecycle

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    delegate?.open(self, on: context.eventLoop)
    flush()
    setUserTimeout(context)
    scheduleActivityCheck()
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  private func end() {
    delegate?.end()
    delegate = nil
    context = nil
    timer.socket = nil
    fragments = nil
    memory.release(heldBytes)
    heldBytes = 0
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      isDraining = true
      closeIfDrained()
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

  /// Checks the connection periodically: pings an idle client and closes a lost connection.
  ///
  /// Output counts as activity for two reasons. Clients send a keep-alive only if both directions are idle,
  /// and the Admin SDK for Java closes a connection that receives a ping. Progress in sending a long message
  /// counts too, because a ping would queue behind it.
  ///
  /// After a ping only input counts. The client's system acknowledges output even if the client hangs, so
  /// output does not prove that the client works. If the client's machine is gone, nothing is acknowledged,
  /// and ``setUserTimeout(_:)`` detects that.
  private func scheduleActivityCheck() {
    guard let context else { return }
    let limits = endpoint.limits
    var deadline = lastActivity + (isPingPending || queuedBytes > 0 ? limits.lostAfter : limits.pingAfter)
    if queuedBytes > 0 { deadline = min(deadline, .now() + .nanoseconds(limits.lostAfter.nanoseconds / 4)) }
    timer.socket = self
    // Scheduling fails only if the event loop is shut down.
    _ = try? context.eventLoop.assumeIsolated().scheduleCallback(at: deadline, handler: timer)
  }

  /// Checks once whether the client is idle or lost.
  fileprivate func check() {
    guard let context else { return }
    let limits = endpoint.limits
    // Because of unanswered requests the handler may have stopped reading. The client then is not idle, even if no
    // input arrives.
    if delegate?.isFull(half: true) ?? false { lastRead = .now() }
    let before = queuedBytes
    measureQueue(context.channel)
    if queuedBytes < before { lastWritten = .now() }
    let silence = NIODeadline.now() - lastActivity
    if silence >= limits.lostAfter {
      context.close(promise: nil)
      return
    }
    if silence >= limits.pingAfter, !isPingPending, queuedBytes == 0 {
      isPingPending = true
      var frame = context.channel.allocator.buffer(capacity: 2)
      frame.writeFrameHeader(.ping, length: 0)
      context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
    scheduleActivityCheck()
  }

  /// The time of the last input or output.
  private var lastActivity: NIODeadline { max(lastRead, lastWritten) }

  private func measureQueue(_ channel: any Channel) {
    queuedBytes = channel.isWritable ? 0 : (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// Sets the TCP user timeout (RFC 5482, tcp(7)) to the time after which a client counts as lost. The system then
  /// closes a connection whose data stays unacknowledged for that time. Systems without this option take 15 minutes.
  private func setUserTimeout(_ context: ChannelHandlerContext) {
    #if os(Linux)
      let milliseconds = Int(clamping: endpoint.limits.lostAfter.nanoseconds / 1_000_000)
      let option = ChannelOptions.Types.SocketOption(level: .tcp, name: .init(rawValue: TCP_USER_TIMEOUT))
      context.channel.setOption(option, value: milliseconds).whenFailure { [log = endpoint.log] error in
        log.debug("setting TCP_USER_TIMEOUT failed: \(error)")
      }
    #endif
  }

  // MARK: Reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastRead = .now()
    isPingPending = false
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
      var pong = context.channel.allocator.buffer(capacity: data.readableBytes + 2)
      pong.writeFrameHeader(.pong, length: data.readableBytes)
      pong.writeImmutableBuffer(data)
      context.write(wrapOutboundOut(pong), promise: nil)
      needsFlush = true
    case .pong: break
    case .connectionClose:
      if SocketHandler.isValidCloseBody(frame.unmaskedData) {
        close(code: 1000, "")
      } else {
        close(code: 1002, "a close frame with a code that may not be sent")
      }
    case .binary: close(code: 1003, "text frames only")
    default: close(code: 1002, "unknown frame")
    }
  }

  /// Whether a body is valid in a close frame: empty, or a code that is allowed on the wire (RFC 6455,
  /// section 7.4) followed by a reason.
  private static func isValidCloseBody(_ body: ByteBuffer) -> Bool {
    if body.readableBytes == 0 { return true }
    switch body.getInteger(at: body.readerIndex, as: UInt16.self) {
    case (1000...1003)?, (1007...1014)?, (3000...4999)?: return true
    default: return false
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
    case .message: frame.withUnsafeReadableBytes { delegate?.receive($0, from: self) }
    case .assembled(let bytes): bytes.withUnsafeBytes { delegate?.receive($0, from: self) }
    case .oversized(let request): delegate?.receiveOversized(request: request)
    }
  }

  /// Updates the memory reservation for the incoming frame and message, and for unanswered requests.
  private func updateReservation() {
    guard context != nil, !isClosing else { return }
    let holds =
      incoming.heldBytes + (fragments?.readableBytes ?? 0) + assembler.heldBytes + (delegate?.heldBytes ?? 0)
    guard memory.resize(from: heldBytes, to: holds) else { return closeForLackOfMemory() }
    heldBytes = holds
  }

  private func closeForLackOfMemory() { close(code: 1013, memory.budget.refusal) }

  func channelReadComplete(context: ChannelHandlerContext) {
    readIsComplete()
    context.fireChannelReadComplete()
  }

  /// Updates the reservation after reading, and sends the responses that are ready.
  func readIsComplete() {
    guard context != nil else { return }
    updateReservation()
    if needsFlush { flush() }
  }

  func read(context: ChannelHandlerContext) {
    if delegate?.isFull(half: false) ?? false || !context.channel.isWritable {
      isReadPaused = true
    } else {
      context.read()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { delegate?.resume() }
    resumeReading(context)
    context.fireChannelWritabilityChanged()
  }

  private func resumeReading(_ context: ChannelHandlerContext) {
    guard isReadPaused, context.channel.isWritable, !(delegate?.isFull(half: true) ?? false) else { return }
    isReadPaused = false
    context.read()
  }

  // MARK: Writing

  /// Encodes and writes a message.
  func send(_ message: [UInt8]) {
    if let frames = SocketFrames(message: message) { write(frames.bytes, counted: false) }
  }

  func close(code: UInt16, _ reason: String) {
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
      // A lingering close lets a client that is still sending read the reason. Code 1000 follows a close by
      // the client or the end of its session, so the client needs no reason.
      if code == 1000 { channel.close(promise: nil) } else { channel.closeLingering(grace) }
    }
  }

  private func closeIfDrained() {
    if isDraining, delegate?.isIdle ?? true { close(code: 1001, "the server shuts down") }
  }
}

/// The timer of one WebSocket's checks. A scheduled callback takes less memory than a scheduled closure, and the timer does
/// not retain the handler after the end of the connection.
private final class SocketTimer: NIOScheduledCallbackHandler {
  /// The handler; nil after the end of its connection.
  var socket: SocketHandler?

  func handleScheduledCallback(eventLoop: some EventLoop) { socket?.check() }
}

extension SocketHandler: SessionTransport {
  func write(_ frames: ByteBuffer, counted: Bool) {
    guard let context, !isClosing else { return }
    var written: EventLoopPromise<Void>?
    if counted {
      written = memory.reserve(frames.readableBytes, on: context.eventLoop)
      if written == nil { return closeForLackOfMemory() }
    }
    unflushedBytes += frames.readableBytes
    context.write(wrapOutboundOut(frames), promise: written)
    needsFlush = true
  }

  func flush() {
    guard let context else { return }
    needsFlush = false
    context.flush()
    let bytes = unflushedBytes
    unflushedBytes = 0
    if bytes > 0 {
      if !isPingPending { lastWritten = .now() }
      measureQueue(context.channel)
    }
    // A client that does not read is disconnected when its unread output exceeds the budget.
    if !isClosing, budget.isExceeded(writing: bytes, to: context.channel) { disconnectForOverflow() }
  }

  var isBackpressured: Bool { context.map { !$0.channel.isWritable } ?? false }

  func disconnectForOverflow() {
    guard let context, !isClosing else { return }
    endpoint.log.info("connection closed: the client does not read its queued output")
    isClosing = true
    context.close(promise: nil)
  }

  func requestsWereAnswered() {
    guard let context else { return }
    updateReservation()
    resumeReading(context)
    closeIfDrained()
  }

  func sessionWasReplaced() {
    guard let context, !isClosing else { return }
    // A client that does not read would not receive the close frame, so the connection is closed at once.
    if !context.channel.isWritable {
      isClosing = true
      return context.close(promise: nil)
    }
    close(code: 1001, "the session goes on on another connection")
  }

  func reject(_ reason: String, code: UInt16) {
    send(ServerControl.error(reason).json())
    close(code: code, "")
  }
}
