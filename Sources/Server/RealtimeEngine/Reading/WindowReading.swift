// Windows of queries that are too wide to be read in the sequencer, for operations of connections: they are read aside as
// calls outside connections read them, a few at a time, and then the operations go on with what was found.
//
// Invariants
//   1. A window shows everything that was sequenced before its operation was put off; not what others changed since.
//   2. An operation keeps its place among those of its connection; the others of the database pass.

import Locking
import OrderedStore
import RealtimeModel

/// The windows of one database that are read beside the sequencer.
final class WindowReading: Sendable {
  private struct Wanted {
    let operation: Operation
    let path: Path
    let query: QuerySpec
    let caller: Caller
  }

  private struct State {
    var waiting: [Wanted] = []
    var running = 0
  }

  /// How many windows of one database are read at a time: each is in memory until it is answered.
  private static let mostAtOnce = 2

  private let queue: OperationQueue
  private let runner: BatchRunner
  private let state = Guarded(State())

  init(_ queue: OperationQueue, _ runner: BatchRunner) {
    self.queue = queue
    self.runner = runner
  }

  /// Has an operation that is held go on once its window was read.
  func add(_ operation: Operation, _ path: Path, _ query: QuerySpec, _ caller: Caller) {
    let starts = state.withLock { state -> Bool in
      state.waiting.append(Wanted(operation: operation, path: path, query: query, caller: caller))
      guard state.running < WindowReading.mostAtOnce else { return false }
      state.running += 1
      return true
    }
    if starts { Task { await self.run() } }
  }

  private func run() async {
    while let next = next() {
      var operation = next.operation
      operation.window = await read(next)
      queue.release(operation)
    }
  }

  private func next() -> Wanted? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.running -= 1
        return nil
      }
      return state.waiting.removeFirst()
    }
  }

  private func read(_ wanted: Wanted) async -> Result<Node, RealtimeError> {
    if wanted.operation.isAbandoned { return .failure(LargeReading.abandoned) }
    do {
      // What was sequenced before may be in flight, and would be missed.
      try await queue.pass()
      let read = Operation(.get(wanted.path, wanted.query), from: .call(wanted.caller) { _ in })
      guard case .value(let node) = try await runner.read(read) else {
        return .failure(RealtimeError(.failure, "internal error"))
      }
      return .success(node)
    } catch { return .failure(RealtimeError(storeError: error)) }
  }
}
