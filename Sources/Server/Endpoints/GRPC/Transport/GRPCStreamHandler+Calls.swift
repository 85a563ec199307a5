// When a call begins once its request is there, and how each kind of method is run.

import FirestoreModel
import GRPCFraming
import Logging
import NIOCore

extension GRPCStreamHandler {
  /// Runs the method at once, or when the connection has room for its answer.
  func start(_ method: GRPCMethods.Method, _ head: GRPCRequestHead, _ message: ByteBuffer) {
    let bytes: Int
    switch method {
    case .reading(let page, _): bytes = connection.limits.expectedAnswerBytes + page
    case .updating:
      bytes = connection.limits.expectedAnswerBytes
      // What it does cannot be taken back when its answer finds no room.
      guard connection.memory.reserve(bytes) else { return finish(connection.noMemory) }
      takenBytes += bytes
    case .unary, .unaryCallback: bytes = 0
    case .serverStreaming, .duplex: return run(method, head, message)
    }
    if connection.answers.expect(bytes) {
      expectedBytes = bytes
      run(method, head, message)
    } else {
      phase = .waiting(method, head, message)
      requestDeadline?.cancel()
      connection.answers.wait(self, for: bytes)
    }
  }

  /// Runs the method that waited, now that its answer has been given room.
  func startWaiting(expecting bytes: Int) {
    expectedBytes = bytes
    if case .waiting(let method, let head, let message) = phase { run(method, head, message) }
  }

  private func run(_ method: GRPCMethods.Method, _ head: GRPCRequestHead, _ message: ByteBuffer) {
    guard let context else { return }
    phase = .running
    requestDeadline?.cancel()
    let responder = GRPCResponder(self, on: context.eventLoop, tasks: connection.tasks)
    let log = connection.log
    switch method {
    case .reading(_, let body):
      task = serve(
        { head, message in
          // A client that takes its calls back as fast as it makes them gets no work done for them.
          try Task.checkCancellation()
          return try await body(head, message)
        }, head, message, responder, mayGiveWay: true)
    case .unary(let body), .updating(let body):
      task = serve(body, head, message, responder, mayGiveWay: false)
    case .unaryCallback(let start):
      let call = start(head, message) { outcome in
        switch outcome {
        case .success(let answer): responder.complete(answer, mayGiveWay: false)
        case .failure(let error): responder.finish(GRPCStatus(of: error, log, head.path))
        }
      }
      // The outcome may have been reported already.
      if case .running = phase { task = call }
    case .serverStreaming(let body):
      task = connection.tasks.start {
        do {
          try Task.checkCancellation()
          try await body(head, message, responder)
          responder.finish(.ok)
        } catch {
          responder.finish(GRPCStatus(of: error, log, head.path))
        }
      }
    case .duplex: break
    }
  }

  private func serve(
    _ body: @escaping @Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer,
    _ head: GRPCRequestHead, _ message: ByteBuffer, _ responder: GRPCResponder, mayGiveWay: Bool
  ) -> Task<Void, Never> {
    let log = connection.log
    return connection.tasks.start {
      do {
        responder.complete(try await body(head, message), mayGiveWay: mayGiveWay)
      } catch {
        responder.finish(GRPCStatus(of: error, log, head.path))
      }
    }
  }
}

extension GRPCStatus {
  /// The status of what a method threw; what is no status is the server's own failure, and goes to its log.
  init(of error: any Error, _ log: Logger, _ path: String?) {
    if let status = error as? GRPCStatus {
      self = status
    } else if let error = error as? FirestoreError {
      self.init(error)
    } else if error is CancellationError {
      self = GRPCStatus(.cancelled, "The call was cancelled.")
    } else {
      log.error("call failed", metadata: ["path": "\(path ?? "")", "error": "\(error)"])
      self = GRPCStatus(.internal, "The server failed to serve this call; its log says why.")
    }
  }
}
