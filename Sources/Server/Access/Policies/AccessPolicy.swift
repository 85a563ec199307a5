// The access policy decides whether a user may perform an operation. The engine calls it with the state that
// the operation reads. The decision comes before locks, preconditions, cursors and all errors that depend on
// stored data.
//
// An engine must return or change data only after the policy in force has allowed exactly this operation. No single place
// can check this rule. The Firestore engine checks it for commits (`CommitPlan`), the Realtime engine for open listens
// (`OpenListens`), and `make access` compares all responses with data that a policy denies.

/// Decides about the operations of users and of callers without credentials. `PinnedPolicy` decides about service
/// accounts and administrative operations itself.
///
/// Called synchronously while other operations wait: it must be quick, must not block, and must be deterministic.
package protocol AccessPolicy<Product>: Sendable {
  /// The product whose operations the policy decides.
  associatedtype Product: AccessProduct

  /// Decides one operation.
  /// - Throws: the errors of `view`.
  func decide(
    _ principal: Principal, _ operation: Product.Operation, view: Product.View
  ) throws -> AccessDecision<Product>

  /// Decides one operation like ``decide(_:_:view:)``, counts the evaluation for the coverage of the rules, and adds
  /// the record of the evaluation to the decision. If an observer receives all decisions, the engine calls this method
  /// instead of `decide`, so that nothing is evaluated twice.
  /// - Throws: the errors of `view`.
  func decideRecorded(
    _ principal: Principal, _ operation: Product.Operation, view: Product.View
  ) throws -> AccessDecision<Product>

  /// Whether the policy allows a principal every operation that is not administrative. The engine then does not prepare
  /// the arguments of `decide`.
  func allowsEverything(_ principal: Principal) -> Bool

  /// Whether the policy is a placeholder for rules that are not configured yet. Writes that a user has
  /// registered for a later time then wait for the rules, without a decision.
  var awaitsRules: Bool { get }

  /// A rules file that describes the policy, for display.
  var rules: String { get }
}

extension AccessPolicy {
  /// By default a policy has no coverage and records nothing.
  package func decideRecorded(
    _ principal: Principal, _ operation: Product.Operation, view: Product.View
  ) throws -> AccessDecision<Product> { try decide(principal, operation, view: view) }
  /// By default every principal is subject to the policy.
  package func allowsEverything(_ principal: Principal) -> Bool { false }
  /// By default the policy decides everything.
  package var awaitsRules: Bool { false }
  /// By default, rules that deny all access.
  package var rules: String { Product.lockedRules }
}
