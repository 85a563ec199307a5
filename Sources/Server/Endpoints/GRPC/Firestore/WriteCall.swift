// One Write stream: a handshake, then one atomic commit for each message, answered in order.
//
// Invariants
//   1. Messages are committed one after the other. A message that fails, or cannot be read, ends the stream with its
//      error in its turn: those before it are answered, and none after it is applied.
//   2. What waits is bounded in messages and bytes: beyond that the client is not read from until half of it is served.
//   3. Without a commit under way the stream ends with OK after the client's goodbye, else with UNAVAILABLE: clients
//      take a permanent error for the answer to their first pending batch.

import FirestoreEngine
import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore

final class WriteCall: StreamCall, Sendable {
  private typealias Received = Result<ByteBuffer, GRPCStatus>

  private struct State {
    var waiting = CircularBuffer<Received>()
    /// Bytes of the messages that wait, and of the one that is being served.
    var waitingBytes = 0
    var servedBytes = 0
    var isServing = false
    var isPaused = false
    var halfClosed = false
    var draining = false
    var ended = false
    var database: DatabaseName?
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

  func receive(_ message: ByteBuffer) { take(.success(message)) }

  func receive(_ message: UnreadableMessage) { take(.failure(GRPCStatus(message.error))) }

  func receive(refusal: GRPCStatus) { take(.failure(refusal)) }

  private func take(_ message: Received) {
    let (mustServe, isFull) = state.withLockedValue { state in
      state.waiting.append(message)
      state.waitingBytes += Self.bytes(message)
      defer { state.isServing = true }
      state.isPaused =
        state.waiting.count >= FirestoreRequestLimits.waitingMessages
        || state.waitingBytes >= FirestoreRequestLimits.waitingBytes
      return (!state.isServing, state.isPaused)
    }
    if isFull { responder.setReading(false) }
    if mustServe { responder.start { await self.serve() } }
  }

  func halfClose() {
    let isIdle = state.withLockedValue { state in
      state.halfClosed = true
      return !state.isServing
    }
    if isIdle { responder.finish(.ok) }
  }

  func drain() {
    let isIdle = state.withLockedValue { state in
      state.draining = true
      return !state.isServing
    }
    if isIdle { responder.finish(Self.shuttingDown) }
  }

  func end() {
    state.withLockedValue { state in
      state.ended = true
      state.waiting = []
      state.waitingBytes = 0
    }
  }

  var heldBytes: Int { state.withLockedValue { $0.waitingBytes + $0.servedBytes } }

  private static func bytes(_ message: Received) -> Int {
    if case .success(let message) = message { message.readableBytes } else { 0 }
  }

  private static let shuttingDown = GRPCStatus(.unavailable, "The server is shutting down.")

  /// Serves what waits, until nothing does.
  private func serve() async {
    while true {
      switch next() {
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
          return  // The client is gone.
        }
      }
    }
  }

  private func next() -> Step {
    let (step, hasRoom, wasServed): (Step, Bool, Bool) = state.withLockedValue { state in
      let wasServed = state.servedBytes > 0
      state.servedBytes = 0
      if state.ended { return (.wait, false, false) }
      if state.draining { return (.finish(Self.shuttingDown), false, false) }
      let message: ByteBuffer
      switch state.waiting.popFirst() {
      case .success(let next): message = next
      case .failure(let refusal): return (.finish(refusal), false, false)
      case nil:
        state.isServing = false
        return (state.halfClosed ? .finish(.ok) : .wait, false, wasServed)
      }
      state.servedBytes = message.readableBytes
      state.waitingBytes -= state.servedBytes
      let hasRoom =
        state.isPaused && state.waiting.count <= FirestoreRequestLimits.waitingMessages / 2
        && state.waitingBytes <= FirestoreRequestLimits.waitingBytes / 2
      if hasRoom { state.isPaused = false }
      return (.serve(message), hasRoom, wasServed)
    }
    if hasRoom { responder.setReading(true) }
    if wasServed { responder.updateHeldBytes() }
    return step
  }

  private func serve(_ request: WriteStreamRequest) async throws {
    guard let database = state.withLockedValue({ $0.database }) else { return try await shakeHands(request) }
    guard request.database.isEmpty || request.database == database.description else {
      throw FirestoreError.invalidArgument("A Write stream serves one database, here \(database).")
    }
    guard !request.writes.isEmpty else {
      // The client says goodbye.
      try await responder.send(try ResponseEncoding.write(streamID: "", token: takeToken(), nil))
      responder.finish(.ok)
      return
    }
    let caller = try service.caller(head)
    let response = try await service.engine.commit(in: database, request.writes, as: caller)
    try await responder.send(try ResponseEncoding.write(streamID: "", token: takeToken(), response))
  }

  private func shakeHands(_ request: WriteStreamRequest) async throws {
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
    _ = try service.caller(head)
    state.withLockedValue { $0.database = database }
    try await responder.send(try ResponseEncoding.write(streamID: streamID, token: takeToken(), nil))
  }

  private func takeToken() -> Int {
    state.withLockedValue { state in
      defer { state.token += 1 }
      return state.token
    }
  }
}
