// The options of every store, and the clock that tests replace.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// The clock of a store. Tests and simulators inject their own.
public struct StoreClock: Sendable {
  /// Microseconds since 1970-01-01T00:00:00Z.
  public var now: @Sendable () -> UInt64

  /// Makes a clock from a function that returns microseconds since the Unix epoch.
  public init(now: @escaping @Sendable () -> UInt64) { self.now = now }

  /// The system's clock.
  public static let system = StoreClock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(time.tv_sec, 0)) * 1_000_000 + UInt64(time.tv_nsec) / 1000
  }
}

/// The options of every store, independent of its engine.
public struct StoreOptions: Sendable {
  /// The clock from which versions are derived.
  public var clock: StoreClock
  /// The maximum time by which the clock may be ahead of the newest stored version when a store opens, in microseconds; nil
  /// for any. Versions never decrease, so a single start with a clock in the far future would determine the versions and
  /// server timestamps of a database for good.
  public var maximumClockLead: UInt64?
  /// Milliseconds between two passes of the trimmer, which deletes rows below the history window; 0 for no passes.
  public var trimmingIntervalMilliseconds: Int
  /// Reports events for the operator, such as a clock set back or a failed write. Called from any thread; must be quick.
  public var report: @Sendable (String) -> Void

  /// Makes options.
  public init(
    clock: StoreClock = .system, trimmingIntervalMilliseconds: Int = 1000,
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.clock = clock
    self.trimmingIntervalMilliseconds = trimmingIntervalMilliseconds
    self.report = report
  }
}

/// The limits of the contract.
public enum StoreLimits {
  /// The maximum size of a key, in bytes.
  public static let maximumKeyBytes = 32 << 10
  /// The maximum size of a value, in bytes.
  public static let maximumValueBytes = 16 << 20
  /// The maximum total size of one commit's keys, values and log record, in bytes.
  public static let maximumCommitBytes = 64 << 20
  /// The maximum total size of the rows that one commit overwrites or clears in a database with history, in bytes.
  public static let maximumReplacedBytes = 256 << 20
  /// The maximum size of a database name, in bytes of UTF-8.
  public static let maximumNameBytes = 1024
  /// The maximum number of calls queued for one database's sequencer; further calls are rejected.
  public static let maximumQueuedCalls = 65_536
}
