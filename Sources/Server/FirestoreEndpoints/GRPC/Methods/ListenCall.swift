// A Listen call: one Listen stream. Passes target changes to the engine in order, and the engine's responses to the
// client.
//
// Invariants
//   1. A malformed target ends only that target, by a REMOVE with a cause. The stream stays open.
//   2. Until the engine opens the stream, requests are queued in order and reading from the client is paused.
//   3. The stream ends with OK only after the client's half-close. Otherwise it ends with an error, which clients
//      retry or report.

import FirestoreEngine
import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore

/// The server side of one Listen stream.
final class ListenCall: StreamCall, Sendable {
  private enum Phase {
    /// Before the first request, which names the database.
    case awaitingFirst
    /// The engine is opening the stream; later requests are queued.
    case opening(DatabaseName, pending: [SizedRequest])
    case open(DatabaseName, WatchStream)
    case ended
  }

  /// A request and its encoded size.
  private struct SizedRequest {
    var request: ListenStreamRequest
    var bytes: Int
  }

  private let service: FirestoreService
  private let head: GRPCRequestHead
  private let responder: any CallResponder
  private let phase = NIOLockedValueBox(Phase.awaitingFirst)

  init(_ service: FirestoreService, _ head: GRPCRequestHead, _ responder: any CallResponder) {
    self.service = service
    self.head = head
    self.responder = responder
  }

  func receive(_ message: ByteBuffer) { handle(message) }

  func receive(_ message: MalformedMessage) {
    guard let targetFields = message.targetFields else { return responder.finish(GRPCStatus(message.error)) }
    handle(targetFields, targetError: message.error)
  }

  func receive(rejection: GRPCStatus) { responder.finish(rejection) }

  /// Decodes and applies a request.
  /// - Parameter targetError: the error of the target that the request adds, if decoding JSON already failed.
  private func handle(_ message: ByteBuffer, targetError: FirestoreError? = nil) {
    do throws(FirestoreError) {
      var request = try ListenStreamRequest(request: message, limit: service.requestBytes)
      if let targetError, case .add(var target)? = request.change {
        target.selection = .failure(targetError)
        request.change = .add(target)
      }
      let bytes = message.readableBytes
      switch phase.withLockedValue({ $0 }) {
      case .awaitingFirst: try open(SizedRequest(request: request, bytes: bytes))
      case .opening(let database, var pending):
        try Self.check(request, belongsTo: database)
        pending.append(SizedRequest(request: request, bytes: bytes))
        phase.withLockedValue { $0 = .opening(database, pending: pending) }
      case .open(let database, let stream):
        try Self.check(request, belongsTo: database)
        try Self.apply(request, bytes, to: stream)
      case .ended: break
      }
    } catch {
      responder.finish(GRPCStatus(error))
    }
  }

  func halfClose() {
    responder.finish(.ok)
  }

  func drain() {
    responder.finish(GRPCStatus(.unavailable, "The server is shutting down."))
  }

  func end() {
    let stream: WatchStream? = phase.withLockedValue { phase in
      defer { phase = .ended }
      if case .open(_, let stream) = phase { return stream }
      return nil
    }
    stream?.close()
  }

  var heldBytes: Int {
    phase.withLockedValue { phase in
      switch phase {
      case .awaitingFirst, .ended: 0
      case .opening(_, let pending): pending.reduce(0) { $0 + $1.bytes }
      case .open(_, let stream): stream.heldBytes
      }
    }
  }

  private func open(_ first: SizedRequest) throws(FirestoreError) {
    let database = try DatabaseName(parsing: first.request.database)
    let caller = try service.caller(head)
    phase.withLockedValue { $0 = .opening(database, pending: [first]) }
    responder.setReading(false)
    responder.start { [self] in
      do throws(FirestoreError) {
        streamOpened(
          try await service.engine.watch(database, as: caller, output: ListenOutput(responder: responder)))
      } catch {
        responder.finish(GRPCStatus(error))
      }
    }
  }

  private func streamOpened(_ stream: WatchStream) {
    let pending: [SizedRequest]? = phase.withLockedValue { phase in
      guard case .opening(let database, let pending) = phase else { return nil }
      phase = .open(database, stream)
      return pending
    }
    guard let pending else { return stream.close() }
    do {
      for sized in pending { try Self.apply(sized.request, sized.bytes, to: stream) }
      responder.setReading(true)
    } catch {
      responder.finish(GRPCStatus(error))
    }
  }

  private static func check(
    _ request: ListenStreamRequest, belongsTo database: DatabaseName
  ) throws(FirestoreError) {
    guard request.database.isEmpty || request.database == database.description else {
      throw .invalidArgument("A Listen stream serves one database, here \(database).")
    }
  }

  private static func apply(
    _ request: ListenStreamRequest, _ bytes: Int, to stream: WatchStream
  ) throws(FirestoreError) {
    switch request.change {
    case .add(let target):
      do {
        stream.addTarget(try WatchTarget(target, bytes: bytes))
      } catch {
        stream.rejectTarget(target.id, error)
      }
    case .remove(let id): stream.removeTarget(id)
    case nil: throw .invalidArgument("A ListenRequest must add or remove a target.")
    }
  }
}

extension WatchTarget {
  init(_ message: ListenStreamRequest.Target, bytes: Int) throws(FirestoreError) {
    let selection: Selection =
      switch try message.selection.get() {
      case .query(let query): .query(query)
      case .documents(let names): .documents(names)
      }
    var start = Start.beginning
    if let token = message.resumeToken, !token.isEmpty { start = .resumeToken(token) }
    if let time = message.readTime { start = .readTime(time) }
    self.init(
      id: message.id, selection, start: start, once: message.once, expectedCount: message.expectedCount,
      bytes: bytes)
  }
}

/// The output of a Listen stream: encodes the engine's responses and sends them to the client.
private struct ListenOutput: WatchOutput {
  let responder: any CallResponder

  var memory: (any ResultMemory)? { responder.memory }

  func send(_ responses: [WatchResponse]) async throws { try await send(responses) {} }

  func send(_ responses: [WatchResponse], onWait: @escaping @Sendable () -> Void) async throws {
    try await responder.send(try WatchEncoding.encode(responses), onWait: onWait)
  }

  func fail(_ error: FirestoreError) async {
    await responder.finishAndWait(GRPCStatus(error))
  }
}
