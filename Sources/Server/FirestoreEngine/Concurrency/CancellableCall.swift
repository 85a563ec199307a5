// Calls that report their outcome to a callback and can be cancelled without a task.

import Locking
import OrderedStore

/// A call in progress.
public protocol CancellableCall: Sendable {
  /// Asks the call to end early. The call still reports its outcome.
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
      // A cancellation before this point found no call.
      if Task.isCancelled { call.cancel() }
    }
  } onCancel: {
    started.withLock { $0 }?.cancel()
  }
}
