// The policy directory holds the policy slots of all databases of a server.
//
// Invariant: publications are ordered. Each slot's last policy is the one that the last publication gave it.

import Locking

/// The policies of all databases of one product.
package final class PolicyDirectory<Product: AccessProduct>: Sendable {
  private struct State {
    var defaultPolicy: any AccessPolicy<Product>
    var slots: [Product.Database: PolicySlot<Product>] = [:]
    /// The databases with a dedicated policy.
    var ownPolicies: Set<Product.Database> = []
  }

  private let state: Guarded<State>
  /// Held for the whole of a publication.
  private let publication = Guarded(())
  private let observer: (@Sendable (Product.Database) -> (any DecisionObserver<Product>)?)?

  /// Makes a directory.
  /// - Parameters:
  ///   - policy: the policy of databases without a dedicated one.
  ///   - observer: returns the observer of a database's decisions; nil for none.
  package init(
    default policy: any AccessPolicy<Product>,
    observer: (@Sendable (Product.Database) -> (any DecisionObserver<Product>)?)? = nil
  ) {
    state = Guarded(State(defaultPolicy: policy))
    self.observer = observer
  }

  /// The slot of a database, with the default policy at first.
  package func slot(of database: Product.Database) -> PolicySlot<Product> {
    state.withLock { state in
      if let slot = state.slots[database] { return slot }
      let slot = PolicySlot<Product>(state.defaultPolicy, observer: observer?(database))
      state.slots[database] = slot
      return slot
    }
  }

  /// Replaces the policy of a database.
  /// - Parameter policy: the policy; nil to return to the default policy.
  package func publish(_ policy: (any AccessPolicy<Product>)?, for database: Product.Database) {
    publication.withLock { _ in
      let slot = slot(of: database)
      let published = state.withLock { state in
        if policy == nil { state.ownPolicies.remove(database) } else { state.ownPolicies.insert(database) }
        return policy ?? state.defaultPolicy
      }
      slot.publish(published)
    }
  }

  /// Replaces the policy of all databases without a dedicated one.
  package func publishDefault(_ policy: any AccessPolicy<Product>) {
    publication.withLock { _ in
      let slots = state.withLock { state in
        state.defaultPolicy = policy
        return state.slots.filter { !state.ownPolicies.contains($0.key) }.map(\.value)
      }
      for slot in slots { slot.publish(policy) }
    }
  }
}
