// From callbacks to async functions.
//
// Invariant: a task that waits for an answer goes on exactly once: with the first answer that is given, or, when
// everything that could have given one is gone, with what it said to take for that.

import Locking

/// The place where a task waits for an answer, held by the callbacks that may give it.
package final class Answer<Value: Sendable>: Sendable {
  private let waiting: Guarded<CheckedContinuation<Value, Never>?>
  private let unanswered: Value

  private init(_ continuation: CheckedContinuation<Value, Never>, _ unanswered: Value) {
    waiting = Guarded(continuation)
    self.unanswered = unanswered
  }

  deinit { give(unanswered) }

  /// Lets the task go on; answers after the first are ignored.
  package func give(_ value: Value) {
    let continuation = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    continuation?.resume(returning: value)
  }

  /// Waits for an answer.
  ///
  /// - Parameters:
  ///   - unanswered: what to take for the answer when nobody holds the place any more.
  ///   - begin: asks; its callbacks hold the place.
  package static func wait(unanswered: Value, _ begin: (Answer<Value>) -> Void) async -> Value {
    await withCheckedContinuation { begin(Answer($0, unanswered)) }
  }
}
