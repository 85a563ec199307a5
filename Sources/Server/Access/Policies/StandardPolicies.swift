// The standard policies, for databases without rules: open in the emulator, locked in production.

/// The emulator's policy without rules: every principal may do everything.
package struct OpenPolicy<Product: AccessProduct>: AccessPolicy {
  /// Makes the policy.
  package init() {}

  /// Allows every operation.
  package func decide(
    _ principal: Principal, _ operation: Product.Operation, view: Product.View
  ) -> AccessDecision<Product> { .allowed }

  /// True for every principal.
  package func allowsEverything(_ principal: Principal) -> Bool { true }

  /// Rules that allow all access.
  package var rules: String { Product.openRules }
}

/// The production policy without rules: only service accounts have access.
package struct LockedPolicy<Product: AccessProduct>: AccessPolicy {
  /// Makes the policy.
  package init() {}

  /// Denies every operation.
  package func decide(
    _ principal: Principal, _ operation: Product.Operation, view: Product.View
  ) -> AccessDecision<Product> {
    principal.identity == .nobody
      ? .deny(
        Product.credentialsRequired, reason: "the database has no rules, and the caller has no credentials")
      : .deny(reason: "the database has no rules")
  }

  /// True: a database without rules in production waits for them.
  package var awaitsRules: Bool { true }
}
