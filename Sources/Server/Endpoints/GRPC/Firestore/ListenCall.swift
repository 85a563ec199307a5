// One Listen stream: hands targets to the engine in the order they came, and the engine's answers to the client.
//
// Invariants
//   1. A target that cannot be read ends that target alone, by REMOVE with a cause, never the stream.
//   2. Until the engine has opened the stream, requests wait in order, and the client is not read from.
//   3. The stream ends OK only after the client's half-close; else with an error that clients retry or report.

import FirestoreEngine
import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore

final class ListenCall: StreamCall, Sendable {
  private enum Phase {
    case awaitingFirst
    case opening(DatabaseName, waiting: [Sized])
    case open(DatabaseName, WatchStream)
    case ended
  }

  /// A request and the bytes it came in.
  private struct Sized {
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

  func receive(_ message: ByteBuffer) { take(message) }

  func receive(_ message: UnreadableMessage) {
    guard let rest = message.rest else { return responder.finish(GRPCStatus(message.error)) }
    take(rest, refusing: message.error)
  }

  func receive(refusal: GRPCStatus) { responder.finish(refusal) }

  /// - Parameter error: what is wrong with the target that the request adds, if that is known already.
  private func take(_ message: ByteBuffer, refusing error: FirestoreError? = nil) {
    do throws(FirestoreError) {
      var request = try ListenStreamRequest(request: message, limit: service.requestBytes)
      if let error, case .add(var target)? = request.change {
        target.selection = .failure(error)
        request.change = .add(target)
      }
      let bytes = message.readableBytes
      switch phase.withLockedValue({ $0 }) {
      case .awaitingFirst: try open(Sized(request: request, bytes: bytes))
      case .opening(let database, var waiting):
        try Self.check(request, belongsTo: database)
        waiting.append(Sized(request: request, bytes: bytes))
        phase.withLockedValue { $0 = .opening(database, waiting: waiting) }
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
      case .opening(_, let waiting): waiting.reduce(0) { $0 + $1.bytes }
      case .open(_, let stream): stream.heldBytes
      }
    }
  }

  private func open(_ first: Sized) throws(FirestoreError) {
    let database = try DatabaseName(parsing: first.request.database)
    let caller = try service.caller(head)
    phase.withLockedValue { $0 = .opening(database, waiting: [first]) }
    responder.setReading(false)
    responder.start { [self] in
      do throws(FirestoreError) {
        opened(
          try await service.engine.watch(database, as: caller, output: ListenOutput(responder: responder)))
      } catch {
        responder.finish(GRPCStatus(error))
      }
    }
  }

  private func opened(_ stream: WatchStream) {
    let waiting: [Sized]? = phase.withLockedValue { phase in
      guard case .opening(let database, let waiting) = phase else { return nil }
      phase = .open(database, stream)
      return waiting
    }
    guard let waiting else { return stream.close() }
    do {
      for sized in waiting { try Self.apply(sized.request, sized.bytes, to: stream) }
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

/// Where the engine sends what a stream's targets see.
private struct ListenOutput: WatchOutput {
  let responder: any CallResponder

  func send(_ responses: [WatchResponse]) async throws {
    try await responder.send(try WatchEncoding.encode(responses))
  }

  func fail(_ error: FirestoreError) async {
    responder.finish(GRPCStatus(error))
  }
}
