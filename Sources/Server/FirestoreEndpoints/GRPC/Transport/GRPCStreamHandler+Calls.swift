// Starts a call when its request is complete and its connection has capacity, and runs each kind of method.

import FirestoreEngine
import FirestoreModel
import GRPCFraming
import Logging
import NIOCore
import Ports

extension GRPCStreamHandler {
  /// Runs a method when the connection has capacity for its response, now or later.
  func start(_ method: GRPCMethods.Method, _ head: GRPCRequestHead, _ message: ByteBuffer) {
    let bytes: Int
    switch method {
    case .reading(let page, _): bytes = connection.limits.expectedResponseBytes + page
    case .updating:
      bytes = connection.limits.expectedResponseBytes
      // An update cannot be undone if the server then has no memory for its response, so the memory is reserved first.
      guard connection.memory.reserve(bytes) else { return finish(connection.outOfMemory) }
      reservedBytes += bytes
    case .unary, .unaryCallback: bytes = 0
    case .serverStreaming, .duplex: return run(method, head, message)
    }
    if connection.responses.reserve(bytes) {
      expectedBytes = bytes
      run(method, head, message)
    } else {
      phase = .waiting(method, head, message)
      requestDeadline?.cancel()
      connection.responses.enqueue(self, expecting: bytes)
    }
  }

  /// Runs the method of a call that was queued. The queue has reserved `bytes` for its response.
  func startQueued(expecting bytes: Int) {
    expectedBytes = bytes
    guard case .waiting(let method, let head, let message) = phase else {
      preconditionFailure("invariant: a call leaves the queue when it ends")
    }
    run(method, head, message)
  }

  private func run(_ method: GRPCMethods.Method, _ head: GRPCRequestHead, _ message: ByteBuffer) {
    guard let context else { return }
    switch phase {
    case .collecting, .waiting: phase = .running
    default: preconditionFailure("invariant: a method runs once, before its call ends")
    }
    requestDeadline?.cancel()
    let responder = GRPCResponder(self, on: context.eventLoop, tasks: connection.tasks)
    let log = connection.log
    switch method {
    case .reading(_, let body):
      task = serve(
        { head, message in
          // The server does no work for a client that cancels its calls as fast as it starts them.
          try Task.checkCancellation()
          return try await body(head, message)
        }, head, message, responder, isRead: true)
    case .unary(let body), .updating(let body):
      task = serve(body, head, message, responder, isRead: false)
    case .unaryCallback(let start):
      let call = start(head, message) { outcome in
        switch outcome {
        case .success(let response): responder.complete(response, isRead: false)
        case .failure(let error): responder.finish(GRPCStatus(of: error, log, head.path))
        }
      }
      // The callback may have ended the call already.
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
    _ head: GRPCRequestHead, _ message: ByteBuffer, _ responder: GRPCResponder, isRead: Bool
  ) -> Task<Void, Never> {
    let log = connection.log
    return connection.tasks.start {
      do {
        responder.complete(try await body(head, message), isRead: isRead)
      } catch {
        responder.finish(GRPCStatus(of: error, log, head.path))
      }
    }
  }
}

extension GRPCStatus {
  /// Returns the status of an error that a method threw. An unexpected error is logged, and the client receives
  /// INTERNAL.
  init(of error: any Error, _ log: Logger, _ path: String?) {
    if let status = error as? GRPCStatus {
      self = status
    } else if let error = error as? FirestoreError {
      self.init(error)
    } else if let exhausted = error as? ResultMemoryExhausted {
      self.init(exhausted.error)
    } else if error is CancellationError {
      self = GRPCStatus(.cancelled, "The call was cancelled.")
    } else {
      log.error("call failed", metadata: ["path": "\(path ?? "")", "error": "\(error)"])
      self = GRPCStatus(.internal, "The server failed to serve this call; its log says why.")
    }
  }
}
