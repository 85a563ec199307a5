// A token observation: keeps an observer of a token source registered.

import Locking

/// Keeps an observer registered until it is cancelled or released.
package final class TokenObservation: Sendable {
  private let end: Guarded<(@Sendable () -> Void)?>

  init(end: @escaping @Sendable () -> Void) {
    self.end = Guarded(end)
  }

  deinit { cancel() }

  /// Ends the observation. A delivery in progress on another thread may still finish.
  package func cancel() {
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }
}
