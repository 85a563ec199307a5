// One WebSocket of protocol v5, from the first frame to the close: frames to messages and back, and whether the peer
// lives and reads. What the messages mean is its user's affair: a session of its own, or one that began with polls.
//
// Invariants
//   1. Nothing is read while its user holds too many requests, or too large ones, or the peer does not read; output
//      beyond its budget ends the connection.
//   2. A silent connection is asked, then ended; whatever ends it, its user is told once.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif
import Logging
import NIOCore
import NIOWebSocket
import RealtimeModel
import RealtimeWire

/// Who gets the messages of a WebSocket; confined to the WebSocket's event loop.
protocol SocketUser: AnyObject {
  /// Begins, on a socket that can be written to.
  func begin(_ socket: SocketHandler, on eventLoop: any EventLoop)
  /// Takes a message.
  func receive(_ message: UnsafeRawBufferPointer, from socket: SocketHandler)
  /// Hears of a message that was too large to be kept, with the number of its request if that can be told.
  func receiveOversized(request: Int64?)
  /// Whether as many requests wait for answers as may; with `half`, whether more than half of that.
  func isFull(half: Bool) -> Bool
  /// The bytes of the requests that are not answered.
  var heldBytes: Int { get }
  /// Whether every request was answered.
  var isIdle: Bool { get }
  /// Hears that the peer has read, so that it can be told more.
  func goOn()
  /// Hears that the connection has ended.
  func end()
}

extension SocketUser {
  /// A user that holds nothing back has nothing to go on with.
  func goOn() {}
}

final class SocketHandler: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = Never
  typealias OutboundOut = ByteBuffer

  private let endpoint: RealtimeEndpoint
  private var user: (any SocketUser)?
  private var context: ChannelHandlerContext?

  private let incoming: SocketFrameDecoder
  private let memory: MemoryReservation
  private let lingerTimeout: TimeAmount
  /// What the connection holds of the server's memory for messages and requests.
  private var heldBytes = 0
  private var assembler: MessageAssembler
  /// The parts of a message that the peer sends in several WebSocket frames.
  private var fragments: ByteBuffer?

  private var needsFlush = false
  private var unflushed = 0
  private var budget: OutputBudget
  private var readIsHeld = false
  private var isClosing = false
  private var isDraining = false
  private var lastRead = NIODeadline.now()
  private var lastWritten = NIODeadline.now()
  private var pinged = false
  /// The bytes that waited for the peer to take more, when they were last looked at.
  private var queued = 0
  /// For pings, and pieces of messages with nothing in them.
  private var credit: PeerCredit

  /// - Parameters:
  ///   - shared: the HTTP connection that becomes a WebSocket.
  ///   - incoming: what decodes the frames that this handler gets.
  init(_ shared: RealtimeHTTPConnection, user: any SocketUser, incoming: SocketFrameDecoder) {
    endpoint = shared.endpoint
    self.user = user
    self.incoming = incoming
    memory = shared.memory
    lingerTimeout = shared.port.lingerTimeout
    credit = PeerCredit(endpoint.limits.socketCredit, at: lastRead)
    assembler = MessageAssembler(maximumBytes: endpoint.limits.messageBytes)
    budget = OutputBudget(limit: endpoint.limits.data.queuedOutputBytes, isMeasurable: true)
  }

  // MARK: Life

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    user?.begin(self, on: context.eventLoop)
    flush()
    giveUpUnconfirmed(context)
    watch(context)
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  private func end() {
    user?.end()
    user = nil
    context = nil
    fragments = nil
    memory.give(heldBytes)
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

  /// Looks after the connection from time to time: asks a silent peer, and gives a lost one up.
  ///
  /// What is told to the peer counts as life: clients send their own sign of it only where nothing went either way, and
  /// the Admin SDK for Java breaks a connection on which it is sent a ping. So does what it takes of a long message, behind
  /// which no ping would reach it, and during which it is not heard. Whoever was asked has to answer, though: a peer that
  /// is gone confirms nothing, which the system finds (``giveUpUnconfirmed(_:)``), but one that hangs does.
  private func watch(_ context: ChannelHandlerContext) {
    let limits = endpoint.limits
    var deadline = lastLife + (pinged || queued > 0 ? limits.lostAfter : limits.pingAfter)
    if queued > 0 { deadline = min(deadline, .now() + .nanoseconds(limits.lostAfter.nanoseconds / 4)) }
    context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
      guard let self, let context = self.context else { return }
      // A peer that is not read because the engine is busy with its requests is not silent.
      if self.user?.isFull(half: true) ?? false { self.lastRead = .now() }
      let before = self.queued
      self.measureQueue(context.channel)
      if self.queued < before { self.lastWritten = .now() }
      let silence = NIODeadline.now() - self.lastLife
      if silence >= limits.lostAfter {
        context.close(promise: nil)
        return
      }
      if silence >= limits.pingAfter, !self.pinged, self.queued == 0 {
        self.pinged = true
        var frame = context.channel.allocator.buffer(capacity: 2)
        frame.writeFrameHeader(.ping, length: 0)
        context.writeAndFlush(self.wrapOutboundOut(frame), promise: nil)
      }
      self.watch(context)
    }
  }

  /// When something last came from the peer, or went to it.
  private var lastLife: NIODeadline { max(lastRead, lastWritten) }

  private func measureQueue(_ channel: any Channel) {
    queued = channel.isWritable ? 0 : (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// Lets the system close the connection when the peer has not confirmed what it was sent, or has taken nothing of it, for
  /// as long as it may be silent (RFC 5482, tcp(7)). Systems without the option do so after a quarter of an hour.
  private func giveUpUnconfirmed(_ context: ChannelHandlerContext) {
    #if os(Linux)
      let milliseconds = Int(clamping: endpoint.limits.lostAfter.nanoseconds / 1_000_000)
      let option = ChannelOptions.Types.SocketOption(level: .tcp, name: .init(rawValue: TCP_USER_TIMEOUT))
      context.channel.setOption(option, value: milliseconds).whenFailure { [log = endpoint.log] error in
        log.debug("the connection keeps the system's time for what is not confirmed: \(error)")
      }
    #endif
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
    guard affords(frame) else { return endFlood(context) }
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
    case .connectionClose:
      if SocketHandler.mayClose(frame.unmaskedData) {
        close(code: 1000, "")
      } else {
        close(code: 1002, "a close frame with a code that may not be sent")
      }
    case .binary: close(code: 1003, "text frames only")
    default: close(code: 1002, "unknown frame")
    }
  }

  /// Whether a close frame may carry this: nothing, or a code that stands on the wire (RFC 6455, 7.4), and a reason.
  private static func mayClose(_ body: ByteBuffer) -> Bool {
    if body.readableBytes == 0 { return true }
    switch body.getInteger(at: body.readerIndex, as: UInt16.self) {
    case (1000...1003)?, (1007...1014)?, (3000...4999)?: return true
    default: return false
    }
  }

  /// Whether the peer may send this frame: what carries nothing of a message costs credit, what does brings some.
  private func affords(_ frame: WebSocketFrame) -> Bool {
    switch frame.opcode {
    case .ping, .pong: break
    case .continuation where frame.length == 0: break
    default:
      credit.earn(1)
      return true
    }
    credit.charge(1)
    if credit.isSpent { credit.fill(at: lastRead) }
    return !credit.isSpent
  }

  private func endFlood(_ context: ChannelHandlerContext) {
    isClosing = true
    incoming.isDiscarding = true
    endpoint.log.info("connection cut off: too many WebSocket pings or empty frames")
    var frame = context.channel.allocator.buffer(capacity: 64)
    frame.writeCloseFrame(code: 1008, reason: "too many pings or empty frames")
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    context.channel.cutOff()
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
    case .message: frame.withUnsafeReadableBytes { user?.receive($0, from: self) }
    case .assembled(let bytes): bytes.withUnsafeBytes { user?.receive($0, from: self) }
    case .oversized(let request): user?.receiveOversized(request: request)
    }
  }

  /// Counts what the connection holds: the frame and the message that are coming in, and requests under way.
  private func account() {
    guard context != nil, !isClosing else { return }
    let holds =
      incoming.heldBytes + (fragments?.readableBytes ?? 0) + assembler.heldBytes + (user?.heldBytes ?? 0)
    guard memory.hold(holds, insteadOf: heldBytes) else { return closeForWantOfMemory() }
    heldBytes = holds
  }

  private func closeForWantOfMemory() { close(code: 1013, memory.memory.refusal) }

  func channelReadComplete(context: ChannelHandlerContext) {
    readIsComplete()
    context.fireChannelReadComplete()
  }

  /// Counts what was read, and sends what was answered at once.
  func readIsComplete() {
    guard context != nil else { return }
    account()
    if needsFlush { flush() }
  }

  func read(context: ChannelHandlerContext) {
    if user?.isFull(half: false) ?? false || !context.channel.isWritable {
      readIsHeld = true
    } else {
      context.read()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { user?.goOn() }
    resumeReading(context)
    context.fireChannelWritabilityChanged()
  }

  private func resumeReading(_ context: ChannelHandlerContext) {
    guard readIsHeld, context.channel.isWritable, !(user?.isFull(half: true) ?? false) else { return }
    readIsHeld = false
    context.read()
  }

  // MARK: Writing

  /// Frames a message and writes it.
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
      // The peer may be sending, and should be able to read why it may not, unless it has closed itself.
      if code == 1000 { channel.close(promise: nil) } else { channel.closeLingering(grace) }
    }
  }

  private func closeIfDrained() {
    if isDraining, user?.isIdle ?? true { close(code: 1001, "the server shuts down") }
  }
}

extension SocketHandler: SessionTransport {
  func write(_ frames: ByteBuffer, counted: Bool) {
    guard let context, !isClosing else { return }
    var written: EventLoopPromise<Void>?
    if counted {
      written = memory.take(frames.readableBytes, on: context.eventLoop)
      if written == nil { return closeForWantOfMemory() }
    }
    unflushed += frames.readableBytes
    context.write(wrapOutboundOut(frames), promise: written)
    needsFlush = true
  }

  func flush() {
    guard let context else { return }
    needsFlush = false
    context.flush()
    let bytes = unflushed
    unflushed = 0
    if bytes > 0 {
      if !pinged { lastWritten = .now() }
      measureQueue(context.channel)
    }
    // A peer that does not read is cut off before it costs more memory than its budget.
    if !isClosing, budget.isExceeded(writing: bytes, to: context.channel) { cutOff() }
  }

  var isBehind: Bool { context.map { !$0.channel.isWritable } ?? false }

  func cutOff() {
    guard let context, !isClosing else { return }
    endpoint.log.info("connection cut off: it does not read what it listens to")
    isClosing = true
    context.close(promise: nil)
  }

  func requestsWereAnswered() {
    guard let context else { return }
    account()
    resumeReading(context)
    closeIfDrained()
  }

  func sessionWasTakenOver() {
    guard let context, !isClosing else { return }
    // Whoever does not read would not see it end.
    if !context.channel.isWritable {
      isClosing = true
      return context.close(promise: nil)
    }
    close(code: 1001, "the session goes on on another connection")
  }

  func refuse(_ reason: String, code: UInt16) {
    send(ServerControl.error(reason).json())
    close(code: code, "")
  }
}
