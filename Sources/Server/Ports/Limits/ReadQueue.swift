// Queues REST reads: runs a bounded number at a time, in the order of their arrival.
//
// Invariants
//   1. A read runs at most once, and not at all if it was cancelled while it waited.
//   2. The end of a read starts the next one. Cancelled reads are skipped.
//
// Decision: docs/decisions/0018-fairness-on-an-event-loop.md

import NIOConcurrencyHelpers
import NIOCore

/// A REST read: waiting, running or cancelled.
package final class ReadingTask: Sendable {
  private enum State {
    case waiting(@Sendable () async -> Void)
    case running(Task<Void, Never>)
    case cancelled
  }

  private let state: NIOLockedValueBox<State>

  fileprivate init(_ operation: @escaping @Sendable () async -> Void) {
    state = NIOLockedValueBox(.waiting(operation))
  }

  /// Runs the read, then `next`. Runs neither, and returns false, if the read was cancelled.
  fileprivate func run(then next: @escaping @Sendable () -> Void) -> Bool {
    state.withLockedValue { state in
      guard case .waiting(let operation) = state else { return false }
      state = .running(
        RequestTasks.start {
          await operation()
          next()
        })
      return true
    }
  }

  /// Cancels the read, whether it waits or runs.
  package func cancel() {
    if !cancelIfWaiting(), case .running(let task) = state.withLockedValue({ $0 }) { task.cancel() }
  }

  /// Cancels the read if it has not started. Returns false if it has.
  package func cancelIfWaiting() -> Bool {
    state.withLockedValue { state in
      guard case .waiting = state else { return false }
      state = .cancelled
      return true
    }
  }
}

/// The reads that share one limit.
final class ReadQueue: Sendable {
  private struct State {
    var available: Int
    var waiting = CircularBuffer<ReadingTask>(initialCapacity: 0)
  }

  private let maximumConcurrentReads: Int
  private let state: NIOLockedValueBox<State>

  init(maximumConcurrentReads: Int) {
    self.maximumConcurrentReads = maximumConcurrentReads
    state = NIOLockedValueBox(State(available: maximumConcurrentReads))
  }

  /// Runs a read as soon as fewer than the maximum are running.
  func start(_ operation: @escaping @Sendable () async -> Void) -> ReadingTask {
    let read = ReadingTask(operation)
    let runs = state.withLockedValue { state in
      guard state.available > 0 else {
        state.waiting.append(read)
        return false
      }
      state.available -= 1
      return true
    }
    if runs { run(read) }
    return read
  }

  /// Runs a read, or the first one after it that is not cancelled.
  private func run(_ read: ReadingTask) {
    var next: ReadingTask? = read
    while let read = next, !read.run(then: { self.runNext() }) { next = dequeue() }
  }

  private func runNext() {
    if let next = dequeue() { run(next) }
  }

  private func dequeue() -> ReadingTask? {
    state.withLockedValue { state in
      if let next = state.waiting.popFirst() { return next }
      state.available += 1
      precondition(state.available <= maximumConcurrentReads, "invariant: each read ends once")
      return nil
    }
  }
}
