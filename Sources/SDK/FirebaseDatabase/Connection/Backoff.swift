// How long to wait before the next attempt to connect. Invariant: the first attempt after a healthy
// connection is immediate; then waits grow from one second by 1.3 up to thirty, 30 % of each fixed and
// the rest random, so that many clients do not come back at the same moment.

/// The waits between attempts to connect.
struct Backoff {
  private var current = 0.0
  private var isFirst = true

  static let shortest = 1_000.0
  static let longest = 30_000.0
  static let growth = 1.3
  /// A connection that lived this long was healthy.
  static let healthyAfter: Int64 = 30_000

  /// The next wait in milliseconds.
  ///
  /// - Parameter random: a number in 0 ..< 1.
  mutating func next(random: Double) -> Int64 {
    if isFirst {
      isFirst = false
      return 0
    }
    current = current == 0 ? Backoff.shortest : min(current * Backoff.growth, Backoff.longest)
    return Int64(0.3 * current + 0.7 * current * random)
  }

  /// The next attempt is immediate again.
  mutating func reset() {
    self = Backoff()
  }
}
