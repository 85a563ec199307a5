// Performs reads that no connection submitted, such as those of REST requests. They read durable rows off the
// sequencer, so that a large read does not delay other operations.

import Access
import OrderedStore
import RealtimeModel

extension BatchRunner {
  /// Reads a location within limits.
  func node(at path: Path, _ caller: Principal, _ limits: RealtimeLimits) async throws -> Node {
    let executor = executor
    guard let store = rows.current else {
      try executor.mayRead(path, caller, in: rows.emptyView)
      return .empty
    }
    return try await store.read(at: nil) { view in
      try executor.mayRead(path, caller, in: view)
      let view = try executor.generations.durable.view(view)
      return try Tree(view: view, cache: nil, limits: limits).node(at: path)
    }
  }

  /// Checks that a location in a pinned state (a version that the store keeps during the read) is within the size limit
  /// of an answer.
  ///
  /// - Throws: ``RealtimeError/tooBig``, an error of the store, or `CancellationError`.
  func measure(_ path: Path, in pinned: any PinnedView) async throws {
    let generations = executor.generations
    var measure = SizeMeasure(path)
    while !measure.isComplete {
      try Task.checkCancellation()
      measure = try await pinned.read { [measure] base in
        var measure = measure
        try measure.addChunk(of: generations.durable.view(base), generations.limits)
        return measure
      }
      guard measure.size <= executor.limits.responseBytes else { throw RealtimeError.tooBig }
    }
  }

  /// Checks that a caller may read a location in a pinned state.
  func mayRead(_ path: Path, _ caller: Principal, in pinned: any PinnedView) async throws {
    let executor = executor
    try await pinned.read { try executor.mayRead(path, caller, in: $0) }
  }

  /// Executes a read on the newest durable state.
  ///
  /// - Parameter deadline: the time limit; nil for none.
  func read(
    _ operation: RealtimeOperation, until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> RealtimeOperation.CallResult {
    let executor = executor
    let steps: [FanOutStep]
    do {
      if let store = rows.current {
        steps = try await store.read(at: nil) { view in
          let timed = deadline.map { DeadlineView(base: view, deadline: $0) }
          return try executor.read(operation, in: timed ?? view)
        }
      } else {
        steps = try executor.read(operation, in: rows.emptyView)
      }
    } catch { throw RealtimeError(storeError: error) }
    if case .answer(_, let answer)? = steps.first { return try answer.callResult.get() }
    // The read was deferred: its location is too large for one call of the store.
    guard case .get(let path, let query) = operation.action else {
      throw RealtimeError(.failure, "internal error")
    }
    do {
      return .value(try await readInChunks(path, query, operation.caller, until: deadline))
    } catch { throw RealtimeError(storeError: error) }
  }

  /// Reads a large location in chunks, all from one pinned state.
  private func readInChunks(
    _ path: Path, _ query: QuerySpec, _ caller: Principal, until deadline: ContinuousClock.Instant?
  ) async throws -> Node {
    let executor = executor
    let pinned = try store.pinView()
    try await pinned.read { try executor.mayRead(path, caller, query, in: $0) }
    let reader = SubtreeReader(
      path: path, pinned: pinned, limits: executor.limits, staging: executor.generations.limits,
      threads: threads)
    let node = try await reader.read {
      try Task.checkCancellation()
      if let deadline, ContinuousClock.now >= deadline { throw RealtimeError.timedOut }
    }
    return query.showsAll ? node : await threads.run { node.window(query) }
  }
}
