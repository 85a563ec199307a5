// Wakes many streams a few at a time. A change of one document may concern every stream of a database, for example if the
// access policy has read the document to permit their targets. Without a queue, each stream would start its task
// immediately, and the requests of other clients would wait for all of these tasks.
//
// Invariant: of the streams that the queue has woken, at most `concurrency` work at the same time. A stream works from the
// start of its task until it has sent a batch of responses, or waits for its client or for memory.

import Locking

/// Wakes streams in order.
final class WakeQueue: Sendable {
  /// Maximum number of streams that are woken immediately, without the queue.
  private static let directCount = 64
  /// Maximum number of streams of the queue that work at the same time.
  static let concurrency = 16

  private struct State {
    var waiting: [WatchStream] = []
    /// The index of the next stream in `waiting`.
    var next = 0
    var taskCount = 0
  }

  private let state = Guarded(State())

  /// Wakes streams. Returns immediately.
  func wake(_ streams: [WatchStream]) {
    guard streams.count > Self.directCount else {
      for stream in streams { stream.wake() }
      return
    }
    let added = state.withLock { state in
      state.waiting += streams
      defer { state.taskCount = Self.concurrency }
      return Self.concurrency - state.taskCount
    }
    for _ in 0..<added {
      Task { while let stream = self.next() { await stream.wakeAndWait() } }
    }
  }

  /// The next stream; nil ends the calling task.
  private func next() -> WatchStream? {
    state.withLock { state in
      precondition((1...Self.concurrency).contains(state.taskCount), "invariant: the queue counts its tasks")
      guard state.next < state.waiting.count else {
        state.waiting = []
        state.next = 0
        state.taskCount -= 1
        return nil
      }
      defer { state.next += 1 }
      return state.waiting[state.next]
    }
  }
}
