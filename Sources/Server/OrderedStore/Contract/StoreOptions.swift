#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Where a store takes the time from: injected, so that tests set it and a simulator replays it.
public struct StoreClock: Sendable {
  /// Microseconds since 1970-01-01T00:00:00Z.
  public var now: @Sendable () -> UInt64

  /// A clock from a function that gives microseconds since the Unix epoch.
  public init(now: @escaping @Sendable () -> UInt64) { self.now = now }

  /// The system's clock.
  public static let system = StoreClock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(time.tv_sec, 0)) * 1_000_000 + UInt64(time.tv_nsec) / 1000
  }
}

/// What every store takes, whatever its engine.
public struct StoreOptions: Sendable {
  /// Where versions come from.
  public var clock: StoreClock
  /// How often what lies below the history window is looked for, in milliseconds; 0 for never by itself.
  public var trimmingIntervalMilliseconds: Int
  /// Called with what an operator must know: a clock set back, a write that failed. From any thread; must be quick.
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

/// The limits of the contract, in bytes.
public enum StoreLimits {
  /// The longest key.
  public static let maximumKeyBytes = 32 << 10
  /// The longest value.
  public static let maximumValueBytes = 16 << 20
  /// The most that one commit's keys, values and log record add up to.
  public static let maximumCommitBytes = 64 << 20
  /// The most that the rows add up to which one commit overwrites or clears, where they are kept as history.
  public static let maximumReplacedBytes = 256 << 20
  /// The longest database name.
  public static let maximumNameBytes = 1024
  /// The most calls that wait for one database's sequencer; more are refused.
  public static let maximumQueuedCalls = 65_536
}
