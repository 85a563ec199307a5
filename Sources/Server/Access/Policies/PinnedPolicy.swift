// A pinned policy is the policy in force when an operation began. It decides about service accounts by their role and
// denies administrative operations to users; the policy decides everything else.

/// A published policy, as one operation uses it.
package struct PinnedPolicy<Product: AccessProduct>: Sendable {
  /// The policy, which decides about users and callers without credentials.
  package let policy: any AccessPolicy<Product>
  /// The version of the policy. It increases with every publication to its slot, from 1.
  package let version: UInt64

  /// Receives the decisions; nil for none.
  package let observer: (any DecisionObserver<Product>)?

  /// Makes a pinned policy. A ``PolicySlot`` makes those that it publishes, and counts their versions.
  package init(
    policy: any AccessPolicy<Product>, version: UInt64, observer: (any DecisionObserver<Product>)? = nil
  ) {
    self.policy = policy
    self.version = version
    self.observer = observer
  }

  /// Whether the principal may perform every operation that is not administrative.
  package func allowsEverything(_ principal: Principal) -> Bool {
    switch principal.identity {
    case .service(let role): role != .reader
    case .user, .nobody: policy.allowsEverything(principal)
    }
  }

  /// Decides one operation.
  /// - Parameters:
  ///   - principal: the principal as it acts in the database's project: see ``Principal/acting(in:)``.
  ///   - isObserved: whether the observer receives the decision. False for a decision that no client requested.
  ///   - isRepeated: whether the observer has received a decision about the same request already. If so, the observer
  ///     receives this decision only if it is a denial, and the evaluation is not counted for the coverage of rules.
  ///   - view: the state of the operation. It is made only if the decision needs the policy.
  /// - Throws: ``UnfinishedDecision``, the errors of `view`.
  package func decide(
    _ principal: Principal, _ operation: Product.Operation, isObserved: Bool = true, isRepeated: Bool = false,
    view: () throws -> Product.View
  ) throws -> AccessDecision<Product> {
    if case .service(let role) = principal.identity {
      guard role == .reader, operation.changesData else { return .allowed }
      return denied(.deny(reason: "the service account may only read"), principal, operation, isObserved)
    }
    if operation.isAdministrative {
      return denied(
        .deny(
          Product.administrativeDenial(operation.administrativeDenial),
          reason: "only service accounts may perform this operation"), principal, operation, isObserved)
    }
    if policy.allowsEverything(principal) { return .allowed }
    let view = try view()
    guard let observer, isObserved else {
      return try finished(try policy.decide(principal, operation, view: view))
    }
    let observesAllowed = observer.observesAllowed && !isRepeated
    let decision =
      observesAllowed
      ? try policy.decideRecorded(principal, operation, view: view)
      : try policy.decide(principal, operation, view: view)
    if decision.denial != nil || observesAllowed {
      observer.observe(decision, about: operation, of: principal, by: policy, view: view)
    }
    return try finished(decision)
  }

  /// A decision about the complete operation.
  /// - Throws: ``UnfinishedDecision`` if the policy has decided only a part.
  private func finished(_ decision: AccessDecision<Product>) throws -> AccessDecision<Product> {
    guard let continuation = decision.continuation else { return decision }
    precondition(decision.denial == nil, "invariant: an unfinished decision denies nothing")
    throw UnfinishedDecision<Product>(continuation: continuation, dependencies: decision.dependencies)
  }

  /// Reports a denial that depends only on the caller.
  private func denied(
    _ decision: AccessDecision<Product>, _ principal: Principal, _ operation: Product.Operation,
    _ isObserved: Bool
  ) -> AccessDecision<Product> {
    if isObserved { observer?.observe(decision, about: operation, of: principal, by: policy, view: nil) }
    return decision
  }
}
