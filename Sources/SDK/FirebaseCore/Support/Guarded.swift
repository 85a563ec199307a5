// A value behind a lock. Every piece of mutable state that the SDK shares between threads lives in
// one of these, so that "who may touch this" is answered by the type. Invariant: the value is only
// ever read or written while the lock is held.

import Foundation

/// A value that is only reachable while its lock is held.
package final class Guarded<State>: @unchecked Sendable {
  // Safe to share: `state` is touched inside `withLock` alone, and `lock` serialises that.
  private let lock = NSLock()
  private var state: State

  /// Wraps a first value.
  package init(_ state: State) {
    self.state = state
  }

  /// Runs `body` with exclusive access. `body` must not call out to user code: the lock is not
  /// recursive.
  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }
}
