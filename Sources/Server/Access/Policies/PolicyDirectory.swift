// The policy directory finds the policy slots of all databases of a server.
//
// A database has its dedicated policy; without one, that of its group, such as its project; without one, the default
// policy. This also holds for databases whose slot is made later.
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
    /// The policies of groups of databases, the latest last.
    var groups: [Group] = []
    /// The number of slots at which released ones are removed.
    var maximumSlots = 64

    /// The policy of a database without a dedicated one.
    func sharedPolicy(of database: Product.Database) -> any AccessPolicy<Product> {
      groups.last { $0.contains(database) }?.policy ?? defaultPolicy
    }
  }

  private struct Group {
    var name: String
    var contains: @Sendable (Product.Database) -> Bool
    var policy: any AccessPolicy<Product>
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
      let slot = PolicySlot<Product>(state.sharedPolicy(of: database))
      state.slots[database] = WeakSlot(slot: slot)
      if state.slots.count > state.maximumSlots {
        state.slots = state.slots.filter { $0.value.slot != nil }
        state.maximumSlots = max(64, 2 * state.slots.count)
      }
      return slot
    }
  }

  /// Replaces the policy of a database.
  /// - Parameter policy: the policy; nil to return to the policy of the group, or to the default policy.
  package func publish(_ policy: (any AccessPolicy<Product>)?, for database: Product.Database) {
    let slot = slot(of: database)
    let published = state.withLock { state in
      state.dedicated[database] = policy == nil ? nil : slot
      return policy ?? state.sharedPolicy(of: database)
    }
    slot.publish(published)
  }

  /// Replaces the policy of a group of databases, except for those with a dedicated one. The policy of the group that
  /// was published last is in force for a database of several groups.
  /// - Parameters:
  ///   - policy: the policy; nil to return to that of another group, or to the default policy.
  ///   - group: the name of the group.
  ///   - contains: whether a database belongs to the group.
  package func publish(
    _ policy: (any AccessPolicy<Product>)?, forGroup group: String,
    of contains: @escaping @Sendable (Product.Database) -> Bool
  ) {
    let changed = state.withLock { state in
      state.groups.removeAll { $0.name == group }
      if let policy { state.groups.append(Group(name: group, contains: contains, policy: policy)) }
      return state.slots.compactMap { database, own -> (PolicySlot<Product>, any AccessPolicy<Product>)? in
        guard contains(database), state.dedicated[database] == nil, let slot = own.slot else { return nil }
        return (slot, state.sharedPolicy(of: database))
      }
    }
    for (slot, policy) in changed { slot.publish(policy) }
  }

  /// Replaces the policy of all databases without a dedicated one and without a group.
  package func publishDefault(_ policy: any AccessPolicy<Product>) {
    let slots = state.withLock { state in
      state.defaultPolicy = policy
      let others = state.slots.filter { database, _ in
        state.dedicated[database] == nil && !state.groups.contains { $0.contains(database) }
      }
      return others.compactMap(\.value.slot)
    }
    for slot in slots { slot.publish(policy) }
  }
}
