// Queues the commits of one database about which the access policy decides in several time slices of the sequencer. The
// sequencer runs one commit of the database at a time.
//
// Each time slice plans all writes of its commit again, and the database's other commits wait for its end. Therefore only
// one of the queued commits continues at a time: other commits wait for at most one of these time slices.
//
// Invariant: the queue is empty unless a commit is continuing its decision. That commit calls `dequeue` when it ends or waits
// for locks.

import Locking

/// The commits of one database that wait to continue their decisions, in order of arrival.
final class DecisionQueue<Commit: Sendable>: Sendable {
  private struct State {
    var isBusy = false
    /// The first `started` commits have left the queue.
    var commits: [Commit] = []
    var started = 0
  }

  private let state = Guarded(State())

  /// Lets a commit continue its decision, or queues it.
  /// - Returns: whether it may continue now. Otherwise `dequeue` returns it later.
  func continueOrEnqueue(_ commit: Commit) -> Bool {
    state.withLock { state in
      if state.isBusy {
        state.commits.append(commit)
        return false
      }
      state.isBusy = true
      return true
    }
  }

  /// Called when the continuing commit ends or waits for locks.
  /// - Returns: the next commit, which may continue now; nil if the queue is empty.
  func dequeue() -> Commit? {
    state.withLock { state in
      guard state.started < state.commits.count else {
        state = State()
        return nil
      }
      let commit = state.commits[state.started]
      state.started += 1
      if state.started * 2 > state.commits.count {
        state.commits.removeFirst(state.started)
        state.started = 0
      }
      return commit
    }
  }
}
