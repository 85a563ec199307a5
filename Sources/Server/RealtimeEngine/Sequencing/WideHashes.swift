// Hashes of values that are too large to be hashed in the sequencer, computed on threads that all namespaces share. Nodes
// are immutable and keep the hash they were asked for, so that what shares structure with a value hashed before is cheap.

import Locking
import OrderedStore
import RealtimeModel

/// The hashing of one database's large values: one at a time, in the order in which they were asked for.
final class WideHashes: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var isRunning = false
  }

  private let state = Guarded(State())
  private let threads: ThreadPool

  /// Hashes on `threads`, which other namespaces may use as well.
  init(on threads: ThreadPool) { self.threads = threads }

  /// Finds out what a held operation waits for.
  func examine(_ held: HeldOperation, _ node: Node, _ done: @escaping @Sendable (Operation) -> Void) {
    guard case .write(_, let hash?) = held.operation.action else { return done(held.operation) }
    add {
      var operation = held.operation
      operation.verdict = .init(node: node, matches: node.matches(hash: hash))
      done(operation)
    }
  }

  private func add(_ job: @escaping @Sendable () -> Void) {
    let starts = state.withLock { state -> Bool in
      state.jobs.append(job)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { step() }
  }

  /// One value at a turn, so that the namespaces take turns.
  private func step() {
    threads.submit {
      let job = self.state.withLock { state -> (@Sendable () -> Void)? in
        guard !state.jobs.isEmpty else {
          state.isRunning = false
          return nil
        }
        return state.jobs.removeFirst()
      }
      guard let job else { return }
      job()
      self.step()
    }
  }
}
