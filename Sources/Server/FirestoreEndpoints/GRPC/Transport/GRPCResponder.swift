// Sends the responses of a gRPC call from any task or thread. The stream's event loop does the work.

package import FirestoreEngine
package import GRPCFraming
package import NIOCore
import Ports

/// Sends the responses of one call to its stream.
package final class GRPCResponder: CallResponder {
  /// The stream's event loop.
  package let eventLoop: any EventLoop
  private let handler: NIOLoopBound<GRPCStreamHandler>
  private let tasks: LoopTasks
  package let memory: any ResultMemory

  init(_ handler: GRPCStreamHandler, on eventLoop: any EventLoop, tasks: LoopTasks) {
    self.eventLoop = eventLoop
    self.tasks = tasks
    memory = CallMemory(pages: handler.connection.pages)
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  /// Sends framed messages. Returns when the client can accept more.
  package func send(_ framed: ByteBuffer, onWait: @escaping @Sendable () -> Void) async throws {
    if eventLoop.inEventLoop {
      // The common case: the message is written, and the client can accept more.
      if try handler.value.send(framed) { return }
      onWait()
      try await withCheckedThrowingContinuation { handler.value.waitUntilWritable($0) }
    } else {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        eventLoop.execute { [handler] in
          do {
            if try handler.value.send(framed) {
              continuation.resume()
            } else {
              onWait()
              handler.value.waitUntilWritable(continuation)
            }
          } catch {
            continuation.resume(throwing: error)
          }
        }
      }
    }
  }

  /// Ends the call with a status. Later calls have no effect.
  package func finish(_ status: GRPCStatus) {
    onLoop { $0.finish(status) }
  }

  /// Sends the framed response of a unary call and ends the call with OK. See
  /// ``GRPCStreamHandler/complete(_:isRead:)``.
  func complete(_ framed: ByteBuffer, isRead: Bool) {
    onLoop { $0.complete(framed, isRead: isRead) }
  }

  /// Pauses or resumes the delivery of request messages.
  package func setReading(_ enabled: Bool) {
    onLoop { $0.setReading(enabled) }
  }

  /// Updates the counted request bytes of the call.
  package func updateHeldBytes() {
    onLoop { $0.updateHeldBytes() }
  }

  /// Runs a task on the stream's event loop, if the platform supports it.
  package func start(_ operation: @escaping @Sendable () async -> Void) {
    _ = tasks.start(operation)
  }

  /// Runs `body` with the stream's handler on its event loop: immediately if the caller is already on it.
  func onLoop(_ body: @escaping @Sendable (GRPCStreamHandler) -> Void) {
    if eventLoop.inEventLoop {
      body(handler.value)
    } else {
      eventLoop.execute { [handler] in body(handler.value) }
    }
  }
}
