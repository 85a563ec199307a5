// A duration of the rules language, and its arithmetic with times.

import FirestoreModel

/// A span of time of at most 10,000 years, with a resolution of one nanosecond.
package struct RuleDuration: Hashable, Comparable, Sendable {
  /// Seconds, truncated toward zero.
  package let seconds: Int64
  /// The remaining nanoseconds, with the sign of the span.
  package let nanoseconds: Int32

  /// The maximum number of seconds, positive or negative.
  static let maximumSeconds: Int64 = 315_576_000_000

  /// A duration; nil beyond the limit.
  ///
  /// - Parameters:
  ///   - seconds: Seconds of any sign.
  ///   - nanoseconds: Nanoseconds of any sign and size, which are added.
  package init?(seconds: Int64, nanoseconds: Int64 = 0) {
    let (sum, overflow) = seconds.addingReportingOverflow(nanoseconds / 1_000_000_000)
    guard !overflow else { return nil }
    var total = sum
    var rest = nanoseconds % 1_000_000_000
    if total > 0, rest < 0 {
      total -= 1
      rest += 1_000_000_000
    } else if total < 0, rest > 0 {
      total += 1
      rest -= 1_000_000_000
    }
    // Compares magnitudes, because the least integer has no absolute value.
    let maximum = UInt64(Self.maximumSeconds)
    guard total.magnitude < maximum || (total.magnitude == maximum && rest == 0) else { return nil }
    self.seconds = total
    self.nanoseconds = Int32(rest)
  }

  /// The sum, or nil beyond the limit.
  func adding(_ other: RuleDuration) -> RuleDuration? {
    RuleDuration(seconds: seconds + other.seconds, nanoseconds: Int64(nanoseconds) + Int64(other.nanoseconds))
  }

  /// The span with the opposite sign.
  var negated: RuleDuration { RuleDuration(seconds: -seconds, nanoseconds: -Int64(nanoseconds)) ?? self }

  /// Orders by signed length.
  package static func < (left: RuleDuration, right: RuleDuration) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

extension Timestamp {
  /// The time after a span, or nil outside the years 1 to 9999.
  func adding(_ duration: RuleDuration) -> Timestamp? {
    var seconds = self.seconds + duration.seconds
    var nanoseconds = Int64(self.nanoseconds) + Int64(duration.nanoseconds)
    if nanoseconds < 0 {
      seconds -= 1
      nanoseconds += 1_000_000_000
    } else if nanoseconds >= 1_000_000_000 {
      seconds += 1
      nanoseconds -= 1_000_000_000
    }
    let result = Timestamp(seconds: seconds, nanoseconds: Int32(nanoseconds))
    return result.isInRange ? result : nil
  }

  /// The duration from another time to this one; nil beyond the limit of durations.
  func since(_ other: Timestamp) -> RuleDuration? {
    RuleDuration(
      seconds: seconds - other.seconds, nanoseconds: Int64(nanoseconds) - Int64(other.nanoseconds))
  }
}
