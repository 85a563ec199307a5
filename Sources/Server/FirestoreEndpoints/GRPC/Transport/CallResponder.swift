// Sends the responses of one call, independent of its transport: gRPC, REST or WebChannel.
//
// Invariant: a sender waits while the client does not read, so that the bytes that a call queues for its client are bounded.

package import FirestoreEngine
package import GRPCFraming
package import NIOCore
import Ports

/// Sends the responses of one call. Usable from any task or thread.
package protocol CallResponder: Sendable {
  /// Sends framed messages. Returns when the client can accept more.
  /// - Parameter onWait: called before the call waits for the client to read.
  /// - Throws: `CancellationError` after the client has disconnected.
  func send(_ framed: ByteBuffer, onWait: @escaping @Sendable () -> Void) async throws

  /// Ends the call with a status. Later calls have no effect.
  func finish(_ status: GRPCStatus)

  /// Pauses or resumes the delivery of request messages, so that a client cannot queue unlimited work.
  func setReading(_ enabled: Bool)

  /// Updates the counted request bytes to those that the call holds now. A call invokes this after it has released bytes.
  func updateHeldBytes()

  /// The account from which the call reserves memory for its results.
  var memory: any ResultMemory { get }

  /// The event loop of the call's connection.
  var eventLoop: any EventLoop { get }

  /// Runs a task of the call. The end of the call does not cancel the task: the task ends when sending throws.
  func start(_ operation: @escaping @Sendable () async -> Void)
}

extension CallResponder {
  /// Sends framed messages. Returns when the client can accept more.
  /// - Throws: `CancellationError` after the client has disconnected.
  package func send(_ framed: ByteBuffer) async throws { try await send(framed) {} }

  /// Ends the call with a status. Returns when the call's event loop has ended the call, but does not wait for its tasks.
  ///
  /// If many calls end in sequence, each end thus waits for the previous one, and the event loop's queue stays short.
  func finishAndWait(_ status: GRPCStatus) async {
    finish(status)
    await withCheckedContinuation { continuation in
      eventLoop.execute { continuation.resume() }
    }
  }
}

/// The account from which a call reserves memory for its results. The memory counts as memory of the call's connection.
struct CallMemory: ResultMemory {
  let pages: PageMemory
  /// Bytes that the transport holds for each byte of a result.
  var factor = 1

  func reserve(_ bytes: Int) async throws {
    do {
      try await pages.reserve(factor * bytes)
    } catch let refusal as MemoryRefusal {
      throw ResultMemoryExhausted(refusal.text)
    }
  }

  func reserveNow(_ bytes: Int) -> Bool { pages.reserveNow(factor * bytes) }

  func resize(from old: Int, to new: Int) { pages.resize(from: factor * old, to: factor * new) }
}
