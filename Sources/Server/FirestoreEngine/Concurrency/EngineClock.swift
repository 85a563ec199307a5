// Time for leases, lock waits and heartbeats. Injected, so that a test moves it by hand.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A monotonic clock in microseconds. It orders nothing in the database: versions come from the store.
public protocol EngineClock: Sendable {
  /// Microseconds since some fixed moment; never goes back.
  func now() -> UInt64

  /// Returns when `now()` has reached `deadline`, at once if it already has.
  /// - Throws: `CancellationError` when the task is cancelled first.
  func sleep(until deadline: UInt64) async throws
}

/// The machine's monotonic clock.
public struct SystemClock: EngineClock {
  /// Makes the clock.
  public init() {}

  /// Microseconds since the machine started.
  public func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000 &+ UInt64(time.tv_nsec) / 1000
  }

  /// Sleeps until the deadline.
  public func sleep(until deadline: UInt64) async throws {
    let current = now()
    guard deadline > current else { return }
    try await Task.sleep(nanoseconds: min(deadline - current, 1 << 50) * 1000)
  }
}
