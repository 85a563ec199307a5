// The one order of a database's operations: whoever enqueues first is sequenced first. What waits while one batch is on
// its way to the disk goes into the next.
//
// Invariants
//   1. Requests of one connection are handed out in the order in which they came. While one of them is held, those behind
//      it wait with it; others pass.
//   2. What was held goes on in a lane of its own. Where both lanes wait, each gets half of every batch: however much was
//      held, what never was goes on, and the other way round.
//   3. What nobody is left for is dropped, and takes nobody's place in a batch.

import Locking
import OrderedStore

/// Operations waiting to be sequenced.
final class OperationQueue: Sendable {
  private struct State {
    var waiting: [Operation] = []
    /// What was held and goes on, and how much of it each connection has: what a connection asks for later stands behind.
    var released: [Operation] = []
    var releasedCounts: [ObjectIdentifier: Int] = [:]
    /// What waits behind a held operation, by connection; and how many operations outside connections are held.
    var held: [ObjectIdentifier: [Operation]] = [:]
    var heldCalls = 0
    var appended = 0
    var consumer: CheckedContinuation<[Operation]?, Never>?
    var isWoken = false
    var isClosed = false

    /// Whether the consumer has something to do, be it to end.
    var isReady: Bool { isWoken || !waiting.isEmpty || !released.isEmpty || isFinished }
    var isFinished: Bool {
      isClosed && waiting.isEmpty && released.isEmpty && held.isEmpty && heldCalls == 0
    }

    /// Adds an operation to those of its connection.
    mutating func add(_ operation: Operation) {
      guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else {
        return waiting.append(operation)
      }
      if held[connection] != nil {
        held[connection]?.append(operation)
      } else if releasedCounts[connection] != nil {
        goOn(operation)
      } else {
        waiting.append(operation)
      }
    }

    /// Adds an operation to those that go on.
    mutating func goOn(_ operation: Operation) {
      released.append(operation)
      if let connection = operation.connection {
        releasedCounts[ObjectIdentifier(connection), default: 0] += 1
      }
    }

    /// Takes note that the first of those that go on are no longer there.
    mutating func removeReleased(_ count: Int) {
      for operation in released[..<count] {
        guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else { continue }
        let left = (releasedCounts[connection] ?? 1) - 1
        releasedCounts[connection] = left == 0 ? nil : left
      }
      released.removeFirst(count)
    }
  }

  /// The most that one batch is together, by the shares of its operations, and the most their rows may weigh, far below the
  /// store's limit of a commit.
  static let mostShares = 1_024
  static let mostWeight = 8 << 20

  private let state = Guarded(State())

  /// Adds an operation; false if the queue is closed.
  func append(_ operation: Operation) -> Bool {
    change { state in
      guard !state.isClosed else { return false }
      state.appended += 1
      state.add(operation)
      return true
    }
  }

  /// How many operations were ever added.
  var appended: Int { state.withLock { $0.appended } }

  /// The next batch once there is one; an empty one after ``wake()``, or where nobody was left for what waited;
  /// nil when the queue is closed and empty. One consumer at a time.
  func next() async -> [Operation]? {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state -> Bool in
        if !state.isReady { state.consumer = continuation }
        return state.isReady
      }
      if ready { continuation.resume(returning: take()) }
    }
  }

  /// Has the consumer look around.
  func wake() { change { $0.isWoken = true } }

  /// Refuses what comes later; what waits is still handed out.
  func close() { change { $0.isClosed = true } }

  /// Whether it takes nothing more.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Holds operations that were handed out, the first of each connection with what came behind it.
  func hold(_ operations: [Operation]) {
    change { state in
      for operation in operations {
        guard let connection = operation.connection.map({ ObjectIdentifier($0) }) else {
          state.heldCalls += 1
          continue
        }
        state.held[connection, default: []].append(operation)
      }
      // A connection has operations in one lane only.
      let (released, waiting) = (state.released, state.waiting)
      state.removeReleased(released.count)
      state.waiting = []
      for operation in released {
        if let connection = operation.connection, state.held[ObjectIdentifier(connection)] != nil {
          state.held[ObjectIdentifier(connection)]?.append(operation)
        } else {
          state.goOn(operation)
        }
      }
      for operation in waiting { state.add(operation) }
    }
  }

  /// Has a held operation go on, and what waits behind it.
  func release(_ operation: Operation) {
    change { state in
      guard let connection = operation.connection else {
        state.heldCalls -= 1
        return state.goOn(operation)
      }
      let behind = state.held.removeValue(forKey: ObjectIdentifier(connection)) ?? []
      state.goOn(operation)
      for operation in behind.dropFirst() { state.goOn(operation) }
    }
  }

  /// Has held operations go on whose batch had no time left for them. Those that lost most turns come first: what is new
  /// does not overtake them again and again.
  func releaseByTurns(_ operations: [Operation]) {
    for (_, operation) in operations.enumerated().sorted(by: { first, second in
      (second.element.turnsLost, first.offset) < (first.element.turnsLost, second.offset)
    }) {
      var operation = operation
      operation.turnsLost += 1
      release(operation)
    }
  }

  /// Changes the state, and hands over to the consumer what it waits for.
  private func change<Result>(_ work: (inout State) -> Result) -> Result {
    let (result, consumer) = state.withLock { state -> (Result, CheckedContinuation<[Operation]?, Never>?) in
      let result = work(&state)
      guard state.isReady else { return (result, nil) }
      defer { state.consumer = nil }
      return (result, state.consumer)
    }
    if let consumer { consumer.resume(returning: take()) }
    return result
  }

  private func take() -> [Operation]? {
    // What is dropped goes behind the lock: an operation holds its database, which closes this queue at its end.
    var dropped: [Operation] = []
    defer { withExtendedLifetime(dropped) {} }
    return state.withLock { state in
      if state.isFinished, !state.isWoken { return nil }
      state.isWoken = false
      var batch: [Operation] = []
      var weight = 0
      var (released, releasedShares) = (0, 0)
      var (waiting, waitingShares) = (0, 0)
      while releasedShares + waitingShares < OperationQueue.mostShares {
        let isReleased =
          released < state.released.count
          && (releasedShares <= waitingShares || waiting == state.waiting.count)
        guard isReleased || waiting < state.waiting.count else { break }
        let operation = isReleased ? state.released[released] : state.waiting[waiting]
        if operation.isAbandoned {
          dropped.append(operation)
          if isReleased { released += 1 } else { waiting += 1 }
          continue
        }
        weight += operation.weight
        if !batch.isEmpty, weight > OperationQueue.mostWeight { break }
        if isReleased {
          released += 1
          releasedShares += operation.share
        } else {
          waiting += 1
          waitingShares += operation.share
        }
        batch.append(operation)
      }
      state.removeReleased(released)
      state.waiting.removeFirst(waiting)
      return batch
    }
  }
}
