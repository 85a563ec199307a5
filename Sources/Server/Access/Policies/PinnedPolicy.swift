// A pinned policy is the policy in force when an operation began. It decides about service accounts by their role and
// denies administrative operations to users; about everything else it asks the policy.

/// A published policy, as one operation uses it.
package struct PinnedPolicy<Product: AccessProduct>: Sendable {
  /// The policy.
  package let policy: any AccessPolicy<Product>
  /// The version of the policy. It increases with every publication to its slot, from 1.
  package let version: UInt64

  /// Makes a pinned policy. A slot numbers the policies that it publishes itself.
  package init(policy: any AccessPolicy<Product>, version: UInt64) {
    self.policy = policy
    self.version = version
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
  ///   - view: the state of the operation. It is made only if the policy itself decides.
  /// - Throws: the errors of `view`.
  package func decide(
    _ principal: Principal, _ operation: Product.Operation, view: () throws -> Product.View
  ) throws -> AccessDecision<Product> {
    if case .service(let role) = principal.identity {
      guard role == .reader, operation.changesData else { return .allowed }
      return .deny(reason: "the service account may only read")
    }
    if operation.isAdministrative {
      return .deny(
        Product.administrativeDenial(operation.administrativeDenial),
        reason: "only service accounts may perform this operation")
    }
    if policy.allowsEverything(principal) { return .allowed }
    return try policy.decide(principal, operation, view: view())
  }
}
