// A Write call: one Write stream. The first message is a handshake; each later message is one atomic commit, and
// responses are sent in order.
//
// Invariants
//   1. Messages are committed sequentially. A failed or malformed message ends the stream with its error, after the
//      responses to all earlier messages. No later message is applied.
//   2. Queued messages are bounded in number and bytes. When a bound is exceeded, reading from the client pauses until
//      half of the queue is committed.
//   3. Revoked or expired credentials end the stream with UNAUTHENTICATED, after the response to a message that is being
//      committed. No later message is applied.
//   4. An idle stream ends with OK after the client's half-close, and with UNAVAILABLE at shutdown. Clients would treat
//      a permanent error as the response to their first pending batch.

import Access
import FirestoreEngine
import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore

/// The server side of one Write stream.
final class WriteCall: StreamCall, Sendable {
  private typealias Received = Result<ByteBuffer, GRPCStatus>

  private struct State {
    var pending = CircularBuffer<Received>()
    /// Bytes of the queued messages.
    var pendingBytes = 0
    /// Bytes of the message that is being served.
    var servedBytes = 0
    var isServing = false
    /// Whether reading from the client is paused.
    var isPaused = false
    var isHalfClosed = false
    var isDraining = false
    var hasEnded = false
    /// The database that the handshake named.
    var database: DatabaseName?
    /// The caller of the handshake.
    var caller = Principal.nobody
    /// The error with which the stream ends because the caller's credentials expired or were revoked; nil until then.
    var invalidation: GRPCStatus?
    /// The next stream token.
    var token = 0
  }

  private enum Step {
    case serve(ByteBuffer)
    case finish(GRPCStatus)
    case wait
  }

  private let service: FirestoreService
  private let head: GRPCRequestHead
  private let responder: any CallResponder
  private let streamID: String
  private let state = NIOLockedValueBox(State())

  init(_ service: FirestoreService, _ head: GRPCRequestHead, _ responder: any CallResponder) {
    self.service = service
    self.head = head
    self.responder = responder
    self.streamID = String(UInt64.random(in: .min ... .max), radix: 36)
  }

  func receive(_ message: ByteBuffer) { enqueue(.success(message)) }

  func receive(_ message: MalformedMessage) { enqueue(.failure(GRPCStatus(message.error))) }

  func receive(rejection: GRPCStatus) { enqueue(.failure(rejection)) }

  private func enqueue(_ message: Received) {
    let (mustServe, isFull) = state.withLockedValue { state in
      state.pending.append(message)
      state.pendingBytes += Self.bytes(message)
      defer { state.isServing = true }
      state.isPaused =
        state.pending.count >= FirestoreRequestLimits.maximumPendingMessages
        || state.pendingBytes >= FirestoreRequestLimits.maximumPendingBytes
      return (!state.isServing, state.isPaused)
    }
    if isFull { responder.setReading(false) }
    if mustServe { responder.start { await self.serve() } }
  }

  func halfClose() {
    let isIdle = state.withLockedValue { state in
      state.isHalfClosed = true
      return !state.isServing
    }
    if isIdle { responder.finish(.ok) }
  }

  func drain() {
    let isIdle = state.withLockedValue { state in
      state.isDraining = true
      return !state.isServing
    }
    if isIdle { responder.finish(Self.shuttingDown) }
  }

  func end() {
    state.withLockedValue { state in
      state.hasEnded = true
      state.pending = []
      state.pendingBytes = 0
    }
    service.engine.callerStreams.remove(self)
  }

  var heldBytes: Int { state.withLockedValue { $0.pendingBytes + $0.servedBytes } }

  private static func bytes(_ message: Received) -> Int {
    if case .success(let message) = message { message.readableBytes } else { 0 }
  }

  private static let shuttingDown = GRPCStatus(.unavailable, "The server is shutting down.")

  /// Serves queued messages until the queue is empty.
  private func serve() async {
    while true {
      switch nextStep() {
      case .wait: return
      case .finish(let status):
        responder.finish(status)
        return
      case .serve(let message):
        do {
          try await serve(try WriteStreamRequest(request: message, limit: service.requestBytes))
        } catch let error as FirestoreError {
          responder.finish(GRPCStatus(error))
          return
        } catch {
          return  // The client disconnected.
        }
      }
    }
  }

  /// Removes the next message from the queue, and resumes reading when the queue is half empty.
  private func nextStep() -> Step {
    let (step, hasRoom, wasServed): (Step, Bool, Bool) = state.withLockedValue { state in
      let wasServed = state.servedBytes > 0
      state.servedBytes = 0
      if state.hasEnded { return (.wait, false, false) }
      if let status = state.invalidation { return (.finish(status), false, false) }
      if state.isDraining { return (.finish(Self.shuttingDown), false, false) }
      let message: ByteBuffer
      switch state.pending.popFirst() {
      case .success(let next): message = next
      case .failure(let error): return (.finish(error), false, false)
      case nil:
        state.isServing = false
        return (state.isHalfClosed ? .finish(.ok) : .wait, false, wasServed)
      }
      state.servedBytes = message.readableBytes
      state.pendingBytes -= state.servedBytes
      let hasRoom =
        state.isPaused && state.pending.count <= FirestoreRequestLimits.maximumPendingMessages / 2
        && state.pendingBytes <= FirestoreRequestLimits.maximumPendingBytes / 2
      if hasRoom { state.isPaused = false }
      return (.serve(message), hasRoom, wasServed)
    }
    if hasRoom { responder.setReading(true) }
    if wasServed { responder.updateHeldBytes() }
    return step
  }

  private func serve(_ request: WriteStreamRequest) async throws {
    guard let database = state.withLockedValue({ $0.database }) else { return try await handshake(request) }
    guard request.database.isEmpty || request.database == database.description else {
      throw FirestoreError.invalidArgument("A Write stream serves one database, here \(database).")
    }
    guard !request.writes.isEmpty else {
      // Clients close a Write stream by a request without writes.
      try await responder.send(try ResponseEncoding.write(streamID: "", token: nextToken(), nil))
      responder.finish(.ok)
      return
    }
    let caller = try service.caller(head)
    let response = try await service.engine.commit(in: database, request.writes, as: caller)
    try await responder.send(try ResponseEncoding.write(streamID: "", token: nextToken(), response))
  }

  /// Serves the first message, which names the database and has no writes.
  private func handshake(_ request: WriteStreamRequest) async throws {
    guard !request.database.isEmpty else {
      throw FirestoreError.invalidArgument("'database' must be set on an initial write request.")
    }
    guard request.writes.isEmpty else {
      throw FirestoreError.invalidArgument("'writes' must not be set on an initial write request.")
    }
    guard request.streamID.isEmpty else {
      throw FirestoreError.invalidArgument("Resuming streams is not supported, do not set stream ID.")
    }
    guard request.streamToken.isEmpty else {
      throw FirestoreError.invalidArgument(
        "Resuming streams is not supported, 'stream_token' must not be set on an initial write request.")
    }
    let database = try DatabaseName(parsing: request.database)
    let caller = try service.caller(head)
    state.withLockedValue { state in
      state.database = database
      state.caller = caller
    }
    service.engine.callerStreams.add(self)
    // The stream may have ended before it was added.
    if state.withLockedValue({ $0.hasEnded }) { service.engine.callerStreams.remove(self) }
    try await responder.send(try ResponseEncoding.write(streamID: streamID, token: nextToken(), nil))
  }

  /// Returns the next stream token: tokens count responses from 0.
  private func nextToken() -> Int {
    state.withLockedValue { state in
      defer { state.token += 1 }
      return state.token
    }
  }
}

extension WriteCall: CallerStream {
  var caller: Principal { state.withLockedValue { $0.caller } }

  /// Discards queued messages, so that the stream can only end with `error`.
  func invalidate(with error: FirestoreError) {
    state.withLockedValue { state in
      state.invalidation = GRPCStatus(error)
      state.pending = []
      state.pendingBytes = 0
    }
  }

  func endInvalidated() async {
    let status = state.withLockedValue { $0.isServing ? nil : $0.invalidation }
    if let status { await responder.finishAndWait(status) }
  }
}
