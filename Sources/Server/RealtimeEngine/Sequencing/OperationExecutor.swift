// Executes operations of one database in the store's sequencer. It owns the in-memory state that batches change:
// sessions, open listens, cached subtrees, generations of subtrees, and windows that are updated from rows.
//
// Invariants
//   1. Batches execute one at a time, on durable plus in-flight rows. The executor only returns their
//      results; the batch loop publishes them once the rows are durable.
//   2. A failed operation changes nothing, and its only result is the error.
//   3. A batch whose commit failed leaves nothing in memory: its journal (the undo log) rolls sessions back, and the
//      cache is emptied, before anything else executes.

import Access
import OrderedStore
import RealtimeModel

/// The result of one batch.
struct BatchResult: Sendable {
  var steps: [FanOutStep]
  /// The operations that left the batch, deferred or blocked, in batch order.
  var deferred: [RealtimeOperation] = []
  /// The operations that the batch executed and answered.
  var executed: [RealtimeOperation] = []
  /// Whether the batch left rows for the cleaner to remove.
  var hasGarbage = false
}

/// Executes the batches of one database, and owns the in-memory state that they change.
///
/// `@unchecked Sendable`: only batches, which the store executes one at a time, and the batch loop between
/// them access the state.
final class OperationExecutor: @unchecked Sendable {
  let policies: PolicySlot<RealtimeAccess>
  /// The clock in milliseconds since the Unix epoch.
  let now: @Sendable () -> Int64
  let limits: RealtimeLimits
  let rules: RulesCache
  let revocations: RevocationCheck
  let generations: GenerationState
  let orders = ListenedOrders()
  let windows = WindowedLocations()
  let openListens = OpenListens()
  let expiries: SessionExpiries
  let canaryLog: CanaryLog
  /// Whether an operation that decides open listens (`decideListens`) is requested and has not begun.
  var hasRequestedDecisions = false
  /// Receives the events of index builds and of windows that are updated from rows, inside the batch that causes them.
  let events: ExecutorEvents
  /// Whether the next write checks for an empty tree: see ``BatchExecution/markIfEmpty()``.
  var mustMarkIfEmpty = true
  private let cache: TreeCache
  private var sessions: [String: ConnectionState] = [:]
  /// The last batch, if its commit may have been rejected after its execution: see ``BatchWriter``.
  private var unconfirmed: (version: Version, journal: SessionJournal)?

  init(
    policies: PolicySlot<RealtimeAccess>, rules: RulesCache = RulesCache(),
    revocations: RevocationCheck = RevocationCheck(), limits: RealtimeLimits, cacheBytes: Int,
    staging: StagingLimits = .standard, events: ExecutorEvents = ExecutorEvents(),
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.events = events
    self.policies = policies
    self.rules = rules
    self.revocations = revocations
    self.now = now
    expiries = SessionExpiries(scheduled: events.expiryScheduled)
    canaryLog = CanaryLog(report: events.canaryDiffers)
    generations = GenerationState(staging)
    self.limits = limits
    cache = TreeCache(budget: cacheBytes)
  }

  /// Executes operations in order as one batch, and logs their changes.
  ///
  /// - Parameter mayDefer: whether operations that need slow work may leave the batch.
  /// - Throws: errors of the store, which fail the complete batch. The executor's state is then unchanged.
  func run(
    _ operations: [RealtimeOperation], in writer: any SequencedTransaction, _ journal: SessionJournal,
    mayDefer: Bool
  ) throws -> BatchResult {
    var deferred: Set<Int> = []
    var result = try run(in: writer, journal, mayDefer: mayDefer) { batch in
      batch.maximumTimesSkipped = operations.lazy.filter(\.isThrottled).map(\.timesSkipped).max() ?? 0
      for (position, operation) in operations.enumerated() {
        let before = batch.deferred.count
        try batch.run(operation)
        if batch.deferred.count > before { deferred.insert(position) }
      }
    }
    result.executed =
      deferred.isEmpty
      ? operations : operations.indices.filter { !deferred.contains($0) }.map { operations[$0] }
    precondition(
      result.executed.count + result.deferred.count == operations.count,
      "invariant: a batch executes or defers each operation once")
    return result
  }

  /// Runs work as one batch, and logs its changes.
  func run(
    in writer: any SequencedTransaction, _ journal: SessionJournal, mayDefer: Bool = false,
    _ work: (BatchExecution) throws -> Void
  ) throws -> BatchResult {
    try confirmLast(in: writer)
    let writer = BatchWriter(writer, generations, journal)
    let batch = BatchExecution(
      tree: Tree(view: writer, cache: cache, limits: limits), writer: writer,
      now: Int64(writer.commitVersion.microseconds / 1000), executor: self, journal: journal,
      mayDefer: mayDefer)
    do {
      try batch.authorization.beginBatch()
      try work(batch)
      batch.authorization.endBatch()
      try batch.log()
      unconfirmed = try writer.mark() ? (writer.commitVersion, journal) : nil
    } catch {
      rollBack([journal])
      throw error
    }
    return BatchResult(steps: batch.steps, deferred: batch.deferred, hasGarbage: writer.hasGarbage)
  }

  /// Checks whether the last batch was committed, and rolls it back if not.
  private func confirmLast(in view: any ReadView) throws {
    guard let last = unconfirmed else { return }
    if try view.get(RowKeys.mark)?.writtenAt != last.version { rollBack([last.journal]) }
    unconfirmed = nil
  }

  // MARK: Alongside the sequencer

  /// Executes a read outside any connection, on durable rows. It uses only the executor's policies and limits, so it
  /// may run concurrently with batches.
  ///
  /// - Returns: no steps if the read is too large for one call of the store.
  func read(_ operation: RealtimeOperation, in view: any ReadView) throws -> [FanOutStep] {
    let batch = try readOnly(view, mayDefer: true)
    try batch.run(operation)
    return batch.steps
  }

  /// Checks that a caller may read a location.
  /// - Throws: ``RealtimeError``, or an error of the view.
  func mayRead(_ path: Path, _ caller: Principal, _ query: QuerySpec = .default, in view: any ReadView) throws
  {
    let batch = try readOnly(view)
    if caller.hasExpired(at: batch.clock) { throw RealtimeError.expiredToken }
    try batch.authorization.mayRead(path, query, caller)
  }

  /// Decides a write on durable rows. Like ``read(_:in:)``, it may run concurrently with batches.
  ///
  /// - Parameter checkRunning: called repeatedly. It throws once the server shuts down, which ends the decision.
  func decide(
    _ write: WriteDecision, in view: any ReadView, _ changes: SequencedChanges,
    checkRunning: @escaping () throws -> Void
  ) throws -> DecidedWrite {
    let batch = try readOnly(view)
    batch.decisionCount = write.decisionCount
    return try batch.authorization.decided(write, changes, checkRunning: checkRunning)
  }

  // MARK: Without a writer

  /// Executes operations while the store cannot write: reads succeed, writes fail with the store's error.
  ///
  /// - Parameter journal: rolled back first, because the store may call this again for the same read.
  func run(
    _ operations: [RealtimeOperation], reading view: any ReadView, failure: RealtimeError,
    _ journal: SessionJournal
  ) throws -> [FanOutStep] {
    journal.rollBack()
    let batch = try readOnly(view, journal, failure: failure)
    try batch.authorization.beginBatch()
    for operation in operations { try batch.run(operation) }
    batch.authorization.endBatch()
    return batch.steps
  }

  /// Executes one operation on a database without rows. Returns nil for a permitted write, because it needs
  /// rows.
  func attempt(_ operation: RealtimeOperation, on view: any ReadView) throws -> [FanOutStep]? {
    let journal = SessionJournal()
    let batch = try readOnly(view, journal)
    try batch.authorization.beginBatch()
    try batch.run(operation)
    batch.authorization.endBatch()
    guard batch.missedWriter else { return batch.steps }
    journal.rollBack()
    return nil
  }

  private func readOnly(
    _ view: any ReadView, _ journal: SessionJournal = SessionJournal(), mayDefer: Bool = false,
    failure: RealtimeError? = nil
  ) throws -> BatchExecution {
    BatchExecution(
      tree: Tree(view: try generations.durable.view(view), cache: nil, limits: limits), writer: nil,
      now: now(), executor: self, journal: journal, mayDefer: mayDefer, failure: failure)
  }

  // MARK: State

  /// Rolls back batches whose commits failed, given from first to last. No other batch may be executing.
  func rollBack(_ journals: [SessionJournal]) {
    for journal in journals.reversed() { journal.rollBack() }
    cache.removeAll()
    openListens.invalidateAll()
    if openListens.undecidedCount > 0 { requestDecisions() }
  }

  /// Requests an operation that decides some open listens.
  func requestDecisions() {
    guard !hasRequestedDecisions else { return }
    hasRequestedDecisions = true
    events.listensUndecided()
  }

  /// The background work in progress that every write has to notify.
  var observers: ChangeObservers { cache.observers }

  /// Adds the session of a connection. Returns false if it was added before.
  func register(_ connection: ConnectionState, _ journal: SessionJournal) -> Bool {
    guard sessions[connection.name] !== connection else { return false }
    sessions[connection.name] = connection
    journal.record { self.sessions[connection.name] = nil }
    expiries.add(connection)
    return true
  }

  func unregister(_ session: String, _ journal: SessionJournal) -> ConnectionState? {
    guard let connection = sessions.removeValue(forKey: session) else { return nil }
    journal.record { self.sessions[session] = connection }
    return connection
  }
}

/// Callbacks for work that follows from a batch, called inside the batch.
struct ExecutorEvents: Sendable {
  /// Called when index rows have to be built.
  var indexesPending: @Sendable () -> Void = {}
  /// Called when an index build is complete, or the rules have changed.
  var indexesChanged: @Sendable () -> Void = {}
  /// Called when an operation that decides some open listens has to follow.
  var listensUndecided: @Sendable () -> Void = {}
  /// Called with the earliest expiry of a caller, in seconds since 1970, when it has changed.
  var expiryScheduled: @Sendable (_ seconds: Int64) -> Void = { _ in }
  /// Called when the onDisconnect writes of an ended session have to wait for rules.
  var sessionWaits: @Sendable () -> Void = {}
  /// Called with the number of onDisconnect operations of an ended session that were dropped without a decision: the
  /// decisions about earlier, conflicting operations used up the allowed work. The batch may still fail.
  var operationsDropped: @Sendable (_ count: Int) -> Void = { _ in }
  /// Called when enforced rules were stored. The batch may still fail.
  var rulesChanged: @Sendable () -> Void = {}
  /// Called with a report about a decision of the canary ruleset, which is only compared with the rules in force, that
  /// differs from the decision in force. Called on any thread.
  var canaryDiffers: @Sendable (String) -> Void = { _ in }
  /// Called when a location's windows can no longer be updated from rows, so that its complete value has to
  /// be read.
  var rowWindowsEnded: @Sendable (Path) -> Void = { _ in }
}
