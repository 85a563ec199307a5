// A push as one protocol encodes it, shared by all connections that are told the same.
//
// Invariant: however many connections it waits on, its bytes count once in what the server holds, for the first that
// wrote it.

import NIOConcurrencyHelpers
import NIOCore

/// What a push keeps.
final class EncodedPush: Sendable {
  /// The bytes; nil if they are more than any client can take.
  let bytes: ByteBuffer?
  private let isCounted = NIOLockedValueBox(false)

  /// From so many bytes on, output is counted.
  static let countedBytes = 16 << 10

  init(_ bytes: ByteBuffer?) { self.bytes = bytes }

  /// Whether whoever writes the bytes now has to count them.
  func mustBeCounted() -> Bool {
    guard let bytes, bytes.readableBytes >= Self.countedBytes else { return false }
    return isCounted.withLockedValue { isCounted in
      defer { isCounted = true }
      return !isCounted
    }
  }
}

extension MemoryReservation {
  /// Takes room for output until it has gone out: the promise to write it with, or nil if there is no room.
  func take(_ bytes: Int, on eventLoop: any EventLoop) -> EventLoopPromise<Void>? {
    guard take(bytes) else { return nil }
    let written = eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in self.give(bytes) }
    return written
  }
}
