// Holds a push as one protocol encodes it, shared by all connections that send it.
//
// Invariant: however many connections queue it, its bytes count once in the memory budget, for the first
// writer.

import NIOConcurrencyHelpers
import NIOCore
import Ports

/// The encoded form of a push.
final class EncodedPush: Sendable {
  /// The bytes; nil if no client accepts that many.
  let bytes: ByteBuffer?
  private let hasBeenCounted = NIOLockedValueBox(false)

  /// The size in bytes from which on output counts in the memory budget.
  static let minimumCountedBytes = 16 << 10

  init(_ bytes: ByteBuffer?) { self.bytes = bytes }

  /// Returns whether the caller has to count the bytes: true for the first writer of large output.
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
  /// - Returns: the promise to write the output with; nil if the budget is exhausted.
  func reserve(_ bytes: Int, on eventLoop: any EventLoop) -> EventLoopPromise<Void>? {
    guard reserve(bytes) else { return nil }
    let written = eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in self.release(bytes) }
    return written
  }
}
