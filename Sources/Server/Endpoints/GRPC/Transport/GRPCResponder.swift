// The writing side of a call over gRPC. The work itself happens on the stream's event loop.

public import GRPCFraming
public import NIOCore

/// Writes one call's answers to its stream.
public final class GRPCResponder: CallResponder {
  /// The stream's event loop.
  public let eventLoop: any EventLoop
  private let handler: NIOLoopBound<GRPCStreamHandler>
  private let tasks: LoopTasks

  init(_ handler: GRPCStreamHandler, on eventLoop: any EventLoop, tasks: LoopTasks) {
    self.eventLoop = eventLoop
    self.tasks = tasks
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  /// Sends framed messages, and returns once the client can take more.
  public func send(_ framed: ByteBuffer) async throws {
    if eventLoop.inEventLoop {
      // The common case on the loop: written, and there is room for more.
      if try handler.value.send(framed) { return }
      try await withCheckedThrowingContinuation { handler.value.waitUntilWritable($0) }
    } else {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        eventLoop.execute { [handler] in
          do {
            if try handler.value.send(framed) {
              continuation.resume()
            } else {
              handler.value.waitUntilWritable(continuation)
            }
          } catch {
            continuation.resume(throwing: error)
          }
        }
      }
    }
  }

  /// Ends the call with a status; what comes later is ignored.
  public func finish(_ status: GRPCStatus) {
    onLoop { $0.finish(status) }
  }

  /// Sends a last framed message and ends the call with OK.
  func complete(_ framed: ByteBuffer, mayGiveWay: Bool) {
    onLoop { $0.complete(framed, mayGiveWay: mayGiveWay) }
  }

  /// Stops or resumes the delivery of request messages.
  public func setReading(_ enabled: Bool) {
    onLoop { $0.setReading(enabled) }
  }

  /// Accounts anew for the request bytes that the call keeps.
  public func updateHeldBytes() {
    onLoop { $0.account() }
  }

  /// Runs work on the stream's event loop, where the platform allows it.
  public func start(_ operation: @escaping @Sendable () async -> Void) {
    _ = tasks.start(operation)
  }

  /// Runs `body` with the stream's handler on its event loop: now if this is it.
  func onLoop(_ body: @escaping @Sendable (GRPCStreamHandler) -> Void) {
    if eventLoop.inEventLoop {
      body(handler.value)
    } else {
      eventLoop.execute { [handler] in body(handler.value) }
    }
  }
}
