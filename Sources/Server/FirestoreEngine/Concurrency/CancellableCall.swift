// Defines calls that report their outcome to a callback and can be cancelled. Such a call needs no Swift task
// while it runs.

import Locking
import OrderedStore

/// A call in progress.
public protocol CancellableCall: Sendable {
  /// Requests that the call ends early. The call reports its outcome nevertheless.
  func cancel()
}

extension Task: CancellableCall {}

/// Starts a call that reports to a callback, and returns its outcome. Cancelling the task cancels the call.
/// - Parameter start: starts the call; the call invokes the callback exactly once, on any thread.
public func outcome<Outcome: Sendable>(
  of start: (@escaping @Sendable (Outcome) -> Void) -> any CancellableCall
) async -> Outcome {
  let started = Guarded<(any CancellableCall)?>(nil)
  return await withTaskCancellationHandler {
    await withCheckedContinuation { continuation in
      let call = start { continuation.resume(returning: $0) }
      started.withLock { $0 = call }
      // If the task was cancelled before the call was stored, `onCancel` could not cancel it.
      if Task.isCancelled { call.cancel() }
    }
  } onCancel: {
    started.withLock { $0 }?.cancel()
  }
}
