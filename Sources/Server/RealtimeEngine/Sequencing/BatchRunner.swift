// Runs each batch as one commit of the store, and recovers the batches in flight when a commit fails.
//
// Invariant: every operation of a batch gets its steps (its results for the fan-out stage) exactly once: from its
// commit, from a later attempt, or as a failure.

import Locking
import OrderedStore
import RealtimeModel

/// A batch between the request for its commit and the end of that commit.
final class BatchInFlight: Sendable {
  /// The position of the batch: 1, 2, …
  let number: Int
  let operations: [RealtimeOperation]
  let journal = SessionJournal()
  /// Resolved when the next batch may be sequenced. The value is the batch's result, or nil if its execution
  /// failed.
  let sequenced = Promise<BatchResult?>()
  /// Resolved when the commit is durable or has failed.
  let outcome = Promise<Result<[FanOutStep], any Error>>()
  /// The steps for the fan-out stage. If the commit failed they are resolved after `outcome`, by the
  /// recovery.
  let steps = Promise<[FanOutStep]>()

  init(_ number: Int, _ operations: [RealtimeOperation]) {
    self.number = number
    self.operations = operations
  }

  func finish(_ result: Result<[FanOutStep], any Error>) {
    outcome.resolveOnce(result)
    if case .success(let steps) = result { self.steps.resolveOnce(steps) }
    sequenced.resolve(nil)
  }
}

/// Commits batches, and retries or fails their operations.
struct BatchRunner: Sendable {
  let rows: DatabaseRows
  let executor: OperationExecutor
  /// Threads that all namespaces share, for work on large values.
  let threads: ThreadPool
  /// Bounds the decisions about writes that all namespaces make in the background at a time.
  var decisionLimit = ConcurrencyLimit(WriteDecision.maximumConcurrency)
  /// Called once, when the first write has created the database.
  let created: @Sendable () -> Void
  /// Reports events that an operator must know.
  let report: @Sendable (String) -> Void

  /// The database's rows.
  /// - Throws: ``StoreError`` if the database has no rows yet.
  var store: any OrderedDatabase {
    get throws {
      guard let store = rows.current else { throw StoreError.unavailable("the database has no rows yet") }
      return store
    }
  }

  /// Creates the database's rows if there are none. No other code creates them, so `created` always informs
  /// the engine, which keeps the database open from then on.
  func create() async throws -> any OrderedDatabase {
    if let store = rows.current { return store }
    let store = try await rows.create()
    created()
    return store
  }

  /// Executes operations on a database without rows, up to the first permitted write. Then creates the rows,
  /// which that write needs.
  ///
  /// - Returns: the steps of the executed operations, and the remaining operations.
  func runWithoutRows(
    _ operations: [RealtimeOperation]
  ) async -> (steps: [FanOutStep], remaining: [RealtimeOperation]) {
    var steps: [FanOutStep] = []
    for (index, operation) in operations.enumerated() {
      do {
        if let done = try executor.attempt(operation, on: rows.emptyView) {
          steps += done
          continue
        }
        _ = try await create()
        return (steps, Array(operations[index...]))
      } catch {
        steps.append(.answer(operation.origin, .failure(RealtimeError(storeError: error))))
      }
    }
    return (steps, [])
  }

  /// Asks the store to run a batch. The next batch may start once `sequenced` of this one is resolved.
  ///
  /// - Parameter ended: called once, when the commit is durable or has failed.
  func start(
    _ number: Int, _ operations: [RealtimeOperation],
    ended: @escaping @Sendable (_ hasFailed: Bool) -> Void
  ) -> BatchInFlight {
    let batch = BatchInFlight(number, operations)
    Task {
      let executor = executor
      do {
        let committed = try await store.execute(validating: nil) { writer in
          let result = try executor.run(batch.operations, in: writer, batch.journal, mayDefer: true)
          batch.sequenced.resolve(result)
          return result.steps
        }
        batch.finish(.success(committed.result))
        ended(false)
      } catch {
        batch.finish(.failure(error))
        ended(true)
      }
    }
    return batch
  }

  // MARK: Recovery

  /// Rolls back those of the batches that failed. Then resolves the steps of each failed batch, in order, by running
  /// its operations again or answering them with the error. No batch may be executing.
  func recover(_ batches: [BatchInFlight]) async {
    var failed: [(batch: BatchInFlight, error: any Error)] = []
    for batch in batches {
      if case .failure(let error) = await batch.outcome.value() { failed.append((batch, error)) }
    }
    executor.rollBack(failed.map(\.batch.journal))
    for (batch, error) in failed {
      if let result = await batch.sequenced.value() {
        // Operations that the batch deferred are not answered here: their deferrals continue.
        batch.steps.resolveOnce(await stepsAfterFailedCommit(of: result.executed, error))
      } else {
        batch.steps.resolveOnce(await runAgain(batch.operations, after: error))
      }
    }
  }

  /// Answers a batch whose commit failed after its execution. Its writes do not run again, because later
  /// batches may have executed on their results. Only operations that end sessions run again.
  private func stepsAfterFailedCommit(
    of operations: [RealtimeOperation], _ error: any Error
  ) async -> [FanOutStep] {
    if error.isUnavailable {
      return await stepsWithoutWriter(of: operations, RealtimeError(storeError: error))
    }
    var steps: [FanOutStep] = []
    for operation in operations {
      if operation.endsSession {
        steps += await run([operation])
      } else {
        steps.append(.answer(operation.origin, .failure(RealtimeError(storeError: error))))
      }
    }
    return steps
  }

  /// Runs a batch to its end while no other batch is in flight.
  private func run(_ operations: [RealtimeOperation]) async -> [FanOutStep] {
    let executor = executor
    let journal = SessionJournal()
    do {
      return try await store.execute(validating: nil) { writer in
        try executor.run(operations, in: writer, journal, mayDefer: false).steps
      }.result
    } catch {
      executor.rollBack([journal])
      return await runAgain(operations, after: error)
    }
  }

  /// Runs the operations of a failed batch again. Several operations run as two separate batches, each with half of
  /// them. A session's end that exceeds the limit of a commit runs in several commits. Any other single operation is
  /// answered without a writer: a read succeeds, a write fails.
  private func runAgain(_ operations: [RealtimeOperation], after error: any Error) async -> [FanOutStep] {
    if operations.count > 1, !error.isUnavailable {
      // One operation may exceed the limit of a commit. Halving the batch isolates that operation.
      let half = operations.count / 2
      return await run(Array(operations[..<half])) + run(Array(operations[half...]))
    }
    if let operation = operations.first, operations.count == 1, error.isLimit,
      let session = operation.endedSession
    {
      do {
        return try await endInSteps(session) { try $0.run(operation) }
      } catch { return await stepsWithoutWriter(of: operations, RealtimeError(storeError: error)) }
    }
    return await stepsWithoutWriter(of: operations, RealtimeError(storeError: error))
  }

  /// Answers operations without a writer: reads succeed, writes fail with the error.
  private func stepsWithoutWriter(
    of operations: [RealtimeOperation], _ error: RealtimeError
  ) async -> [FanOutStep] {
    let executor = executor
    let journal = SessionJournal()
    do {
      return try await store.read(at: nil) {
        try executor.run(operations, reading: $0, failure: error, journal)
      }
    } catch let readError {
      executor.rollBack([journal])
      let failure = RealtimeError(storeError: readError)
      return operations.map { .answer($0.origin, .failure(failure)) }
    }
  }

  // MARK: Sessions

  /// Loads the executor's in-memory state from the rows, before the first operation.
  func load() async throws(RealtimeError) {
    let executor = executor
    guard rows.current != nil else {
      do { _ = try executor.rules.rules(in: rows.emptyView) } catch { throw RealtimeError(storeError: error) }
      return
    }
    do {
      try await store.read(at: nil) { view in
        try executor.generations.load(view)
        _ = try executor.rules.rules(in: view)
      }
    } catch { throw RealtimeError(storeError: error) }
  }

  /// Ends the sessions that an earlier process left in the rows, before any client connects.
  ///
  /// Up to 256 sessions share a commit. If that commit fails, each session gets a separate commit. A session
  /// whose end cannot be written keeps its rows until the next start, and does not delay the other sessions.
  func endLeftoverSessions() async throws(RealtimeError) {
    guard rows.current != nil else { return }
    do {
      var sessions = try await store.read(at: nil) { try DisconnectRows.sessions(in: $0) }[...]
      while !sessions.isEmpty {
        let chunk = Array(sessions.prefix(256))
        sessions = sessions.dropFirst(chunk.count)
        try await replaceRevokedCallers(of: chunk)
        do {
          _ = try await run { try $0.disconnects.performWrites(of: chunk) }
        } catch let error where !error.isUnavailable {
          for session in chunk { try await endLeftoverSession(session) }
        }
      }
    } catch { throw RealtimeError(storeError: error) }
  }

  /// Replaces the stored caller of each session by nobody if the caller's credentials are revoked.
  private func replaceRevokedCallers(of sessions: [String]) async throws {
    let callers = try await store.read(at: nil) { view in
      try sessions.map { ($0, try DisconnectRows(session: $0, in: view).caller) }
    }
    var revoked: [String] = []
    for (session, caller) in callers where try await executor.revocations.isStoredRevoked(caller) {
      revoked.append(session)
    }
    guard !revoked.isEmpty else { return }
    _ = try await run { [revoked] in try $0.disconnects.replaceCallersByNobody(of: revoked) }
  }

  private func endLeftoverSession(_ session: String) async throws {
    do {
      do {
        _ = try await run { try $0.disconnects.performWrites(of: [session]) }
      } catch let error where error.isLimit {
        _ = try await endInSteps(session) { try $0.disconnects.performWrites(of: [session]) }
      }
    } catch let error where !error.isUnavailable {
      report("\(rows.name): the onDisconnect writes of a session cannot be written: \(error)")
    }
  }

  /// Ends a session whose onDisconnect writes replace more rows than one commit can clear.
  ///
  /// - Parameter last: the last commit, which ends the session. It runs once the remaining rows fit into one
  ///   commit.
  private func endInSteps(
    _ session: String, _ last: @escaping @Sendable (BatchExecution) throws -> Void
  ) async throws -> [FanOutStep] {
    var steps = try await run { try $0.disconnects.storePermittedValues(of: session) }.steps
    var hasMore = true
    while hasMore {
      let more = Guarded(false)
      steps += try await run { batch in
        let found = try batch.disconnects.clearChunk(for: session)
        more.withLock { $0 = found }
      }.steps
      hasMore = more.withLock { $0 }
    }
    return steps + (try await run(last).steps)
  }

  private func run(
    _ work: @escaping @Sendable (BatchExecution) throws -> Void
  ) async throws -> BatchResult {
    let executor = executor
    let journal = SessionJournal()
    do {
      return try await store.execute(validating: nil) { try executor.run(in: $0, journal, work) }.result
    } catch {
      executor.rollBack([journal])
      throw error
    }
  }
}

extension Error {
  fileprivate var isUnavailable: Bool { (self as? StoreError)?.code == .unavailable }
  fileprivate var isLimit: Bool { (self as? StoreError)?.code == .limitExceeded }
}

extension RealtimeError {
  /// The error that a client receives for a failure of the store.
  init(storeError error: any Error) {
    switch error {
    case let error as RealtimeError: self = error
    case let error as StoreError where error.code == .limitExceeded: self = .writeTooBig
    case let error as StoreError: self.init(.unavailable, error.message)
    default: self.init(.failure, "internal error")
    }
  }
}
