// The task that has index rows built: it asks for one step after another, each an operation like any other, until there
// is nothing left to build.

import Locking
import OrderedStore
import RealtimeModel

/// The building of one database's indexes.
final class IndexBuilder: Sendable {
  private let wakes: AsyncStream<Void>.Continuation
  private let finished = Guarded(0)

  /// How often it has looked and found nothing more to build.
  var looks: Int { finished.withLock { $0 } }

  init(_ queue: OperationQueue) {
    let (stream, wakes) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.wakes = wakes
    Task { [finished] in
      for await _ in stream {
        while await IndexBuilder.step(queue) {}
        finished.withLock { $0 += 1 }
      }
    }
  }

  /// Has it looked whether there is something to build.
  func wake() { wakes.yield() }

  /// Ends the task after the step that is under way.
  func stop() { wakes.finish() }

  /// Takes one step; whether there may be another.
  private static func step(_ queue: OperationQueue) async -> Bool {
    let result: Result<Operation.CallResult, RealtimeError>? = await withCheckedContinuation { continuation in
      let operation = Operation(
        .buildIndexes, from: .call(.administrator) { continuation.resume(returning: $0) })
      if !queue.append(operation) { continuation.resume(returning: nil) }
    }
    switch result {
    case .success(.count(let left)): return left > 0
    case .success, nil: return false
    case .failure:
      // The store cannot write now. Nothing is lost: the row that says what is to be built stands.
      try? await Task.sleep(for: .seconds(1))
      return true
    }
  }
}
