// Takes batches through the store: one commit a batch, sequenced while those before it are being synced.

import Locking
import OrderedStore
import RealtimeModel

/// Runs batches.
struct BatchRunner: Sendable {
  let rows: DatabaseRows
  let sequencer: Sequencer
  /// Where large values are put together.
  let threads: ThreadPool
  /// Told once the database has come into being.
  let created: @Sendable () -> Void
  /// Told what an operator must know.
  let report: @Sendable (String) -> Void

  /// The rows, once there are any.
  private var store: any OrderedDatabase {
    get throws {
      guard let store = rows.current else { throw StoreError.unavailable("the database has no rows yet") }
      return store
    }
  }

  /// Brings the database into being, if it is not: the only way to, since the engine keeps it from then on.
  func create() async throws -> any OrderedDatabase {
    if let store = rows.current { return store }
    let store = try await rows.create()
    created()
    return store
  }

  /// Runs operations on a database that nobody has written to, up to the first that is allowed to write: for that the
  /// database is made. What they leave, and the operations that are still to be run.
  func begin(_ batch: [Operation]) async -> (steps: [FanOutStep], rest: [Operation]) {
    var steps: [FanOutStep] = []
    for (index, operation) in batch.enumerated() {
      do {
        if let done = try sequencer.attempt(operation, on: rows.emptyView) {
          steps += done
          continue
        }
        _ = try await create()
        return (steps, Array(batch[index...]))
      } catch {
        steps.append(.answer(operation.origin, .failure(RealtimeError(storeError: error))))
      }
    }
    return (steps, [])
  }

  /// Asks the store to run a batch. The next one may be asked for once `sequenced` of this one is known.
  ///
  /// - Parameter ended: called once when the commit is durable or has failed.
  func start(_ batch: [Operation], ended: @escaping @Sendable (_ hasFailed: Bool) -> Void) -> Flight {
    let flight = Flight(batch)
    Task {
      let sequencer = sequencer
      do {
        let committed = try await store.execute(validating: nil) { writer in
          let pass = try sequencer.run(flight.batch, in: writer, flight.journal, mayHold: true)
          flight.sequenced.resolve(pass)
          return pass.steps
        }
        flight.finish(.success(committed.result))
        ended(false)
      } catch {
        flight.finish(.failure(error))
        ended(true)
      }
    }
    return flight
  }

  /// Sees to flights that the store has failed, and those after them; no body may be running. Every operation in them
  /// gets its steps, in order.
  func recover(_ flights: [Flight]) async {
    var failures: [(any Error)?] = []
    for flight in flights {
      if case .failure(let error) = await flight.outcome.value() {
        failures.append(error)
      } else {
        failures.append(nil)
      }
    }
    let failed = zip(flights, failures).filter { $0.1 != nil }
    sequencer.takeBack(failed.map(\.0.journal))
    for (flight, error) in failed {
      guard let error else { continue }
      let ended = await flight.sequenced.value()
      if let pass = ended {
        // What was put off comes later, on its own.
        flight.steps.resolve(await answer(pass.executed, afterEnd: error))
      } else {
        flight.steps.resolve(await again(flight.batch, after: error))
      }
    }
  }

  /// Answers a batch whose body ended and whose commit failed all the same; others may stand on the same state since.
  private func answer(_ batch: [Operation], afterEnd error: any Error) async -> [FanOutStep] {
    if error.isUnavailable { return await answer(batch, with: RealtimeError(storeError: error)) }
    var steps: [FanOutStep] = []
    for operation in batch {
      if operation.endsSession {
        steps += await run([operation])
      } else {
        steps.append(.answer(operation.origin, .failure(RealtimeError(storeError: error))))
      }
    }
    return steps
  }

  /// Runs a batch to its end, with nothing else in flight.
  private func run(_ batch: [Operation]) async -> [FanOutStep] {
    let sequencer = sequencer
    let journal = SessionJournal()
    do {
      return try await store.execute(validating: nil) { writer in
        try sequencer.run(batch, in: writer, journal, mayHold: false).steps
      }.result
    } catch {
      sequencer.takeBack([journal])
      return await again(batch, after: error)
    }
  }

  /// Finds another way for a batch that the store refused.
  private func again(_ batch: [Operation], after error: any Error) async -> [FanOutStep] {
    if batch.count > 1, !error.isUnavailable {
      // One of them was too much for a commit: halves, until that one fails alone.
      let half = batch.count / 2
      return await run(Array(batch[..<half])) + run(Array(batch[half...]))
    }
    if let operation = batch.first, batch.count == 1, error.isLimit, let session = operation.endedSession {
      do {
        return try await fireInSteps(session) { try $0.run(operation) }
      } catch { return await answer(batch, with: RealtimeError(storeError: error)) }
    }
    return await answer(batch, with: RealtimeError(storeError: error))
  }

  /// Reads go on while nothing can be written; writes are answered with the error.
  private func answer(_ batch: [Operation], with error: RealtimeError) async -> [FanOutStep] {
    let sequencer = sequencer
    let journal = SessionJournal()
    do {
      return try await store.read(at: nil) {
        try sequencer.run(batch, reading: $0, failure: error, journal)
      }
    } catch let readError {
      sequencer.takeBack([journal])
      let failure = RealtimeError(storeError: readError)
      return batch.map { .answer($0.origin, .failure(failure)) }
    }
  }

  /// Reads a location within limits.
  func node(at path: Path, _ caller: Caller, _ limits: RealtimeLimits) async throws -> Node {
    let sequencer = sequencer
    guard let store = rows.current else {
      try sequencer.mayRead(path, caller, in: rows.emptyView)
      return .empty
    }
    return try await store.read(at: nil) { view in
      try sequencer.mayRead(path, caller, in: view)
      let view = try sequencer.generations.durable.view(view)
      return try Tree(view: view, cache: nil, limits: limits).node(at: path)
    }
  }

  /// Finds out whether a location is larger than one answer may be, on a state that is held.
  /// - Throws: ``RealtimeError/tooBig``; what the store throws; `CancellationError` once nobody waits any more.
  func measure(_ path: Path, in held: any PinnedView) async throws {
    let generations = sequencer.generations
    var measure = SizeMeasure(path)
    while !measure.isOver {
      try Task.checkCancellation()
      measure = try await held.read { [measure] base in
        var measure = measure
        try measure.go(on: generations.durable.view(base), generations.limits)
        return measure
      }
      guard measure.size <= sequencer.limits.responseBytes else { throw RealtimeError.tooBig }
    }
  }

  /// Decides whether a caller may read a location, on a state that is held.
  func mayRead(_ path: Path, _ caller: Caller, in held: any PinnedView) async throws {
    let sequencer = sequencer
    try await held.read { try sequencer.mayRead(path, caller, in: $0) }
  }

  /// Carries out a read on the newest durable state.
  ///
  /// - Parameter deadline: when to give up; nil for never.
  func read(
    _ operation: Operation, until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> Operation.CallResult {
    let sequencer = sequencer
    let steps: [FanOutStep]
    do {
      if let store = rows.current {
        steps = try await store.read(at: nil) { view in
          let timed = deadline.map { DeadlineView(base: view, deadline: $0) }
          return try sequencer.read(operation, in: timed ?? view)
        }
      } else {
        steps = try sequencer.read(operation, in: rows.emptyView)
      }
    } catch { throw RealtimeError(storeError: error) }
    if case .answer(_, let answer)? = steps.first { return try answer.callResult.get() }
    guard case .get(let path, let query) = operation.action else {
      throw RealtimeError(.failure, "internal error")
    }
    do {
      return .value(try await large(path, query, operation.caller, until: deadline))
    } catch { throw RealtimeError(storeError: error) }
  }

  /// Reads a location that is too large for one look at the store, all of one state.
  private func large(
    _ path: Path, _ query: QuerySpec, _ caller: Caller, until deadline: ContinuousClock.Instant?
  ) async throws -> Node {
    let sequencer = sequencer
    let held = try store.pinView()
    try await held.read { try sequencer.mayRead(path, caller, query, in: $0) }
    let reader = SubtreeReader(
      path: path, held: held, limits: sequencer.limits, staging: sequencer.generations.limits,
      threads: threads)
    let node = try await reader.read {
      try Task.checkCancellation()
      if let deadline, ContinuousClock.now >= deadline { throw RealtimeError.timedOut }
    }
    return query.showsAll ? node : await threads.run { node.window(query) }
  }

  /// Fills in beforehand what is large of a write.
  func stage(_ request: WriteRequest, _ cleaner: Cleaner) async -> Result<StagedWrite, RealtimeError> {
    do {
      return .success(try await StagedWrite.stage(request, in: store, cleaner))
    } catch { return .failure(RealtimeError(storeError: error)) }
  }

  /// Reads what an imported value holds where somebody listens; the operation that goes on with it.
  func read(
    _ operation: Operation, _ imported: ImportedTree, _ path: Path, _ places: [Path]
  ) async -> Operation {
    let imported = await imported.reading(places, of: path, sequencer.limits)
    var next = Operation(.place(path, imported), from: operation.origin)
    next.database = operation.database
    return next
  }

  // MARK: Sessions

  /// Takes over from the rows what the sequencer has to know of them, before anything is carried out.
  func load() async throws(RealtimeError) {
    guard rows.current != nil else { return }
    let sequencer = sequencer
    do {
      try await store.read(at: nil) { try sequencer.generations.load($0) }
    } catch { throw RealtimeError(storeError: error) }
  }

  /// Ends the sessions that a process before this one left behind, before anyone is connected. Many share a commit; if
  /// that is too much for one they get their own. One whose end cannot be written at all keeps its rows until the next
  /// start, and holds up nobody.
  func fireLeftovers() async throws(RealtimeError) {
    guard rows.current != nil else { return }
    do {
      var sessions = try await store.read(at: nil) { try SequencedBody.sessions(in: $0) }[...]
      while !sessions.isEmpty {
        let some = Array(sessions.prefix(256))
        sessions = sessions.dropFirst(some.count)
        do {
          _ = try await run { try $0.fire(some) }
        } catch let error where !error.isUnavailable {
          for session in some { try await fireLeftover(session) }
        }
      }
    } catch { throw RealtimeError(storeError: error) }
  }

  private func fireLeftover(_ session: String) async throws {
    do {
      do {
        _ = try await run { try $0.fire([session]) }
      } catch let error where error.isLimit {
        _ = try await fireInSteps(session) { try $0.fire([session]) }
      }
    } catch let error where !error.isUnavailable {
      report("\(rows.name): what a session registered for its end cannot be written: \(error)")
    }
  }

  /// Ends a session whose end replaces more than one commit can.
  ///
  /// - Parameter last: what ends it, once there is room.
  private func fireInSteps(
    _ session: String, _ last: @escaping @Sendable (inout SequencedBody) throws -> Void
  ) async throws -> [FanOutStep] {
    var steps = try await run { try $0.settle(session) }.steps
    var hasMore = true
    while hasMore {
      let more = Guarded(false)
      steps += try await run { body in
        let found = try body.makeRoom(for: session)
        more.withLock { $0 = found }
      }.steps
      hasMore = more.withLock { $0 }
    }
    return steps + (try await run(last).steps)
  }

  private func run(
    _ work: @escaping @Sendable (inout SequencedBody) throws -> Void
  ) async throws -> Sequencer.Pass {
    let sequencer = sequencer
    let journal = SessionJournal()
    do {
      return try await store.execute(validating: nil) { try sequencer.run(in: $0, journal, work) }.result
    } catch {
      sequencer.takeBack([journal])
      throw error
    }
  }
}

extension Operation {
  /// The session that the operation ends, if it does.
  fileprivate var endedSession: String? {
    switch action {
    case .close: connection?.name
    case .takeOver(let session, _): session
    default: nil
    }
  }
}

extension Error {
  fileprivate var isUnavailable: Bool { (self as? StoreError)?.code == .unavailable }
  fileprivate var isLimit: Bool { (self as? StoreError)?.code == .limitExceeded }
}

extension RealtimeError {
  /// What a caller is told of a failure of the store.
  init(storeError error: any Error) {
    switch error {
    case let error as RealtimeError: self = error
    case let error as StoreError where error.code == .limitExceeded: self = .writeTooBig
    case let error as StoreError: self.init(.unavailable, error.message)
    default: self.init(.failure, "internal error")
    }
  }
}
