// Executes the operations of one batch in the store's sequencer, and collects their results as steps for the fan-out
// stage. The stage sends the results to clients once the batch is durable.
//
// The batch passes each operation to the handler of its action. It gives the handlers the tree, the access
// checks and the writer.
//
// Invariant: each operation is answered once, or deferred, or ignored because its session or connection has ended.

import Access
import OrderedStore
import RealtimeModel

/// The execution of one batch.
final class BatchExecution {
  let tree: Tree
  /// The writer of the batch; nil while the store cannot write.
  let writer: BatchWriter?
  /// The time of the batch in milliseconds since the Unix epoch: the value of its server timestamps.
  let now: Int64
  /// The clock in microseconds since the Unix epoch, with which the expiries of credentials are compared.
  let clock: Int64
  /// The policy of a database without enforced rules.
  private let defaultPolicy: PinnedPolicy<RealtimeAccess>
  let executor: OperationExecutor
  /// Whether operations may be deferred.
  let mayDefer: Bool
  /// The undo log of this batch's changes to the in-memory state.
  let journal: SessionJournal
  /// The error that writes fail with while the store cannot write.
  private let failure: RealtimeError
  /// Whether a permitted write failed because the batch has no writer.
  private(set) var missedWriter = false
  private(set) var steps: [FanOutStep] = []
  /// The operations that left the batch without an answer: deferred ones, and the requests blocked behind
  /// them.
  private(set) var deferred: [RealtimeOperation] = []
  private var deferredConnections: Set<ObjectIdentifier> = []
  private var answerCount = 0
  /// The time that throttled operations, such as reads, have taken so far in this batch.
  private var throttledTime = Duration.zero
  /// The largest number of batches that have skipped a throttled operation of this batch, until that operation
  /// executes.
  var maximumTimesSkipped = 0
  /// The work that the access policy may spend on the writes of the batch. Writes that need more are decided in the
  /// background.
  let decisionWork: DecisionWork
  /// The work that the canary ruleset, whose decisions are only compared with those in force, may spend. It is
  /// separate, so that the canary does not use up the work of the rules in force.
  private(set) lazy var canaryWork = DecisionWork(steps: executor.generations.limits.decisionSteps)
  /// The numbers of decisions about the current operation: in earlier batches, and in this batch. The coverage report of
  /// the rules does not count a decision that repeats an earlier one.
  var decisionCount = (before: 0, now: 0)
  /// Number of listens that were authorized again for changed callers.
  private(set) var reauthorizedListens = 0
  private var logged: [(Path, Node?)] = []
  /// The security rules; nil until a handler has read them.
  var cachedRules: (version: Version, rules: StoredRules)?? {
    didSet { cachedPolicy = nil }
  }
  /// The policy in force; nil until it is read, and after the rules have changed.
  private var cachedPolicy: (policy: PinnedPolicy<RealtimeAccess>, version: PolicyVersion)?
  /// The canary ruleset; nil until a handler has read it.
  var cachedCanary: CanaryRuleset??
  /// The pending index builds; nil until a handler has read them.
  var cachedBuilds: IndexBuilds?

  init(
    tree: Tree, writer: BatchWriter?, now: Int64, executor: OperationExecutor, journal: SessionJournal,
    mayDefer: Bool = false, failure: RealtimeError? = nil
  ) {
    self.tree = tree
    self.writer = writer
    self.now = now
    self.executor = executor
    clock = executor.now() * 1_000
    defaultPolicy = executor.policies.current
    self.journal = journal
    self.mayDefer = mayDefer
    decisionWork = DecisionWork(steps: executor.generations.limits.decisionSteps)
    self.failure = failure ?? RealtimeError(.unavailable, "the database cannot write now")
  }

  /// Executes one operation.
  /// - Throws: errors of the store only. Such an error fails the complete batch.
  func run(_ operation: RealtimeOperation) throws {
    // The connection may have been closed since the batch was formed.
    if operation.isAbandoned { return }
    if let connection = operation.connection {
      if deferredConnections.contains(ObjectIdentifier(connection)) {
        return deferred.append(operation.blocked)
      }
      if connection.session.hasEnded {
        guard case .close = operation.action else { return }
      }
      if executor.register(connection, journal) { try authorization.revoke(connection) }
    }
    let answersBefore = answerCount
    decisionCount = (operation.results.decisionCount, 0)
    do {
      try performUnlessSkipped(operation)
    } catch let deferral as Deferral {
      precondition(answerCount == answersBefore, "invariant: a deferred operation is not answered")
      var operation = operation
      operation.results.decisionCount = max(decisionCount.before, decisionCount.now)
      deferred.append(operation.deferred(deferral))
      if let connection = operation.connection { deferredConnections.insert(ObjectIdentifier(connection)) }
      return
    } catch let error as RealtimeError {
      answer(operation, .failure(error))
    }
    precondition(answerCount == answersBefore + 1, "invariant: each operation is answered exactly once")
  }

  /// Performs an operation. A throttled operation is deferred to the next batch if earlier throttled ones
  /// have used up the batch's time.
  ///
  /// The operation that was skipped most often always runs, and before other throttled ones, so new
  /// operations cannot overtake it forever.
  private func performUnlessSkipped(_ operation: RealtimeOperation) throws {
    guard mayDefer, operation.isThrottled else { return try perform(operation) }
    if operation.timesSkipped < maximumTimesSkipped
      || throttledTime > .zero && throttledTime >= executor.generations.limits.batchQuantum
    {
      throw Deferral.nextBatch
    }
    maximumTimesSkipped = 0
    let start = ContinuousClock.now
    defer { throttledTime += ContinuousClock.now - start }
    try perform(operation)
  }

  private func perform(_ operation: RealtimeOperation) throws {
    let caller = operation.caller
    if operation.action.needsCredentials, caller.hasExpired(at: clock) { throw RealtimeError.expiredToken }
    switch operation.action {
    case .write(let write, let hash):
      answer(operation, try writes.perform(write, ifHash: hash, for: operation))
    case .get(let path, let query): answer(operation, .value(try reads.get(path, query, for: operation)))
    case .getShallow(let path, let query):
      answer(operation, .shallow(try reads.getShallow(path, query, caller)))
    case .decideListens:
      try authorization.decideSome()
      answer(operation, .done)
    case .revoke(let connections):
      for connection in connections { try authorization.revoke(connection) }
      answer(operation, .done)
    case .estimate(let write, let isConditional, let maximum):
      let count = try reads.estimate(write, isConditional: isConditional, atMost: maximum, for: operation)
      answer(operation, .count(count))
    case .listen(let listen):
      let (connection, request) = operation.connectionAndRequest
      try listens.start(listen, of: connection, request, for: operation)
    case .unlisten(let path, let tag):
      listens.stop(ListenName(path: path, tag: tag), of: operation.connectionAndRequest.connection)
      answer(operation, .done)
    case .switchToFullValue(let path):
      try rowWindows.switchToFullValue(path, for: operation)
      answer(operation, .done)
    case .onDisconnect(let write):
      try disconnects.register(write, for: operation.connectionAndRequest.connection)
      answer(operation, .done)
    case .cancelOnDisconnect(let path):
      try disconnects.cancel(path, for: operation.connectionAndRequest.connection)
      answer(operation, .done)
    case .authenticate(let caller):
      try sessions.authenticate(operation.connectionAndRequest.connection, as: caller)
      answer(operation, .done)
    case .close:
      try sessions.end(operation.connectionAndRequest.connection)
      answer(operation, .done)
    case .takeOver(let session, let connection):
      try sessions.takeOver(session, of: connection)
      answer(operation, .done)
    case .getSetting(let setting): answer(operation, .setting(try settings.string(of: setting, for: caller)))
    case .setSetting(let setting, let string):
      try settings.set(setting, to: string, for: caller)
      answer(operation, .done)
    case .getRules: answer(operation, .rules(try settings.rules()))
    case .setRules(let rules):
      try settings.set(rules, for: caller)
      try settings.unlabelStable(unless: rules.file.text)
      answer(operation, .done)
    case .administer(_, let work):
      guard caller.isAdministrator else { throw RealtimeError.permissionDenied }
      try work(self)
      answer(operation, .done)
    case .buildIndexes: answer(operation, .count(try indexBuilds.buildNext() ? 1 : 0))
    case .installImport(let path, let imported):
      try imports.install(imported, at: path, for: operation)
      answer(operation, .written(.empty))
    case .removeEmptyGenerations:
      _ = try writer?.removeEmptyGenerations()
      answer(operation, .done)
    case .barrier: answer(operation, .done)
    }
  }

  // MARK: Policy

  /// Identifies the policy in force. It changes with the policy of the database's slot, and with the stored
  /// rules.
  struct PolicyVersion: Equatable, Sendable {
    var published: UInt64 = 0
    var rules: Version?
  }

  /// The policy in force, and its version. Rules are read from the state that the operation sees. So new rules hold
  /// from the operation that wrote them.
  func policy() throws -> (policy: PinnedPolicy<RealtimeAccess>, version: PolicyVersion) {
    if let cachedPolicy { return cachedPolicy }
    let stored = try settings.storedRules()
    var known = (policy: defaultPolicy, version: PolicyVersion(published: defaultPolicy.version))
    if let stored, let policy = stored.rules.policy {
      known.policy = PinnedPolicy(
        policy: policy, version: defaultPolicy.version, observer: defaultPolicy.observer)
      known.version.rules = stored.version
    }
    cachedPolicy = known
    return known
  }

  /// The ruleset with the label `canary`; nil without one.
  func canary() throws -> CanaryRuleset? {
    if let known = cachedCanary { return known }
    let canary = try executor.rules.canary(in: tree.view)
    cachedCanary = .some(canary)
    return canary
  }

  // MARK: Steps

  /// Adds the step that answers an operation.
  private func answer(_ operation: RealtimeOperation, _ result: OperationResult) {
    answerCount += 1
    steps.append(.answer(operation.origin, result))
  }

  /// Adds a step for the fan-out stage. The step that starts a listen also answers its operation.
  func add(_ step: FanOutStep) {
    switch step {
    case .answer: preconditionFailure("invariant: the batch answers operations, handlers return results")
    case .listen: answerCount += 1
    case .write, .fullValue, .unlisten, .authRevoked, .end: break
    }
    steps.append(step)
  }

  /// Adds the step of a write for the fan-out stage, and updates the windows (results of queries) that are kept up to
  /// date from rows.
  ///
  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another.
  ///   - replaced: the location that the write has replaced, if the changes show only parts of it.
  func notify(_ changes: [Change], replaced: Path? = nil) throws {
    try authorization.decideListens(
      affectedBy: replaced.map { [.init(path: $0, value: nil)] }
        ?? changes.map { .init(path: $0.path, value: $0.value) })
    if changes.isEmpty { return }
    assert(
      zip(changes, changes.dropFirst()).allSatisfy { $0.path < $1.path && !$0.path.contains($1.path) },
      "the changes of a write are sorted, none inside another")
    add(.write(changes, windows: try rowWindows.updateWindows(for: changes)))
  }

  /// Counts listens that are authorized again because their caller changed. Only the first connection of a
  /// batch may exceed the limit.
  ///
  /// - Throws: ``Deferral`` if the next batch has to authorize them.
  func countReauthorizedListens(_ count: Int) throws {
    if mayDefer, count > 0, reauthorizedListens > 0,
      reauthorizedListens + count > BatchExecution.maximumReauthorizedListens
    {
      throw Deferral.nextBatch
    }
    reauthorizedListens += count
  }

  /// Maximum number of listens that one batch authorizes again for changed callers.
  static let maximumReauthorizedListens = 2_048

  // MARK: Writing

  /// The writer. Handlers call this after they have checked and authorized the write.
  /// - Throws: ``RealtimeError`` while the store cannot write.
  func requireWriter() throws -> BatchWriter {
    guard let writer else {
      missedWriter = true
      throw failure
    }
    return writer
  }

  /// Records changes of the tree for the commit log.
  ///
  /// - Parameter changes: a value is nil if it is too large for the log.
  func logChanges(_ changes: [(Path, Node?)]) { logged += changes }

  /// Writes the log record of the batch's changes.
  func log() throws {
    guard let writer, !logged.isEmpty else { return }
    let record = ChangeLogRecord(logged).bytes
    assert((try? ChangeLogRecord(bytes: record))?.changes.count == logged.count, "a log record decodes")
    try writer.log(record, nil)
  }

  /// Records that an empty tree has no priorities (see `PriorityUse`). Called before each write; checks only
  /// once.
  func markIfEmpty() throws {
    guard let writer, executor.mustMarkIfEmpty else { return }
    executor.mustMarkIfEmpty = false
    guard try tree.view.get(RowKeys.priorityTracking) == nil else { return }
    var isEmpty = true
    try writer.scan(RowKeys.range(of: .root), reverse: false) { _, _, _ in
      isEmpty = false
      return false
    }
    if isEmpty { try writer.recordNoPriorities() }
  }
}

extension RealtimeOperation {
  /// The connection and request number of an action that only connections submit.
  fileprivate var connectionAndRequest: (connection: ConnectionState, request: Int64?) {
    guard case .connection(let connection, let request) = origin else {
      preconditionFailure("invariant: only connections submit this action")
    }
    return (connection, request)
  }
}

// MARK: Handlers

/// A part of the execution that handles the operations of one kind.
protocol BatchHandler {
  var batch: BatchExecution { get }
}

extension BatchHandler {
  var tree: Tree { batch.tree }
  var now: Int64 { batch.now }
  var executor: OperationExecutor { batch.executor }
  var journal: SessionJournal { batch.journal }
  var limits: RealtimeLimits { batch.executor.limits }
  var staging: StagingLimits { batch.executor.generations.limits }
}

extension BatchExecution {
  /// Decisions about access to operations and to open listens.
  var authorization: AuthorizationHandler { AuthorizationHandler(batch: self) }
  /// Puts, merges and conditional writes.
  var writes: WriteHandler { WriteHandler(batch: self) }
  /// Reads of values and query windows.
  var reads: ReadHandler { ReadHandler(batch: self) }
  /// Starts and ends of listens.
  var listens: ListenHandler { ListenHandler(batch: self) }
  /// Filtered listens on large locations, whose windows are updated from rows.
  var rowWindows: RowWindowHandler { RowWindowHandler(batch: self) }
  /// Changes of callers, and ends of sessions.
  var sessions: SessionHandler { SessionHandler(batch: self) }
  /// onDisconnect writes.
  var disconnects: DisconnectHandler { DisconnectHandler(batch: self) }
  /// Imported values.
  var imports: ImportHandler { ImportHandler(batch: self) }
  /// Rules and other settings.
  var settings: SettingsHandler { SettingsHandler(batch: self) }
  /// Index rows of written values.
  var indexes: IndexMaintenance { IndexMaintenance(batch: self) }
  /// Builds of index rows in the background.
  var indexBuilds: IndexBuildHandler { IndexBuildHandler(batch: self) }
  /// Conversion of changes to the form that listeners receive.
  var notifications: NotificationBuilder { NotificationBuilder(batch: self) }
}
