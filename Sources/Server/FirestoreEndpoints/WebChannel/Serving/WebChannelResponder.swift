// The responder of a WebChannel session: sends the responses of its Listen or Write stream. Usable from any thread.
//
// The registry of sessions also uses it as the handle of the session.

import FirestoreEngine
import GRPCFraming
import NIOCore
import Ports

/// The thread-safe handle of one session.
final class WebChannelResponder: CallResponder {
  let eventLoop: any EventLoop
  private let handler: NIOLoopBound<WebChannelSessionHandler>
  private let encode: @Sendable (ByteBuffer) throws -> [ByteBuffer]
  private let tasks: LoopTasks
  let memory: any ResultMemory

  /// - Parameter encode: converts length-prefixed protobuf messages to JSON payloads.
  init(
    _ handler: WebChannelSessionHandler, on eventLoop: any EventLoop,
    encode: @escaping @Sendable (ByteBuffer) throws -> [ByteBuffer]
  ) {
    self.eventLoop = eventLoop
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
    // The session holds results as JSON, which takes up to twice the bytes of their protobuf encoding.
    memory = CallMemory(pages: handler.pages, factor: 2)
    self.encode = encode
    tasks = LoopTasks(eventLoop)
  }

  func send(_ framed: ByteBuffer, onWait: @escaping @Sendable () -> Void) async throws {
    let payloads = try encode(framed)
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      onLoop { handler in
        do {
          if try handler.send(payloads) {
            continuation.resume()
          } else {
            onWait()
            handler.suspendSender(continuation)
          }
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }

  func finish(_ status: GRPCStatus) { onLoop { $0.finish(status) } }

  /// Closes the session later on its event loop, since the caller may hold locks.
  func close() { eventLoop.execute { [handler] in handler.value.close() } }

  func setReading(_ enabled: Bool) { onLoop { $0.setReading(enabled) } }

  func updateHeldBytes() { onLoop { $0.update() } }

  func start(_ operation: @escaping @Sendable () async -> Void) { _ = tasks.start(operation) }

  /// Runs `body` with the session on its event loop: immediately if the caller is already on it.
  func onLoop(_ body: @escaping @Sendable (WebChannelSessionHandler) -> Void) {
    if eventLoop.inEventLoop {
      body(handler.value)
    } else {
      eventLoop.execute { [handler] in body(handler.value) }
    }
  }
}
