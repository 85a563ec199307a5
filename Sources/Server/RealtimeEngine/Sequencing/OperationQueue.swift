// The one order of a database's operations: whoever enqueues first is sequenced first. What waits while one batch is on
// its way to the disk goes into the next.
//
// Invariant: requests of one connection are handed out in the order in which they came. While one of them is held, those
// behind it wait with it; others pass.

import OrderedStore

/// Operations waiting to be sequenced.
final class OperationQueue: Sendable {
  private struct State {
    var waiting: [Operation] = []
    /// What waits behind a held operation, by connection; and how many operations outside connections are held.
    var held: [ObjectIdentifier: [Operation]] = [:]
    var heldCalls = 0
    var appended = 0
    var consumer: CheckedContinuation<[Operation]?, Never>?
    var isWoken = false
    var isClosed = false

    /// Whether the consumer has something to do, be it to end.
    var isReady: Bool { isWoken || !waiting.isEmpty || isFinished }
    var isFinished: Bool { isClosed && waiting.isEmpty && held.isEmpty && heldCalls == 0 }
  }

  /// The most operations in one batch, and the most their rows may weigh, far below the store's limit of a commit.
  static let mostOperations = 1_024
  static let mostWeight = 8 << 20

  private let state = Guarded(State())

  /// Adds an operation; false if the queue is closed.
  func append(_ operation: Operation) -> Bool {
    change { state in
      guard !state.isClosed else { return false }
      state.appended += 1
      if let connection = operation.connection, state.held[ObjectIdentifier(connection)] != nil {
        state.held[ObjectIdentifier(connection)]?.append(operation)
      } else {
        state.waiting.append(operation)
      }
      return true
    }
  }

  /// How many operations were ever added.
  var appended: Int { state.withLock { $0.appended } }

  /// The next batch once there is one; an empty one after ``wake()``; nil when the queue is closed and empty. One
  /// consumer at a time.
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
      var waiting: [Operation] = []
      for operation in state.waiting {
        if let connection = operation.connection, state.held[ObjectIdentifier(connection)] != nil {
          state.held[ObjectIdentifier(connection)]?.append(operation)
        } else {
          waiting.append(operation)
        }
      }
      state.waiting = waiting
    }
  }

  /// Puts a held operation, and what waits behind it, before everything else.
  func release(_ operation: Operation) {
    change { state in
      guard let connection = operation.connection else {
        state.heldCalls -= 1
        return state.waiting.insert(operation, at: 0)
      }
      let behind = state.held.removeValue(forKey: ObjectIdentifier(connection)) ?? []
      state.waiting.insert(contentsOf: [operation] + behind.dropFirst(), at: 0)
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
    state.withLock { state in
      if state.isFinished, !state.isWoken { return nil }
      state.isWoken = false
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
