// What a peer may send that asks for nothing, or takes back what it asked for. Such a frame costs credit, about as much
// as the work it makes. Credit comes with time, and with what is asked and answered: a peer that uses what it asks for
// may ping, reset and open windows as often as it likes, one that does not is known after a burst.

import NIOCore

/// How much credit a peer has.
public struct PeerCreditLimits: Sendable {
  /// What a new connection has.
  public var initial: Int
  /// What is added each second, up to as much as a new connection has.
  public var perSecond: Int
  /// What earning may add to that.
  public var maximum: Int

  /// Limits of a connection's credit.
  public init(initial: Int, perSecond: Int, maximum: Int) {
    self.initial = initial
    self.perSecond = perSecond
    self.maximum = maximum
  }
}

/// The credit of one connection.
struct PeerCredit {
  private let limits: PeerCreditLimits
  private var left: Int
  private var filled: NIODeadline

  init(_ limits: PeerCreditLimits, at now: NIODeadline) {
    self.limits = limits
    left = limits.initial
    filled = now
  }

  /// Whether the peer has sent more than it may.
  var isSpent: Bool { left < 0 }

  /// Whether more than a quarter of what a new connection has is used up.
  var isLow: Bool { left < limits.initial / 4 * 3 }

  mutating func charge(_ cost: Int) { left -= cost }

  mutating func earn(_ gain: Int) { add(gain, upTo: limits.maximum) }

  /// Adds what the time since the last call has brought.
  mutating func fill(at now: NIODeadline) {
    // No more than an hour: beyond it the product could overflow, and what it brings is full anyway.
    let passed = min((now - filled).nanoseconds, TimeAmount.hours(1).nanoseconds) / 1_000
    let gain = Int(passed) * limits.perSecond / 1_000_000
    guard gain > 0 else { return }
    filled = now
    add(gain, upTo: limits.initial)
  }

  /// Lets the time since the last call bring nothing.
  mutating func pass(to now: NIODeadline) { filled = now }

  private mutating func add(_ gain: Int, upTo most: Int) {
    left = max(left, min(left + gain, most))
  }
}
