// Bounds the work of decisions that run while other operations wait. A decision that exceeds it is not denied: the engine
// makes it again where no operation waits for it.

/// The work that some decisions may spend together, in steps. A step takes about as long as one operator.
package final class DecisionWork {
  /// The steps that remain. Not negative.
  package private(set) var steps: Int

  /// - Parameter steps: the steps that the decisions may spend.
  package init(steps: Int) { self.steps = steps }

  /// Takes steps, at most those that remain.
  package func spend(_ count: Int) { steps = max(0, steps - count) }

  /// Adds steps until at least `count` remain.
  package func refill(to count: Int) { steps = max(steps, count) }
}

/// The error of a decision that exceeds its ``DecisionWork``. It is neither allowed nor denied.
package struct DecisionInterrupted: Error {
  package init() {}
}
