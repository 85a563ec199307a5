// An encoded push: the bytes of one push in one protocol, encoded once for all connections that send it.
//
// A push is the engine's notification that the data of a listen has changed.
//
// Invariant: the memory budget (the limit of all bytes that the server has not yet written to its clients) counts the
// shared bytes once. The first connection that writes them counts them.

import NIOConcurrencyHelpers
import NIOCore
import Ports

/// The encoded form of a push.
final class EncodedPush: Sendable {
  /// The encoded bytes; nil if the push is too large for every client of the protocol.
  let bytes: ByteBuffer?
  private let hasBeenCounted = NIOLockedValueBox(false)

  /// The minimum size of output that counts in the memory budget, in bytes. Smaller output is not counted.
  static let minimumCountedBytes = 16 << 10

  init(_ bytes: ByteBuffer?) { self.bytes = bytes }

  /// Returns whether the caller must count the bytes in the memory budget. Returns true only to the first
  /// caller, and only for large output.
  func countOnce() -> Bool {
    guard let bytes, bytes.readableBytes >= Self.minimumCountedBytes else { return false }
    return hasBeenCounted.withLockedValue { hasBeenCounted in
      defer { hasBeenCounted = true }
      return !hasBeenCounted
    }
  }
}

extension MemoryReservation {
  /// Reserves memory for output until it is written.
  ///
  /// - Returns: the promise to pass to the channel's write, which releases the memory; nil if the budget is
  ///   exhausted.
  func reserve(_ bytes: Int, on eventLoop: any EventLoop) -> EventLoopPromise<Void>? {
    guard reserve(bytes) else { return nil }
    let written = eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in self.release(bytes) }
    return written
  }
}
