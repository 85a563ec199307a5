// A timestamp: a point in time with nanosecond precision. All products use it.
//
// Invariant: `nanoseconds` is in 0 ..< 1,000,000,000, and the time is in the years 1 to 9999. Every timestamp
// has exactly one representation, and the server can store it.

public import Foundation

/// A point in time, independent of any time zone, with nanosecond precision.
///
/// Valid from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z. Making a timestamp outside this range
/// stops the program.
public final class Timestamp: NSObject, NSCopying, Sendable {
  private static let earliest: Int64 = -62_135_596_800
  private static let latest: Int64 = 253_402_300_799

  /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
  public let seconds: Int64

  /// The nanoseconds after `seconds`, 0 ..< 1,000,000,000.
  public let nanoseconds: Int32

  /// Makes a timestamp from seconds since the epoch and the nanoseconds after that second.
  public init(seconds: Int64, nanoseconds: Int32) {
    guard (0..<1_000_000_000).contains(nanoseconds) else {
      usageException("FIRInvalidArgumentException", "Timestamp nanoseconds out of range: \(nanoseconds)")
    }
    guard (Timestamp.earliest...Timestamp.latest).contains(seconds) else {
      usageException("FIRInvalidArgumentException", "Timestamp seconds out of range: \(seconds)")
    }
    self.seconds = seconds
    self.nanoseconds = nanoseconds
    super.init()
  }

  /// Makes a timestamp from a date, as precisely as the date's floating-point seconds allow.
  public convenience init(date: Date) {
    let interval = date.timeIntervalSince1970
    let whole = interval.rounded(.down)
    guard whole >= Double(Timestamp.earliest), whole <= Double(Timestamp.latest) else {
      usageException("FIRInvalidArgumentException", "Timestamp out of range: \(interval) s")
    }
    let fraction = ((interval - whole) * 1_000_000_000).rounded(.down)
    self.init(seconds: Int64(whole), nanoseconds: Int32(min(max(fraction, 0), 999_999_999)))
  }

  /// Makes a timestamp of the current time.
  public override convenience init() {
    self.init(date: Date())
  }

  /// The same time as a `Date`. Nanoseconds beyond a date's precision are lost.
  public func dateValue() -> Date {
    Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1_000_000_000)
  }

  /// Compares two timestamps by time.
  public func compare(_ other: Timestamp) -> ComparisonResult {
    let mine = (seconds, nanoseconds)
    let theirs = (other.seconds, other.nanoseconds)
    return mine == theirs ? .orderedSame : mine < theirs ? .orderedAscending : .orderedDescending
  }

  /// Returns the timestamp itself, because it is immutable.
  public func copy(with zone: NSZone? = nil) -> Any {
    self
  }

  /// Whether seconds and nanoseconds are equal.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? Timestamp else { return false }
    return seconds == other.seconds && nanoseconds == other.nanoseconds
  }

  /// Hashes seconds and nanoseconds.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(seconds)
    hasher.combine(nanoseconds)
    return hasher.finalize()
  }

  /// The description in the format of Google's SDK.
  public override var description: String {
    "<FIRTimestamp: seconds=\(seconds) nanoseconds=\(nanoseconds)>"
  }
}
