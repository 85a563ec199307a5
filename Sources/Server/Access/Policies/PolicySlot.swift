// A policy slot holds the policy of one database. The policy can be replaced while the database serves requests.
//
// Invariant: versions increase with every publication. `publish` calls the observers after the new policy is in force,
// and before it returns. An observer that reads `current` sees this policy or a later one.

import Locking

/// The policy of one database.
package final class PolicySlot<Product: AccessProduct>: Sendable {
  private struct State {
    var current: PinnedPolicy<Product>
    var observers: [Int: @Sendable () -> Void] = [:]
    var nextObserver = 0
  }

  private let state: Guarded<State>

  /// Makes a slot with its first policy.
  /// - Parameter observer: receives the decisions of all policies of the slot; nil for none.
  package init(_ policy: any AccessPolicy<Product>, observer: (any DecisionObserver<Product>)? = nil) {
    state = Guarded(State(current: PinnedPolicy(policy: policy, version: 1, observer: observer)))
  }

  /// The policy in force, for one operation.
  package var current: PinnedPolicy<Product> { state.withLock { $0.current } }

  /// Replaces the policy and notifies the observers.
  /// - Returns: the version of the new policy.
  @discardableResult
  package func publish(_ policy: any AccessPolicy<Product>) -> UInt64 {
    let (version, observers) = state.withLock { state in
      state.current = PinnedPolicy(
        policy: policy, version: state.current.version + 1, observer: state.current.observer)
      return (state.current.version, Array(state.observers.values))
    }
    for observer in observers { observer() }
    return version
  }

  /// Calls a closure after every publication, on the publishing thread. It must be quick and must not block.
  /// - Returns: the observation, which ends when it is released.
  package func observe(_ observer: @escaping @Sendable () -> Void) -> PolicyObservation {
    let id = state.withLock { state in
      state.nextObserver += 1
      state.observers[state.nextObserver] = observer
      return state.nextObserver
    }
    return PolicyObservation { [state] in
      state.withLock { _ = $0.observers.removeValue(forKey: id) }
    }
  }
}

/// An observation of a policy slot.
package final class PolicyObservation: Sendable {
  private let end: @Sendable () -> Void

  init(_ end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}
