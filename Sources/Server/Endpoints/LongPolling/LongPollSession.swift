// A session of a browser that has no WebSocket, or none yet: scripts that it loads carry messages both ways.
//
// A poll is held until there is something to tell; a newer one releases it. Once the client has shown that a WebSocket
// works, the session moves there (see LongPollSession+Upgrade).
//
// Invariants: confined to one event loop; what waits for the client is bounded, and polls are not released while too much
// of what it sent is under way, and who goes on all the same is told off; a client that polls no more is given up; after
// its end the session is in no register.

import Logging
import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class LongPollSession {
  /// A poll that waits to be answered.
  private struct HeldPoll {
    let serial: Int
    let answer: LongPollAnswer
    let deadline: Scheduled<Void>
  }

  let id = LongPollName.make()
  let password = LongPollName.make()
  /// The session's name in the engine, by which a WebSocket may take it over.
  private(set) var name = ""
  let endpoint: RealtimeEndpoint
  let eventLoop: any EventLoop
  let session: RealtimeSession
  private var segments: SegmentAssembler
  private var queue = BatchQueue()
  private let memory: MemoryReservation
  /// What the session holds of the server's memory.
  private var heldBytes = 0
  private var held: [HeldPoll] = []
  private var lastSeen = NIODeadline.now()
  /// Nothing more is taken; the client is told so by its next poll.
  private(set) var isClosing = false
  private(set) var hasEnded = false
  var upgrade = Upgrade.none

  init(_ endpoint: RealtimeEndpoint, _ port: PortLimits, on eventLoop: any EventLoop) {
    self.endpoint = endpoint
    memory = MemoryReservation(port)
    self.eventLoop = eventLoop
    session = RealtimeSession(endpoint, form: .text)
    segments = SegmentAssembler(
      maximumBytes: endpoint.limits.messageBytes, window: endpoint.limits.longPollSegments)
  }

  // MARK: Life

  /// Begins, and gives the script that answers the first request; nil if there are as many sessions as may be.
  func open(_ database: RealtimeDatabase, _ start: LongPollRequest.Start) -> ByteBuffer? {
    name = session.open(database, lastSession: start.lastSession, on: eventLoop, over: self)
    guard endpoint.longPolls.add(self) else {
      session.end()
      return nil
    }
    let hello = ServerHello(timestamp: endpoint.now(), host: start.host, sessionID: name)
    queue.append(ByteBuffer(bytes: ServerControl.hello(hello).json()))
    var script = LongPollScript.functions(callback: start.callback)
    script.writeString("pLPCommand('start','\(id)','\(password)');\n")
    script.writeImmutableBuffer(queue.batch(limit: endpoint.limits.longPollBatchBytes))
    watch()
    return script
  }

  /// Ends the session, whoever ended it.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    endpoint.longPolls.remove(self)
    session.end()
    upgrade.socket?.close()
    upgrade = .none
    while !held.isEmpty { answer(LongPollScript.close) }
    queue = BatchQueue()
    memory.give(heldBytes)
    heldBytes = 0
  }

  /// Counts what the session holds: what waits for polls, pieces of messages, and requests under way.
  private func account() {
    let holds = queue.bytes + segments.heldBytes + session.outstandingBytes
    if memory.hold(holds, insteadOf: heldBytes) {
      heldBytes = holds
    } else {
      endpoint.log.info("session cut off: the server holds as many bytes as it may")
      end()
    }
  }

  /// The server shuts down: a client that listens is told.
  func drain() {
    if case .done = upgrade { return }
    end()
  }

  /// The client says that it has gone; what became of a session that moved to a WebSocket is not its concern.
  func disconnect(password: String) {
    guard password == self.password else { return }
    if case .done = upgrade { return }
    end()
  }

  /// Tells the client by its next poll, behind all that it was told before, that the session is over.
  private func close() {
    isClosing = true
    session.end()
    settle()
  }

  /// Gives up a client that polls no more.
  private func watch() {
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(deadline: lastSeen + endpoint.limits.lostAfter) {
      let this = bound.value
      if this.hasEnded { return }
      if case .done = this.upgrade { return }
      if !this.held.isEmpty { this.lastSeen = .now() }
      if NIODeadline.now() - this.lastSeen >= this.endpoint.limits.lostAfter { return this.end() }
      this.watch()
    }
  }

  // MARK: Polls

  /// Takes what a poll brings and holds it until there is something to tell.
  func poll(_ request: LongPollRequest.Poll, _ answer: LongPollAnswer) {
    guard !hasEnded, password == request.password else { return answer.give(LongPollScript.close) }
    lastSeen = .now()
    let isOvertaken = held.contains { $0.serial > request.serial }
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let deadline = eventLoop.scheduleTask(in: endpoint.limits.longPollHold) {
      bound.value.expire(request.serial)
    }
    held.append(HeldPoll(serial: request.serial, answer: answer, deadline: deadline))
    for segment in request.segments where !isClosing && !hasEnded { receive(segment) }
    settle()
    // Some browsers run scripts in the order in which they asked for them.
    if isOvertaken, case .none = upgrade {
      while !held.isEmpty { answerBatch() }
    }
  }

  /// Forgets a poll whose connection has ended.
  func abandon(_ serial: Int) {
    guard let index = held.firstIndex(where: { $0.serial == serial }) else { return }
    held.remove(at: index).deadline.cancel()
    lastSeen = .now()
  }

  /// Answers a poll that was held long enough.
  private func expire(_ serial: Int) {
    guard held.contains(where: { $0.serial == serial }) else { return }
    if case .done = upgrade { return answer(LongPollScript.close) }
    answerBatch()
  }

  /// Answers polls for which there is something to tell, and those that another has replaced.
  private func settle() {
    guard !hasEnded else { return }
    if case .done = upgrade { return }
    if isClosing {
      if !held.isEmpty {
        answerLast()
        end()
      }
      return
    }
    let limits = endpoint.limits
    // The client sends more for every answer, so that none is given for nothing while too much is under way.
    while held.count > 2 || held.count > 1 && (!queue.isEmpty || !session.isFull(limits, half: false)) {
      answerBatch()
    }
    while !held.isEmpty, !queue.isEmpty { answerBatch() }
    account()
    if !hasEnded, queue.bytes > limits.data.queuedOutputBytes, queue.count > 1 {
      endpoint.log.info("session cut off: it does not poll for what it listens to")
      end()
    }
  }

  private func answerBatch() { answer(queue.batch(limit: endpoint.limits.longPollBatchBytes)) }

  /// Answers the oldest poll with everything that is left, and that nothing follows.
  func answerLast() {
    var script = ByteBuffer()
    if !queue.isEmpty { script.writeImmutableBuffer(queue.batch(limit: .max)) }
    script.writeImmutableBuffer(queue.close())
    answer(script)
  }

  /// Answers the oldest poll.
  private func answer(_ script: ByteBuffer) {
    guard !held.isEmpty else { return }
    let poll = held.removeFirst()
    poll.deadline.cancel()
    lastSeen = .now()
    poll.answer.give(script)
  }

  /// Whether the client goes on although its polls are not answered: one that has two under way, as clients have, stays
  /// far below this.
  private var isFlooded: Bool { session.isFull(2 * endpoint.limits.outstandingRequests, .max) }

  private func receive(_ segment: Segment) {
    let messages: [MessageAssembler.Received]
    do throws(SegmentAssembler.Fault) {
      messages = try segments.receive(segment)
    } catch {
      return refuse(error.reason, code: 1002)
    }
    for message in messages where !isClosing && !hasEnded {
      guard !isFlooded else {
        let limit = endpoint.limits.outstandingRequests
        return refuse(
          "More than \(2 * limit) requests wait for answers; send no more while \(limit) do.", code: 1008)
      }
      switch message {
      case .assembled(let bytes):
        if let control = bytes.withUnsafeBytes({ session.receive($0) }) { receive(control) }
      case .oversized(let request): session.receiveOversized(request: request)
      case .nothing, .message: break
      }
    }
  }

  private func receive(_ control: ClientControl) {
    switch control {
    case .ping: write(ByteBuffer(bytes: ServerControl.pong.json()), counted: false)
    case .endOfTransmission: moveToSocket()
    case .switchAcknowledged, .unknown: break
    }
  }
}

extension LongPollSession: SessionTransport {
  func write(_ message: ByteBuffer, counted: Bool) {
    if case .done = upgrade {
      socketWrite(message)
    } else {
      queue.append(message)
    }
  }

  func takes(_ message: ByteBuffer) -> Bool {
    guard case .done = upgrade else { return true }
    return message.withUnsafeReadableBytes { MessageSplitter.fits($0, maximum: endpoint.limits.socketPieces) }
  }

  func flush() {
    if case .done = upgrade { socketFlush() } else { settle() }
  }

  func requestsWereAnswered() {
    if case .done = upgrade { acknowledge() } else { settle() }
  }

  func sessionWasTakenOver() {
    if case .none = upgrade { close() } else { end() }
  }

  func refuse(_ reason: String, code: UInt16) {
    if case .done(let moved) = upgrade {
      moved.socket.refuse(reason, code: code)
      return end()
    }
    write(ByteBuffer(bytes: ServerControl.error(reason).json()), counted: false)
    close()
  }
}
