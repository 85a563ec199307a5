// The policy directory holds the policy slots of all databases of a server. A slot is the replaceable access policy of one
// database.
//
// Unused slots are released, so that requests for unknown databases take no memory.
//
// Invariant: publications run one at a time. Each publication to a slot therefore increases the slot's version by
// exactly one.

import Locking

/// The policies of all databases of one product.
package final class PolicyDirectory<Product: AccessProduct>: Sendable {
  private struct State {
    var defaultPolicy: any AccessPolicy<Product>
    var slots: [Product.Database: PolicySlot<Product>] = [:]
    /// The databases with a dedicated policy.
    var databasesWithDedicatedPolicy: Set<Product.Database> = []
    /// The number of slots at which the directory releases the unused ones.
    var threshold = 256

    /// Removes the slots without a dedicated policy that only the directory holds.
    mutating func removeUnused() -> [PolicySlot<Product>] {
      var unused: [PolicySlot<Product>] = []
      for database in Array(slots.keys) where !databasesWithDedicatedPolicy.contains(database) {
        if let slot = removeIfUnused(database) { unused.append(slot) }
      }
      threshold = max(256, 2 * slots.count)
      return unused
    }

    /// Removes the slot of a database if only the directory holds it. The caller releases it after the lock.
    mutating func removeIfUnused(_ database: Product.Database) -> PolicySlot<Product>? {
      guard var slot = slots.removeValue(forKey: database) else { return nil }
      if isKnownUniquelyReferenced(&slot) { return slot }
      slots[database] = slot
      return nil
    }
  }

  private let state: Guarded<State>
  /// Locked during a publication, so that publications run one at a time.
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

  /// The slot of a database. A new slot has the default policy until a dedicated policy is published to it.
  package func slot(of database: Product.Database) -> PolicySlot<Product> {
    let (slot, unused) = state.withLock { state -> (PolicySlot<Product>, [PolicySlot<Product>]) in
      if let slot = state.slots[database] { return (slot, []) }
      let unused = state.slots.count >= state.threshold ? state.removeUnused() : []
      let slot = PolicySlot<Product>(state.defaultPolicy, observer: observer?(database))
      state.slots[database] = slot
      return (slot, unused)
    }
    withExtendedLifetime(unused) {}
    return slot
  }

  /// The policy in force for a database, without making a slot for it.
  package func current(of database: Product.Database) -> PinnedPolicy<Product> {
    state.withLock { state in
      (state.slots[database] ?? PolicySlot<Product>(state.defaultPolicy, observer: observer?(database)))
        .current
    }
  }

  /// Removes an unused database with its dedicated policy. The caller publishes that policy again before the next use
  /// of the database. Does nothing while another object holds the slot.
  package func forget(_ database: Product.Database) {
    publication.withLock { _ in
      let unused = state.withLock { state -> PolicySlot<Product>? in
        let slot = state.removeIfUnused(database)
        if slot != nil { state.databasesWithDedicatedPolicy.remove(database) }
        return slot
      }
      withExtendedLifetime(unused) {}
    }
  }

  /// Replaces the policy of a database.
  /// - Parameter policy: the policy; nil to return to the default policy.
  package func publish(_ policy: (any AccessPolicy<Product>)?, for database: Product.Database) {
    publication.withLock { _ in
      let slot = slot(of: database)
      let published = state.withLock { state in
        if policy == nil {
          state.databasesWithDedicatedPolicy.remove(database)
        } else {
          state.databasesWithDedicatedPolicy.insert(database)
        }
        return policy ?? state.defaultPolicy
      }
      publish(published, to: slot)
    }
  }

  /// Replaces the policy of all databases without a dedicated one.
  package func publishDefault(_ policy: any AccessPolicy<Product>) {
    publication.withLock { _ in
      let slots = state.withLock { state in
        state.defaultPolicy = policy
        return state.slots.filter { !state.databasesWithDedicatedPolicy.contains($0.key) }.map(\.value)
      }
      for slot in slots { publish(policy, to: slot) }
    }
  }

  /// The caller holds the lock of `publication`, so no other publication changes the slot.
  private func publish(_ policy: any AccessPolicy<Product>, to slot: PolicySlot<Product>) {
    let before = slot.current.version
    precondition(
      slot.publish(policy) == before + 1, "invariant: publications to a policy slot follow one another")
  }
}
