// Queues the operations of one database, and forms the batches that the executor sequences.
//
// Operations that arrive while a batch is being committed share the next batch.
//
// Invariants
//   1. Requests of a connection enter batches in the order of their arrival. While a request is deferred,
//      later requests of its connection are blocked; other connections continue.
//   2. Operations that return from a deferral wait in a second list, the lane of resumed operations. While
//      both lanes have operations, each gets half of a batch's cost. So neither lane delays the other, however many
//      operations it has.
//   3. Operations whose result nobody receives any more are dropped and take no share of a batch.
//   4. Every held operation, whether deferred or blocked, returns to the queue exactly once.

import Locking
import OrderedStore

/// Operations that wait to be sequenced.
final class OperationQueue: Sendable {
  private struct State {
    /// New operations.
    var waiting: [RealtimeOperation] = []
    /// Operations that returned from a deferral, and the requests that were blocked behind them.
    var resumed: [RealtimeOperation] = []
    /// Number of `resumed` operations of each connection. While it is not zero, later requests of the
    /// connection join that lane too, to keep their order.
    var resumedCounts: [ObjectIdentifier: Int] = [:]
    /// For each connection with a deferred operation: that operation, then the requests blocked behind it.
    var held: [ObjectIdentifier: [RealtimeOperation]] = [:]
    /// Number of deferred operations that no connection submitted.
    var heldCallCount = 0
    var appendedCount = 0
    var consumer: CheckedContinuation<[RealtimeOperation]?, Never>?
    var isWoken = false
    var isClosed = false

    /// Whether `next()` returns without waiting.
    var isReady: Bool { isWoken || !waiting.isEmpty || !resumed.isEmpty || isFinished }
    var isFinished: Bool {
      isClosed && waiting.isEmpty && resumed.isEmpty && held.isEmpty && heldCallCount == 0
    }

    /// Adds an operation after the other requests of its connection.
    mutating func add(_ operation: RealtimeOperation) {
      guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else {
        return waiting.append(operation)
      }
      if held[connection] != nil {
        held[connection]?.append(operation.blocked)
      } else if resumedCounts[connection] != nil {
        addResumed(operation)
      } else {
        waiting.append(operation)
      }
    }

    /// Adds an operation to the lane of resumed operations.
    mutating func addResumed(_ operation: RealtimeOperation) {
      resumed.append(operation.requeued)
      if let connection = operation.connection {
        resumedCounts[ObjectIdentifier(connection), default: 0] += 1
      }
    }

    /// Removes the first operations of the lane of resumed operations.
    mutating func removeResumed(_ count: Int) {
      for operation in resumed[..<count] {
        guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else { continue }
        let remaining = (resumedCounts[connection] ?? 1) - 1
        resumedCounts[connection] = remaining == 0 ? nil : remaining
      }
      resumed.removeFirst(count)
    }
  }

  /// Maximum sum of the costs of one batch, in writes.
  static let maximumBatchCost = 1_024
  /// Maximum bytes of the rows of one batch, far below the store's limit of a commit.
  static let maximumBatchBytes = 8 << 20

  private let state = Guarded(State())

  /// Adds an operation; returns false if the queue is closed.
  func append(_ operation: RealtimeOperation) -> Bool {
    change { state in
      guard !state.isClosed else { return false }
      state.appendedCount += 1
      state.add(operation)
      return true
    }
  }

  /// Number of operations ever added.
  var appendedCount: Int { state.withLock { $0.appendedCount } }

  /// Waits for the next batch. Only one consumer may wait at a time.
  ///
  /// - Returns: an empty batch after ``wake()``, or if all operations were dropped; nil once the queue is
  ///   closed and empty.
  func next() async -> [RealtimeOperation]? {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state -> Bool in
        if !state.isReady {
          precondition(state.consumer == nil, "invariant: the queue has one consumer")
          state.consumer = continuation
        }
        return state.isReady
      }
      if isReady { continuation.resume(returning: makeBatch()) }
    }
  }

  /// Returns an empty batch to the consumer if nothing else is ready.
  func wake() { change { $0.isWoken = true } }

  /// Rejects later operations. Operations that already wait still enter batches.
  func close() { change { $0.isClosed = true } }

  /// Holds operations that a batch deferred or blocked, and blocks the waiting requests of their connections.
  func hold(_ operations: [RealtimeOperation]) {
    change { state in
      for operation in operations {
        precondition(!operation.isQueued, "invariant: a held operation is deferred or blocked")
        guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else {
          state.heldCallCount += 1
          continue
        }
        state.held[connection, default: []].append(operation)
      }
      // All of a connection's operations are in the same lane, so moving the lanes one after the other keeps
      // their order.
      let (resumed, waiting) = (state.resumed, state.waiting)
      state.removeResumed(resumed.count)
      state.waiting = []
      for operation in resumed {
        if let connection = operation.connection, state.held[ObjectIdentifier(connection)] != nil {
          state.held[ObjectIdentifier(connection)]?.append(operation.blocked)
        } else {
          state.addResumed(operation)
        }
      }
      for operation in waiting { state.add(operation) }
    }
  }

  /// Returns a deferred operation to the queue, followed by the requests that were blocked behind it.
  func resume(_ operation: RealtimeOperation) {
    precondition(operation.deferral != nil, "invariant: only a deferred operation resumes")
    change { state in
      guard let connection = operation.connection else {
        precondition(state.heldCallCount > 0, "invariant: a deferred call resumes once")
        state.heldCallCount -= 1
        return state.addResumed(operation)
      }
      guard let held = state.held.removeValue(forKey: ObjectIdentifier(connection)) else {
        preconditionFailure("invariant: a deferred operation resumes once")
      }
      state.addResumed(operation)
      for operation in held.dropFirst() { state.addResumed(operation) }
    }
  }

  /// Returns operations that their batch had no time for. The most often skipped come first, so that new
  /// operations cannot overtake them forever.
  func resumeSkipped(_ operations: [RealtimeOperation]) {
    for (_, operation) in operations.enumerated().sorted(by: { first, second in
      (second.element.timesSkipped, first.offset) < (first.element.timesSkipped, second.offset)
    }) {
      var operation = operation
      operation.timesSkipped += 1
      resume(operation)
    }
  }

  /// Changes the state, then gives the waiting consumer a batch if one is ready.
  private func change<Result>(_ work: (inout State) -> Result) -> Result {
    let (result, consumer) = state.withLock {
      state -> (Result, CheckedContinuation<[RealtimeOperation]?, Never>?) in
      let result = work(&state)
      guard state.isReady else { return (result, nil) }
      defer { state.consumer = nil }
      return (result, state.consumer)
    }
    if let consumer { consumer.resume(returning: makeBatch()) }
    return result
  }

  private func makeBatch() -> [RealtimeOperation]? {
    // Dropped operations are deallocated after the lock is released. The last one may deallocate its
    // database, which closes this queue and needs the lock.
    var dropped: [RealtimeOperation] = []
    defer { withExtendedLifetime(dropped) {} }
    return state.withLock { state in
      if state.isFinished, !state.isWoken { return nil }
      state.isWoken = false
      var batch: [RealtimeOperation] = []
      var weight = 0
      var (resumed, resumedCost) = (0, 0)
      var (waiting, waitingCost) = (0, 0)
      while resumedCost + waitingCost < OperationQueue.maximumBatchCost {
        let isResumed =
          resumed < state.resumed.count
          && (resumedCost <= waitingCost || waiting == state.waiting.count)
        guard isResumed || waiting < state.waiting.count else { break }
        let operation = isResumed ? state.resumed[resumed] : state.waiting[waiting]
        if operation.isAbandoned {
          dropped.append(operation)
          if isResumed { resumed += 1 } else { waiting += 1 }
          continue
        }
        weight += operation.weight
        if !batch.isEmpty, weight > OperationQueue.maximumBatchBytes { break }
        if isResumed {
          resumed += 1
          resumedCost += operation.cost
        } else {
          waiting += 1
          waitingCost += operation.cost
        }
        precondition(operation.isQueued, "invariant: a batch holds queued operations only")
        batch.append(operation)
      }
      state.removeResumed(resumed)
      state.waiting.removeFirst(waiting)
      return batch
    }
  }
}
