// Bridges callbacks to async functions.
//
// Invariant: the waiting task resumes exactly once: with the first result, or with the fallback when every callback
// that could give a result was released.

import Locking

/// A continuation that callbacks resume. Later results are ignored.
package final class OneShotContinuation<Value: Sendable>: Sendable {
  private let continuation: Guarded<CheckedContinuation<Value, Never>?>
  private let fallback: Value

  private init(_ continuation: CheckedContinuation<Value, Never>, _ fallback: Value) {
    self.continuation = Guarded(continuation)
    self.fallback = fallback
  }

  deinit { resume(returning: fallback) }

  /// Resumes the waiting task, unless it was resumed before.
  package func resume(returning value: Value) {
    let resumed = continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
    resumed?.resume(returning: value)
  }

  /// Waits for the first result.
  ///
  /// - Parameters:
  ///   - fallback: the result when the continuation is released without one.
  ///   - begin: starts the operation; its callbacks hold the continuation.
  package static func wait(
    fallback: Value, _ begin: (OneShotContinuation<Value>) -> Void
  ) async -> Value {
    await withCheckedContinuation { begin(OneShotContinuation($0, fallback)) }
  }
}
