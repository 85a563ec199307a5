// Bounds the work of an access policy's decisions that run while other operations wait. A decision that exceeds the bound
// is interrupted, not denied: the engine makes it again in the background, where no operation waits for it.

/// The work that some decisions may spend together, in steps. A step takes about as long as the evaluation of
/// one operator of a rule.
package final class DecisionWork {
  /// The steps that remain. Not negative.
  package private(set) var steps: Int

  /// - Parameter steps: the steps that the decisions may spend.
  package init(steps: Int) { self.steps = steps }

  /// Subtracts steps, down to zero.
  package func spend(_ count: Int) { steps = max(0, steps - count) }

  /// Adds steps until at least `count` remain.
  package func refill(to count: Int) { steps = max(steps, count) }
}

/// The error of a decision that exceeds its ``DecisionWork``. The operation is neither allowed nor denied.
package struct DecisionInterrupted: Error {
  package init() {}
}
