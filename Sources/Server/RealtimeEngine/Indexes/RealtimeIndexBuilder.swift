// Builds the indexes of one database in the background. A task submits one step after another as an
// operation, until no build is pending.

import Access
import Locking
import OrderedStore
import RealtimeModel

/// The background task that builds indexes.
final class RealtimeIndexBuilder: Sendable {
  private let wakes: AsyncStream<Void>.Continuation
  private let finished = Guarded(0)

  /// The number of runs that ended because no build was pending.
  var completedRuns: Int { finished.withLock { $0 } }

  init(_ queue: OperationQueue) {
    let (stream, wakes) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.wakes = wakes
    Task { [finished] in
      for await _ in stream {
        while await RealtimeIndexBuilder.step(queue) {}
        finished.withLock { $0 += 1 }
      }
    }
  }

  /// Starts a run.
  func wake() { wakes.yield() }

  /// Stops after the current step.
  func stop() { wakes.finish() }

  /// Performs one step. Returns whether another is needed.
  private static func step(_ queue: OperationQueue) async -> Bool {
    let result: Result<RealtimeOperation.CallResult, RealtimeError>? = await withCheckedContinuation {
      continuation in
      let operation = RealtimeOperation(
        .buildIndexes, from: .call(.administrator) { continuation.resume(returning: $0) })
      if !queue.append(operation) { continuation.resume(returning: nil) }
    }
    switch result {
    case .success(.count(let remaining)): return remaining > 0
    case .success, nil: return false
    case .failure:
      // The store cannot write now. The pending builds remain recorded in their row.
      try? await Task.sleep(for: .seconds(1))
      return true
    }
  }
}
