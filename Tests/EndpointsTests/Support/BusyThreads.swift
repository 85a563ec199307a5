// Threads that are kept busy, to look at what waits for them.

import Dispatch
import NIOConcurrencyHelpers
import NIOPosix

@testable import Endpoints

final class BusyThreads: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let count: Int
  private let isFreed = NIOLockedValueBox(false)

  /// Has every thread wait, once what was there before is done.
  init(_ threads: NIOThreadPool, count: Int) {
    self.count = count
    for _ in 0..<count { threads.submit { [gate] _ in gate.wait() } }
  }

  /// Lets them go on.
  func free() {
    let isFirst = isFreed.withLockedValue { isFreed in
      defer { isFreed = true }
      return !isFreed
    }
    if isFirst { for _ in 0..<count { gate.signal() } }
  }

  /// Keeps those busy that unpack for all connections, until the body frees them or is done.
  static func whileUnpacking(_ body: (BusyThreads) async throws -> Void) async throws {
    let busy = BusyThreads(DecompressionQueue.threads, count: DecompressionQueue.threadCount)
    defer { busy.free() }
    try await body(busy)
  }
}
