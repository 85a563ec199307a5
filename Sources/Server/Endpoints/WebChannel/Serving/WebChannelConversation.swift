// One session at work: moves what the session's rules say between HTTP requests, which may come on any connection, and
// the stream that they carry.
//
// Invariants
//   1. Everything happens on the event loop of the connection that opened the session.
//   2. A POST is answered before its messages reach the stream: a commit that waits must not hold up the next POST.
//   3. What is large is decoded beside the event loop, and nothing overtakes it. What cannot be read reaches the stream
//      in its turn, too, which may be at work on what came before.
//   4. However the session ends, its stream is ended, its senders are resumed and it leaves the list, once.

import FirestoreModel
import GRPCFraming
import NIOCore

final class WebChannelConversation {
  /// Bytes of a request above which it is read beside the event loop.
  static let largeBytes = 64 << 10

  let id: String
  private let codec: StreamCodec
  private let eventLoop: any EventLoop
  private let sessions: WebChannelSessions
  private let memory: MemoryReservation
  private var heldBytes = 0
  private var session: WebChannelSession
  private var stream: (any StreamCall)?
  private var isReading = true
  private var isDelivering = false
  /// Bytes of the message that is being decoded.
  private var decodingBytes = 0
  private var isOver = false
  private var back: HTTPResponder?
  private var waiters: [CheckedContinuation<Void, any Error>] = []
  private var timer: (due: NIODeadline, task: Scheduled<Void>)?

  init(_ id: String, _ codec: StreamCodec, _ sessions: WebChannelSessions, on eventLoop: any EventLoop) {
    self.id = id
    self.codec = codec
    self.sessions = sessions
    self.eventLoop = eventLoop
    memory = MemoryReservation(sessions.port)
    session = WebChannelSession(sessions.limits, now: .now())
  }

  // MARK: Requests

  /// Opens the session: answers the handshake, then delivers the messages that came with it.
  func begin(_ stream: any StreamCall, _ body: ForwardBody, _ request: WebChannelRequest) {
    self.stream = stream
    do throws(WebChannelRefusal) {
      try session.receive(body.messages, acknowledged: nil, now: .now())
      request.answer(WebChannelFrames.handshake(session: id, keepAlive: sessions.limits.keepAlive))
      deliver()
    } catch {
      request.refuse(error)
      close()
    }
  }

  func forward(_ body: ForwardBody, acknowledged: Int?, _ request: WebChannelRequest) {
    guard !isOver else { return request.refuse(.unknownSession) }
    do throws(WebChannelRefusal) {
      try session.receive(body.messages, acknowledged: acknowledged, now: .now())
      request.answer(session.forwardAnswer)
      deliver()
    } catch {
      request.refuse(error)
    }
  }

  func open(_ asked: BackChannelRequest, _ request: WebChannelRequest) {
    guard !isOver else { return request.refuse(.unknownSession) }
    do throws(WebChannelRefusal) {
      let steps = try session.open(asked, now: .now())
      retireBackChannel()
      if steps.endsBackChannel {
        request.answer(steps.frames)
        update()
      } else {
        // The head goes out at once even if nothing else does: clients that fetch do not survive the loss of a
        // connection that has said nothing yet.
        request.begin()
        back = request.responder
        watch(request.responder)
        apply(steps)
      }
    } catch {
      request.refuse(error)
    }
  }

  /// The client, or the list for want of room, ends the session.
  func close() {
    guard !isOver else { return }
    isOver = true
    retireBackChannel()
    timer?.task.cancel()
    timer = nil
    memory.release(heldBytes)
    heldBytes = 0
    sessions.remove(self)
    endStream()
  }

  /// Ends a back channel that nobody waits for any more.
  private func retireBackChannel() {
    back?.finishOrAbort()
    back = nil
  }

  private func watch(_ responder: HTTPResponder) {
    guard let id = session.backChannel else { return }
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    responder.onEnd { [eventLoop] in eventLoop.execute { this.value.lost(id) } }
    responder.onDrain { [eventLoop] in eventLoop.execute { this.value.stream?.drain() } }
  }

  private func lost(_ id: WebChannelSession.BackChannelID) {
    guard session.backChannel == id else { return }
    session.lose(id, now: .now())
    back = nil
    update()
  }

  // MARK: The stream

  /// Takes answers, each one JSON value; false if the stream has to wait with more.
  func send(_ payloads: [ByteBuffer]) throws -> Bool {
    guard stream != nil else { throw CancellationError() }
    apply(session.send(payloads, now: .now()))
    return session.hasRoom
  }

  func waitForRoom(_ continuation: CheckedContinuation<Void, any Error>) {
    guard stream != nil else { return continuation.resume(throwing: CancellationError()) }
    if session.hasRoom { continuation.resume() } else { waiters.append(continuation) }
  }

  /// The stream has ended.
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

  /// Hands messages to the stream while it takes them. It may ask for a pause, or for more, in the middle of one.
  private func deliver() {
    if session.isOverwhelmed {
      let limit = sessions.limits.maximumWaitingBytes
      finish(GRPCStatus(.resourceExhausted, "The messages that wait exceed the limit of \(limit) bytes."))
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
    guard message.readableBytes > Self.largeBytes else { return receive(codec.decode(message)) }
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

  private func receive(_ message: Result<ByteBuffer, UnreadableMessage>) {
    switch message {
    case .success(let message): stream?.receive(message)
    case .failure(let invalidPayload): stream?.receive(invalidPayload)
    }
  }

  private func endStream() {
    let ended = stream
    stream = nil
    ended?.end()
    resumeWaiters()
  }

  private func resumeWaiters() {
    guard !waiters.isEmpty, stream == nil || session.hasRoom else { return }
    let resumed = waiters
    waiters = []
    for waiter in resumed {
      if stream == nil { waiter.resume(throwing: CancellationError()) } else { waiter.resume() }
    }
  }

  // MARK: What follows

  private func apply(_ steps: WebChannelSession.Steps) {
    if steps.frames.readableBytes > 0 { back?.write(steps.frames) }
    if steps.endsBackChannel {
      back?.finish()
      back = nil
    }
    if steps.isOver { close() } else { update() }
  }

  /// Brings up to date what depends on the session's state.
  func update() {
    guard !isOver else { return }
    resumeWaiters()
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
    timer = (due, eventLoop.scheduleTask(deadline: due) { this.value.isDue() })
  }

  private func isDue() {
    timer = nil
    guard !isOver else { return }
    apply(session.tick(now: .now()))
  }
}
