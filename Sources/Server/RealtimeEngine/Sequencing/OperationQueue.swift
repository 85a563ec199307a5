// The one order of a database's operations: whoever enqueues first is sequenced first. What waits while one batch is on
// its way to the disk goes into the next.

import OrderedStore

/// Operations waiting to be sequenced.
final class OperationQueue: Sendable {
  private struct State {
    var waiting: [Operation] = []
    var consumer: CheckedContinuation<[Operation]?, Never>?
    var isClosed = false
  }

  /// The most operations in one batch, and the most their rows may weigh, far below the store's limit of a commit.
  static let mostOperations = 1_024
  static let mostWeight = 8 << 20

  private let state = Guarded(State())

  /// Adds an operation; false if the queue is closed.
  func append(_ operation: Operation) -> Bool {
    let (accepted, consumer) = state.withLock {
      state -> (Bool, (CheckedContinuation<[Operation]?, Never>)?) in
      guard !state.isClosed else { return (false, nil) }
      state.waiting.append(operation)
      defer { state.consumer = nil }
      return (true, state.consumer)
    }
    if let consumer { consumer.resume(returning: take() ?? []) }
    return accepted
  }

  /// The next batch, once there is one; nil when the queue is closed and empty. One consumer at a time.
  func next() async -> [Operation]? {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state -> Bool in
        if state.waiting.isEmpty && !state.isClosed {
          state.consumer = continuation
          return false
        }
        return true
      }
      if ready { continuation.resume(returning: take()) }
    }
  }

  /// Refuses what comes later; what waits is still handed out.
  func close() {
    let consumer = state.withLock { state -> (CheckedContinuation<[Operation]?, Never>)? in
      state.isClosed = true
      defer { state.consumer = nil }
      return state.consumer
    }
    consumer?.resume(returning: take())
  }

  private func take() -> [Operation]? {
    state.withLock { state in
      guard !state.waiting.isEmpty else { return state.isClosed ? nil : [] }
      var count = 0
      var weight = 0
      while count < state.waiting.count, count < OperationQueue.mostOperations {
        weight += state.waiting[count].weight
        if count > 0, weight > OperationQueue.mostWeight { break }
        count += 1
      }
      let batch = Array(state.waiting[..<count])
      state.waiting.removeFirst(count)
      return batch
    }
  }
}
