// Notifies parts of the server of changes that end or restrict the sessions of an account: deletion, disabling, and
// revocation of its tokens. Open streams observe them, so that a revoked user loses access within one second.

import Locking

/// A change of an account that affects tokens issued before the change.
package struct AccountEvent: Sendable, Equatable {
  /// The change.
  package enum Change: Sendable, Equatable {
    case deleted
    case disabled
    /// The account was enabled, or tokens issued before `validSince` (seconds since the Unix epoch) were revoked.
    case changed(validSince: Int64?)
  }

  /// The project; empty until the store sets it.
  package var projectID = ""
  /// The tenant; nil for accounts of the project itself.
  package var tenantID: String?
  /// The account; nil for all accounts of the tenant.
  package var localID: String?
  package var change: Change

  init(tenantID: String?, localID: String?, change: Change) {
    self.tenantID = tenantID
    self.localID = localID
    self.change = change
  }
}

/// The observers of account events.
package final class AccountEvents: Sendable {
  private struct State {
    var next = 0
    var observers: [Int: @Sendable (AccountEvent) -> Void] = [:]
  }

  /// An observation, which ends when it is cancelled or released.
  package final class Observation: Sendable {
    private let end: @Sendable () -> Void

    fileprivate init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }

    /// Ends the observation.
    package func cancel() { end() }
  }

  private let state = Guarded(State())

  init() {}

  /// Registers an observer. It runs after the commit of the change is durable and before the operation responds. It
  /// must be quick and must not block.
  package func observe(_ observer: @escaping @Sendable (AccountEvent) -> Void) -> Observation {
    let number = state.withLock { state in
      state.next += 1
      state.observers[state.next] = observer
      return state.next
    }
    return Observation { [state] in state.withLock { $0.observers[number] = nil } }
  }

  func publish(_ events: [AccountEvent]) {
    guard !events.isEmpty else { return }
    // Observers run in the order of registration. The revocation list registers first, so it is complete when open
    // streams are compared with it.
    let observers = state.withLock { state in state.observers.sorted { $0.key < $1.key }.map(\.value) }
    for observer in observers { for event in events { observer(event) } }
  }
}
