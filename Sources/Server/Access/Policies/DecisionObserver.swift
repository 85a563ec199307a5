// A decision observer receives the access policy's decisions about one database's operations, and shows them to operators:
// in the denial log, the coverage of rules and the emulator's request feed.
//
// Invariant: nothing that an observer records reaches a client. The caller's error does not depend on the observer.

/// Receives decisions about the operations of one database.
package protocol DecisionObserver<Product>: Sendable {
  /// The product about whose operations the observer receives decisions.
  associatedtype Product: AccessProduct

  /// Whether the observer also receives decisions that allow the operation. Only an emulator's observer does. Policies
  /// then count the coverage of their rules and record their evaluations.
  var observesAllowed: Bool { get }

  /// Receives a decision while its operation waits. It must be quick and must not block.
  /// - Parameters:
  ///   - principal: the caller as it acts in the database's project.
  ///   - policy: the policy in force.
  ///   - view: the state of the operation; nil if the decision depends on the caller only.
  func observe(
    _ decision: AccessDecision<Product>, about operation: Product.Operation, of principal: Principal,
    by policy: any AccessPolicy<Product>, view: Product.View?)
}
