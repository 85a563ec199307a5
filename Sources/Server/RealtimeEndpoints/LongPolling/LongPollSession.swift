// A long-poll session runs a client session over long polling, for a browser without a WebSocket. The browser
// loads scripts: their URLs carry the client's messages, their contents the server's messages.
//
// A poll is the request for such a script. The session holds a poll, which means that it delays the response,
// until there is a message or a newer poll. If the client opens a WebSocket, the session moves to it (see
// LongPollSession+Upgrade).
//
// Invariants
//   1. The session is confined to one event loop.
//   2. Queued messages are bounded. While too many requests are unanswered, polls are held even if a newer
//      poll arrives. A client that still sends more requests is rejected.
//   3. A client that stops polling is disconnected.
//   4. After its end a session is not in ``LongPollSessions``.

import Logging
import NIOCore
import Ports
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class LongPollSession {
  /// A poll without a response.
  private struct HeldPoll {
    let serial: Int
    let response: PendingPollResponse
    let deadline: Scheduled<Void>
  }

  let id: String
  let password = LongPollName.make()
  /// The session's name in the engine. A WebSocket that continues the session identifies it by this name.
  private(set) var name = ""
  let endpoint: RealtimeEndpoint
  let eventLoop: any EventLoop
  let session: RealtimeSession
  private var segments: SegmentAssembler
  private var queue = BatchQueue()
  private let memory: MemoryReservation
  /// The bytes reserved in the server's memory budget.
  private var heldBytes = 0
  private var heldPolls: [HeldPoll] = []
  private var lastSeen = NIODeadline.now()
  /// Whether the session accepts no more input. The response to the client's next poll reports the end.
  private(set) var isClosing = false
  private(set) var hasEnded = false
  var upgrade = Upgrade.none

  /// - Parameter address: the client's address, without its port; empty if unknown.
  init(_ endpoint: RealtimeEndpoint, _ port: PortLimits, address: String, on eventLoop: any EventLoop) {
    self.endpoint = endpoint
    let id = LongPollName.make()
    self.id = id
    let holder = MemoryHolder(port.memory, address: address) { [weak longPolls = endpoint.longPolls] in
      longPolls?.session(id: id)?.run { $0.end() }
    }
    memory = MemoryReservation(port, holder)
    self.eventLoop = eventLoop
    session = RealtimeSession(endpoint, encoding: .text)
    segments = SegmentAssembler(
      maximumBytes: endpoint.limits.messageBytes, window: endpoint.limits.longPollSegments)
  }

  // MARK: Lifecycle

  /// Opens the session. Returns the script for the first response; nil if the limit of sessions is reached.
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
    script.writeImmutableBuffer(queue.nextBatch(limit: endpoint.limits.longPollBatchBytes))
    scheduleActivityCheck()
    return script
  }

  /// Ends the session, for any reason.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    endpoint.longPolls.remove(self)
    session.end()
    upgrade.socket?.close()
    upgrade = .none
    while !heldPolls.isEmpty { respond(with: LongPollScript.close) }
    queue = BatchQueue()
    memory.release(heldBytes)
    heldBytes = 0
  }

  /// Updates the memory reservation for queued messages, segments and unanswered requests.
  private func updateReservation() {
    let holds = queue.bytes + segments.heldBytes + session.outstandingBytes
    // Queued messages are results, which leave a part of the memory to others.
    if memory.resize(from: heldBytes, to: holds, leavingRoom: queue.bytes > 0) {
      heldBytes = holds
    } else {
      endpoint.log.info("session ended: the memory budget of the server is exhausted")
      end()
    }
  }

  /// Ends the session for a shutdown, unless it has moved to a WebSocket.
  func drain() {
    if case .done = upgrade { return }
    end()
  }

  /// Ends the session because the client is gone, unless it has moved to a WebSocket.
  func disconnect(password: String) {
    guard password == self.password else { return }
    if case .done = upgrade { return }
    end()
  }

  /// Stops accepting input. The response to the client's next poll delivers all queued messages and reports
  /// the end.
  private func close() {
    isClosing = true
    session.end()
    respondToReadyPolls()
  }

  /// Ends the session when its client stops polling.
  private func scheduleActivityCheck() {
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(deadline: lastSeen + endpoint.limits.lostAfter) {
      let this = bound.value
      if this.hasEnded { return }
      if case .done = this.upgrade { return }
      if !this.heldPolls.isEmpty { this.lastSeen = .now() }
      if NIODeadline.now() - this.lastSeen >= this.endpoint.limits.lostAfter { return this.end() }
      this.scheduleActivityCheck()
    }
  }

  // MARK: Polls

  /// Accepts the segments of a poll, and holds the poll until there is a message.
  func poll(_ request: LongPollRequest.Poll, _ response: PendingPollResponse) {
    guard !hasEnded, password == request.password else { return response.send(LongPollScript.close) }
    lastSeen = .now()
    let isOutOfOrder = heldPolls.contains { $0.serial > request.serial }
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let deadline = eventLoop.scheduleTask(in: endpoint.limits.longPollHold) {
      bound.value.expire(request.serial)
    }
    heldPolls.append(HeldPoll(serial: request.serial, response: response, deadline: deadline))
    for segment in request.segments where !isClosing && !hasEnded { receive(segment) }
    respondToReadyPolls()
    // Some browsers run scripts in the order of their requests. An unanswered earlier poll would block the
    // answer of a later one, so all are answered.
    if isOutOfOrder, case .none = upgrade {
      while !heldPolls.isEmpty { respondWithBatch() }
    }
  }

  /// Drops a poll whose connection has ended.
  func abandon(_ serial: Int) {
    guard let index = heldPolls.firstIndex(where: { $0.serial == serial }) else { return }
    heldPolls.remove(at: index).deadline.cancel()
    lastSeen = .now()
  }

  /// Responds to a poll that was held for the maximum time.
  private func expire(_ serial: Int) {
    guard heldPolls.contains(where: { $0.serial == serial }) else { return }
    if case .done = upgrade { return respond(with: LongPollScript.close) }
    respondWithBatch()
  }

  /// Responds to polls for which there is a message, and to polls that a newer poll replaces.
  private func respondToReadyPolls() {
    guard !hasEnded else { return }
    if case .done = upgrade { return }
    if isClosing {
      if !heldPolls.isEmpty {
        respondWithLastBatch()
        end()
      }
      return
    }
    let limits = endpoint.limits
    // The client sends its next requests after each response. Responses without messages are therefore
    // delayed while too many requests are unanswered.
    while heldPolls.count > 2
      || heldPolls.count > 1 && (!queue.isEmpty || !session.isFull(limits, half: false))
    {
      respondWithBatch()
    }
    while !heldPolls.isEmpty, !queue.isEmpty { respondWithBatch() }
    updateReservation()
    if !hasEnded, queue.bytes > limits.data.queuedOutputBytes, queue.count > 1 {
      endpoint.log.info("session ended: the client does not poll for its queued output")
      end()
    }
  }

  private func respondWithBatch() {
    respond(with: queue.nextBatch(limit: endpoint.limits.longPollBatchBytes))
  }

  /// Responds to the oldest poll with all queued messages and the announcement that none follow.
  func respondWithLastBatch() {
    var script = ByteBuffer()
    if !queue.isEmpty { script.writeImmutableBuffer(queue.nextBatch(limit: .max)) }
    script.writeImmutableBuffer(queue.closingScript())
    respond(with: script)
  }

  /// Responds to the oldest poll.
  private func respond(with script: ByteBuffer) {
    guard !heldPolls.isEmpty else { return }
    let poll = heldPolls.removeFirst()
    poll.deadline.cancel()
    lastSeen = .now()
    poll.response.send(script)
  }

  /// Whether the client sends requests although its polls are held. A client with two polls in flight stays far below
  /// this limit.
  private var isFlooded: Bool {
    session.reachesLimits(requests: 2 * endpoint.limits.outstandingRequests, bytes: .max)
  }

  private func receive(_ segment: Segment) {
    let messages: [MessageAssembler.Received]
    do throws(SegmentAssembler.Fault) {
      messages = try segments.receive(segment)
    } catch {
      return reject(error.reason, code: 1002)
    }
    for message in messages where !isClosing && !hasEnded {
      guard !isFlooded else {
        let limit = endpoint.limits.outstandingRequests
        return reject(
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
    case .endOfTransmission: completeUpgrade()
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

  func canSend(_ message: ByteBuffer) -> Bool {
    guard case .done = upgrade else { return true }
    return message.withUnsafeReadableBytes { MessageSplitter.fits($0, maximum: endpoint.limits.socketFrames) }
  }

  func flush() {
    if case .done = upgrade { socketFlush() } else { respondToReadyPolls() }
  }

  func requestsWereAnswered() {
    if case .done = upgrade { acknowledge() } else { respondToReadyPolls() }
  }

  func sessionWasReplaced() {
    if case .none = upgrade { close() } else { end() }
  }

  func reject(_ reason: String, code: UInt16) {
    if case .done(let moved) = upgrade {
      moved.socket.reject(reason, code: code)
      return end()
    }
    write(ByteBuffer(bytes: ServerControl.error(reason).json()), counted: false)
    close()
  }
}
