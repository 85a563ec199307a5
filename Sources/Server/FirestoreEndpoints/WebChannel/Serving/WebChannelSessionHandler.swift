// The handler of a WebChannel session: connects the session's HTTP requests, from any connection, with its Listen or
// Write stream. Performs the actions of the state machine `WebChannelSession`. The client posts messages, and receives
// responses in the response to a GET request, the back channel.
//
// Invariants
//   1. All state is used on one event loop: the loop of the connection that opened the session.
//   2. A POST gets its response before its messages reach the stream. A blocked commit does not delay the next POST.
//   3. Large messages are decoded off the event loop. Messages still reach the stream in order, and so do decoding
//      errors.
//   4. When the session ends, for any reason, its stream ends, suspended senders resume and the registry removes it,
//      each exactly once.

import FirestoreModel
import GRPCFraming
import NIOCore
import Ports

/// Runs one session on its event loop.
final class WebChannelSessionHandler {
  /// Bytes above which a body or message is decoded off the event loop.
  static let maximumInlineBytes = 64 << 10

  let id: String
  private let codec: StreamCodec
  private let eventLoop: any EventLoop
  private let sessions: WebChannelSessionRegistry
  private let memory: MemoryReservation
  /// Counts the bytes of results that the session's stream holds.
  let pages: PageMemory
  private var heldBytes = 0
  private var session: WebChannelSession
  private var stream: (any StreamCall)?
  private var isReading = true
  private var isDelivering = false
  /// Bytes of the message that is being decoded off the event loop.
  private var decodingBytes = 0
  private var hasEnded = false
  /// The response of the open back channel.
  private var back: HTTPResponder?
  /// Senders that wait for acknowledgements.
  private var suspendedSenders: [CheckedContinuation<Void, any Error>] = []
  private var timer: (due: NIODeadline, task: Scheduled<Void>)?

  /// - Parameter address: the client's address, without its port; empty if unknown.
  init(
    _ id: String, _ codec: StreamCodec, _ sessions: WebChannelSessionRegistry, address: String,
    on eventLoop: any EventLoop
  ) {
    self.id = id
    self.codec = codec
    self.sessions = sessions
    self.eventLoop = eventLoop
    let holder = MemoryHolder(sessions.port.memory, address: address) { [weak sessions] in sessions?.close(id)
    }
    memory = MemoryReservation(sessions.port, holder)
    pages = PageMemory(holder, sessions.port, on: eventLoop)
    session = WebChannelSession(sessions.limits, now: .now())
  }

  // MARK: Requests

  /// Opens the session: responds to the handshake, then delivers its messages.
  func begin(_ stream: any StreamCall, _ body: ForwardBody, _ request: WebChannelRequest) {
    self.stream = stream
    do throws(WebChannelError) {
      try session.receive(body.messages, acknowledged: nil, now: .now())
      request.respond(WebChannelFrames.handshake(session: id, keepAlive: sessions.limits.keepAlive))
      deliver()
    } catch {
      request.reject(error)
      close()
    }
  }

  /// Serves a forward POST.
  func forward(_ body: ForwardBody, acknowledged: Int?, _ request: WebChannelRequest) {
    guard !hasEnded else { return request.reject(.unknownSession) }
    do throws(WebChannelError) {
      try session.receive(body.messages, acknowledged: acknowledged, now: .now())
      request.respond(session.forwardResponse)
      deliver()
    } catch {
      request.reject(error)
    }
  }

  /// Serves a GET that opens a back channel.
  func open(_ backChannel: BackChannelRequest, _ request: WebChannelRequest) {
    guard !hasEnded else { return request.reject(.unknownSession) }
    var backChannel = backChannel
    backChannel.occupiesLastConnection =
      !sessions.mayHoldLong(self, occupiesConnection: backChannel.occupiesConnection)
    do throws(WebChannelError) {
      let actions = try session.open(backChannel, now: .now())
      finishBackChannel()
      if actions.endsBackChannel {
        request.respond(actions.frames)
        update()
      } else {
        // The head is sent immediately, since clients that use `fetch` fail if a connection is lost before it.
        request.begin()
        back = request.responder
        observe(request.responder)
        apply(actions)
      }
    } catch {
      request.reject(error)
      update()
    }
  }

  /// Ends the session, at the request of the client or by eviction.
  func close() {
    guard !hasEnded else { return }
    hasEnded = true
    finishBackChannel()
    timer?.task.cancel()
    timer = nil
    memory.release(heldBytes)
    heldBytes = 0
    pages.close()
    sessions.remove(self)
    endStream()
  }

  /// Ends the response of a back channel that was replaced or whose session ended.
  private func finishBackChannel() {
    back?.finishOrAbort()
    back = nil
  }

  /// Observes the end and the draining of the back channel's connection.
  private func observe(_ responder: HTTPResponder) {
    guard let id = session.backChannel else { return }
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    responder.onEnd { [eventLoop] in eventLoop.execute { this.value.backChannelDisconnected(id) } }
    responder.onDrain { [eventLoop] in eventLoop.execute { this.value.stream?.drain() } }
  }

  private func backChannelDisconnected(_ id: WebChannelSession.BackChannelID) {
    guard session.backChannel == id else { return }
    session.disconnect(id, now: .now())
    back = nil
    update()
  }

  // MARK: The stream

  /// Sends responses, each one JSON value; false if the stream must wait before it sends more.
  /// - Throws: `CancellationError` after the end of the stream.
  func send(_ payloads: [ByteBuffer]) throws -> Bool {
    guard stream != nil else { throw CancellationError() }
    apply(session.send(payloads, now: .now()))
    return session.canSend
  }

  /// Resumes a sender when the stream can send again, or throws `CancellationError` into it after the stream's end.
  func suspendSender(_ continuation: CheckedContinuation<Void, any Error>) {
    guard stream != nil else { return continuation.resume(throwing: CancellationError()) }
    if session.canSend { continuation.resume() } else { suspendedSenders.append(continuation) }
  }

  /// Ends the stream with a status, which the client receives as the last response.
  func finish(_ status: GRPCStatus) {
    guard stream != nil else { return }
    let last = status.code == .ok ? WebChannelFrames.close : WebChannelFrames.error(status)
    apply(session.finish(last, now: .now()))
    endStream()
    update()
  }

  func setReading(_ enabled: Bool) {
    isReading = enabled
    if enabled { deliver() }
  }

  /// Delivers messages to the stream until it pauses. `isDelivering` guards against reentrancy: the stream may pause or
  /// resume reading while it receives a message.
  private func deliver() {
    if session.exceedsPendingLimit {
      let limit = sessions.limits.maximumPendingBytes
      finish(GRPCStatus(.resourceExhausted, "The queued messages exceed the limit of \(limit) bytes."))
    }
    if !isDelivering {
      isDelivering = true
      while isReading, decodingBytes == 0, stream != nil, let message = session.nextMessage() {
        decode(message)
      }
      isDelivering = false
    }
    update()
  }

  private func decode(_ message: ByteBuffer) {
    guard message.readableBytes > Self.maximumInlineBytes else { return receive(codec.decode(message)) }
    decodingBytes = message.readableBytes
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [codec, eventLoop] in
      let decoded = codec.decode(message)
      eventLoop.execute {
        this.value.decodingBytes = 0
        this.value.receive(decoded)
        this.value.deliver()
      }
    }
  }

  private func receive(_ message: Result<ByteBuffer, MalformedMessage>) {
    switch message {
    case .success(let message): stream?.receive(message)
    case .failure(let malformed): stream?.receive(malformed)
    }
  }

  private func endStream() {
    let ended = stream
    stream = nil
    ended?.end()
    resumeSenders()
  }

  private func resumeSenders() {
    guard !suspendedSenders.isEmpty, stream == nil || session.canSend else { return }
    let resumed = suspendedSenders
    suspendedSenders = []
    for waiter in resumed {
      if stream == nil { waiter.resume(throwing: CancellationError()) } else { waiter.resume() }
    }
  }

  // MARK: Actions

  private func apply(_ actions: WebChannelSession.Actions) {
    if actions.frames.readableBytes > 0 { back?.write(actions.frames) }
    if actions.endsBackChannel {
      back?.finish()
      back = nil
    }
    if actions.endsSession { close() } else { update() }
  }

  /// Resumes senders, updates the memory accounting and schedules the timer after a change of the session.
  func update() {
    guard !hasEnded else { return }
    resumeSenders()
    let held = session.heldBytes + decodingBytes + (stream?.heldBytes ?? 0)
    guard memory.resize(from: heldBytes, to: held) else { return close() }
    heldBytes = held
    guard sessions.report(self, held: held, isIdle: session.backChannel == nil) else { return close() }
    schedule()
  }

  private func schedule() {
    let due = session.deadline
    if let timer {
      if timer.due <= due { return }
      timer.task.cancel()
    }
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    timer = (due, eventLoop.scheduleTask(deadline: due) { this.value.timerFired() })
  }

  private func timerFired() {
    timer = nil
    guard !hasEnded else { return }
    apply(session.tick(now: .now()))
  }
}
