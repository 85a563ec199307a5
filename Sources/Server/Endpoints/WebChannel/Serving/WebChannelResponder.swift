// A session as the client's end of a Listen or Write stream, and as what requests find by its id; usable from any task
// or thread.

import GRPCFraming
import NIOCore

/// One session's handle.
final class WebChannelResponder: CallResponder {
  private let eventLoop: any EventLoop
  private let conversation: NIOLoopBound<WebChannelConversation>
  private let encode: @Sendable (ByteBuffer) throws -> [ByteBuffer]
  private let tasks: LoopTasks

  /// - Parameter encode: makes JSON of framed messages.
  init(
    _ conversation: WebChannelConversation, on eventLoop: any EventLoop,
    encode: @escaping @Sendable (ByteBuffer) throws -> [ByteBuffer]
  ) {
    self.eventLoop = eventLoop
    self.conversation = NIOLoopBound(conversation, eventLoop: eventLoop)
    self.encode = encode
    tasks = LoopTasks(eventLoop)
  }

  func send(_ framed: ByteBuffer) async throws {
    let payloads = try encode(framed)
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      onLoop { conversation in
        do {
          if try conversation.send(payloads) {
            continuation.resume()
          } else {
            conversation.waitForRoom(continuation)
          }
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }

  func finish(_ status: GRPCStatus) { onLoop { $0.finish(status) } }

  func setReading(_ enabled: Bool) { onLoop { $0.setReading(enabled) } }

  func updateHeldBytes() { onLoop { $0.update() } }

  func start(_ operation: @escaping @Sendable () async -> Void) { _ = tasks.start(operation) }

  /// Runs `body` with the session on its event loop: now if this is it.
  func onLoop(_ body: @escaping @Sendable (WebChannelConversation) -> Void) {
    if eventLoop.inEventLoop {
      body(conversation.value)
    } else {
      eventLoop.execute { [conversation] in body(conversation.value) }
    }
  }
}
