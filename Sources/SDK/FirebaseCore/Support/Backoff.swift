// Exponential backoff: the delay before the next attempt.
//
// Invariant: the first attempt after a reset has no delay. Later delays grow by `factor` from `initial` up to
// `maximum`. Each is multiplied by a random number from `jitter`, so that clients do not reconnect at the
// same time.

/// Exponential backoff with jitter. Delays have the unit of ``initial``.
package struct Backoff: Sendable {
  private let initial: Double
  private let maximum: Double
  private let factor: Double
  private let jitter: ClosedRange<Double>

  /// The next delay before jitter.
  private var base = 0.0
  private var random: SplitMix

  /// Makes a backoff whose first delay is zero.
  ///
  /// - Parameters:
  ///   - initial: the second delay, before jitter.
  ///   - maximum: the maximum delay, before jitter.
  ///   - factor: the ratio of a delay to the previous delay.
  ///   - jitter: the range of the random factors.
  ///   - seed: the seed of the random factors.
  package init(
    initial: Double, maximum: Double, factor: Double, jitter: ClosedRange<Double>, seed: UInt64
  ) {
    self.initial = initial
    self.maximum = maximum
    self.factor = factor
    self.jitter = jitter
    random = SplitMix(seed: seed)
  }

  /// Sets the next delay to zero.
  package mutating func reset() { base = 0 }

  /// Sets the next delay to the maximum.
  package mutating func useMaximum() { base = maximum }

  /// Returns the delay before the next attempt.
  package mutating func next() -> Double {
    let delay = base * Double.random(in: jitter, using: &random)
    base = min(max(base * factor, initial), maximum)
    return delay
  }
}
