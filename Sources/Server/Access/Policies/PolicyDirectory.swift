// The policy directory finds the policy slots of all databases of a server.
//
// Invariant: a database that nobody uses and that has no dedicated policy takes no memory, so requests for unknown names
// leave nothing behind.

import Locking

/// The policies of all databases of one product.
package final class PolicyDirectory<Product: AccessProduct>: Sendable {
  private struct State {
    var defaultPolicy: any AccessPolicy<Product>
    /// The slots in use.
    var slots: [Product.Database: WeakSlot] = [:]
    /// The slots of databases with a dedicated policy.
    var dedicated: [Product.Database: PolicySlot<Product>] = [:]
    /// The number of slots at which released ones are removed.
    var maximumSlots = 64
  }

  private struct WeakSlot {
    weak var slot: PolicySlot<Product>?
  }

  private let state: Guarded<State>

  /// Makes a directory.
  /// - Parameter policy: the policy of databases without a dedicated one.
  package init(default policy: any AccessPolicy<Product>) {
    state = Guarded(State(defaultPolicy: policy))
  }

  /// The slot of a database, with the default policy at first. Its users retain it.
  package func slot(of database: Product.Database) -> PolicySlot<Product> {
    state.withLock { state in
      if let slot = state.slots[database]?.slot { return slot }
      let slot = PolicySlot<Product>(state.defaultPolicy)
      state.slots[database] = WeakSlot(slot: slot)
      if state.slots.count > state.maximumSlots {
        state.slots = state.slots.filter { $0.value.slot != nil }
        state.maximumSlots = max(64, 2 * state.slots.count)
      }
      return slot
    }
  }

  /// Replaces the policy of a database.
  /// - Parameter policy: the policy; nil to return to the default policy.
  package func publish(_ policy: (any AccessPolicy<Product>)?, for database: Product.Database) {
    let slot = slot(of: database)
    let published = state.withLock { state in
      state.dedicated[database] = policy == nil ? nil : slot
      return policy ?? state.defaultPolicy
    }
    slot.publish(published)
  }

  /// Replaces the policy of all databases without a dedicated one.
  package func publishDefault(_ policy: any AccessPolicy<Product>) {
    let slots = state.withLock { state in
      state.defaultPolicy = policy
      return state.slots.filter { state.dedicated[$0.key] == nil }.compactMap(\.value.slot)
    }
    for slot in slots { slot.publish(policy) }
  }
}
