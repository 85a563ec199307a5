// The clock for the timeouts of transactions and locks, and for the heartbeats of Listen streams. Tests inject a manual
// clock.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A clock in microseconds. It does not order commits: versions come from the store.
public protocol EngineClock: Sendable {
  /// Microseconds since a fixed point; never decreases.
  func now() -> UInt64

  /// The wall clock's time, in microseconds since 1970: `request.time` of reads, and the time at which credentials
  /// expire. It may jump.
  func wallTime() -> Int64

  /// Returns when `now()` reaches `deadline`; immediately if the deadline has passed.
  /// - Throws: `CancellationError` if the task is cancelled first.
  func sleep(until deadline: UInt64) async throws
}

/// The machine's clock.
public struct SystemClock: EngineClock {
  /// Makes the clock.
  public init() {}

  /// Microseconds since boot.
  public func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000 &+ UInt64(time.tv_nsec) / 1000
  }

  /// The machine's time of day.
  public func wallTime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  /// Sleeps until the deadline.
  public func sleep(until deadline: UInt64) async throws {
    let current = now()
    guard deadline > current else { return }
    try await Task.sleep(nanoseconds: min(deadline - current, 1 << 50) * 1000)
  }
}
