// The one-shot continuation: bridges callbacks to async functions.
//
// Invariant: the waiting task resumes exactly once. It resumes with the first result, or with the fallback
// when all callbacks that could deliver a result were released.

import Locking

/// A continuation that callbacks resume. Only the first result counts.
package final class OneShotContinuation<Value: Sendable>: Sendable {
  private let continuation: Guarded<CheckedContinuation<Value, Never>?>
  private let fallback: Value

  private init(_ continuation: CheckedContinuation<Value, Never>, _ fallback: Value) {
    self.continuation = Guarded(continuation)
    self.fallback = fallback
  }

  deinit { resume(returning: fallback) }

  /// Resumes the waiting task, unless it has already been resumed.
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
  ///   - fallback: the result if the continuation is released without a result.
  ///   - begin: starts the operation. The callbacks of the operation retain the continuation.
  package static func wait(
    fallback: Value, _ begin: (OneShotContinuation<Value>) -> Void
  ) async -> Value {
    await withCheckedContinuation { begin(OneShotContinuation($0, fallback)) }
  }
}
