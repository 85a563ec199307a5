// A point in time, with nanoseconds as on the wire. Stored timestamps have microseconds.

/// A point in time: whole seconds since 1970-01-01T00:00:00Z and the nanoseconds after them.
///
/// `nanoseconds` counts forward and lies in 0 ..< 1,000,000,000, also before 1970. Valid values reach from
/// 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z (`isInRange`). Storage keeps microseconds.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Seconds since the Unix epoch, rounded down.
  public var seconds: Int64
  /// Nanoseconds after `seconds`, 0 ..< 1,000,000,000.
  public var nanoseconds: Int32

  /// Makes a timestamp from its parts; see `isInRange`.
  public init(seconds: Int64, nanoseconds: Int32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// Makes a timestamp from microseconds since the Unix epoch.
  public init(microseconds: Int64) {
    var seconds = microseconds / 1_000_000
    var rest = microseconds % 1_000_000
    if rest < 0 {
      seconds -= 1
      rest += 1_000_000
    }
    self.seconds = seconds
    self.nanoseconds = Int32(truncatingIfNeeded: rest * 1000)
  }

  /// Microseconds since the Unix epoch, rounded down; saturates outside the valid range.
  public var microseconds: Int64 {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, overflowed) = product.addingReportingOverflow(Int64(nanoseconds) / 1000)
    return overflowed ? .max : sum
  }

  /// The same time truncated to microseconds, the precision that the database stores.
  public var truncatedToMicroseconds: Timestamp {
    Timestamp(seconds: seconds, nanoseconds: nanoseconds - nanoseconds % 1000)
  }

  /// The same time truncated to milliseconds, the precision of server timestamps.
  public var truncatedToMilliseconds: Timestamp {
    Timestamp(seconds: seconds, nanoseconds: nanoseconds - nanoseconds % 1_000_000)
  }

  /// Whether the time lies in years 1 to 9999 and the nanoseconds in their range.
  public var isInRange: Bool {
    seconds >= Timestamp.minimum.seconds && seconds <= Timestamp.maximum.seconds
      && nanoseconds >= 0 && nanoseconds < 1_000_000_000
  }

  /// 1970-01-01T00:00:00Z.
  public static let epoch = Timestamp(seconds: 0)
  /// 0001-01-01T00:00:00Z.
  public static let minimum = Timestamp(seconds: -62_135_596_800)
  /// 9999-12-31T23:59:59.999999999Z.
  public static let maximum = Timestamp(seconds: 253_402_300_799, nanoseconds: 999_999_999)

  /// Orders by time.
  public static func < (a: Timestamp, b: Timestamp) -> Bool {
    a.seconds != b.seconds ? a.seconds < b.seconds : a.nanoseconds < b.nanoseconds
  }
}
