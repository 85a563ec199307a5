// Keeps all threads of a pool busy, so that tests can observe work that waits for a thread.

import Dispatch
import NIOConcurrencyHelpers
import NIOPosix
import Ports

final class BusyThreads: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let count: Int
  private let isFreed = NIOLockedValueBox(false)

  /// Blocks every thread. Tasks that were queued before still run.
  init(_ threads: NIOThreadPool, count: Int) {
    self.count = count
    for _ in 0..<count { threads.submit { [gate] _ in gate.wait() } }
  }

  /// Unblocks the threads.
  func free() {
    let isFirst = isFreed.withLockedValue { isFreed in
      defer { isFreed = true }
      return !isFreed
    }
    if isFirst { for _ in 0..<count { gate.signal() } }
  }

  /// Blocks all decompression threads until `body` calls ``free()`` or returns.
  static func withBusyDecompression(_ body: (BusyThreads) async throws -> Void) async throws {
    let busy = BusyThreads(DecompressionQueue.threads, count: DecompressionQueue.threadCount)
    defer { busy.free() }
    try await body(busy)
  }
}
