// Counts the events of one connection in consecutive periods of time.

import NIOCore

/// A maximum number of events per period.
struct RateLimit {
  private let maximum: Int
  private let period: TimeAmount
  private var count = 0
  private var periodEnd = NIODeadline.uptimeNanoseconds(0)

  init(_ maximum: Int, per period: TimeAmount) {
    self.maximum = maximum
    self.period = period
  }

  /// Counts events. Returns false if they exceed the maximum of the current period.
  mutating func allows(_ events: Int = 1, at now: NIODeadline = .now()) -> Bool {
    if now >= periodEnd { (count, periodEnd) = (0, now + period) }
    count += events
    return count <= maximum
  }
}
