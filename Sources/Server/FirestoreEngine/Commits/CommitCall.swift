// A Commit call in progress, from the request until its outcome is reported.
//
// A commit needs a task only while it waits: for the database to open, or for another transaction's locks.
//
// Invariant: the outcome is reported exactly once.

import Locking
import FirestoreModel
import OrderedStore

/// A commit in progress. Cancelling it ends a wait. A commit that runs in the store's sequencer (which runs one commit of
/// a database at a time) completes nevertheless.
public final class CommitCall: CancellableCall {
  typealias Outcome = Result<CommitResponse, FirestoreError>
  typealias Completion = @Sendable (Outcome) -> Void

  private struct State {
    var completion: Completion?
    var wait: Task<Void, Never>?
    var isCancelled = false
  }

  private let state: Guarded<State>

  init(_ completion: @escaping Completion) { state = Guarded(State(completion: completion)) }

  /// Ends the current wait, if there is one, and every later wait immediately.
  public func cancel() {
    let wait = state.withLock { state in
      state.isCancelled = true
      return state.wait
    }
    wait?.cancel()
  }

  /// Whether the call was cancelled.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Starts a task for a part of the commit that waits. `body` waits, and then continues the commit or
  /// reports its failure.
  func startWaiting(_ body: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      let wait = Task { await body() }
      state.wait = wait
      if state.isCancelled { wait.cancel() }
    }
  }

  /// Reports the outcome.
  func complete(_ outcome: Outcome) {
    let completion = state.withLock { state in
      defer {
        state.completion = nil
        state.wait = nil
      }
      return state.completion
    }
    guard let completion else { preconditionFailure("invariant: a commit is answered once") }
    completion(outcome)
  }
}
