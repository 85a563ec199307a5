// Represents one namespace: its tree, the order of its operations, and its listeners.
//
// An operation enters through `enqueue` on any thread and executes in a batch. Then the fan-out stage, the task that
// sends responses and pushes to connections, answers it. BatchLoop lists the files on this path.

package import Access
import Locking
import OrderedStore
package import RealtimeModel

/// A Realtime Database.
///
/// Writes, and all requests of connections, are sequenced in the order of their submission. Reads outside
/// connections see everything that was acknowledged before them.
package final class RealtimeDatabase: Sendable {
  /// The namespace's name.
  package let namespace: String
  /// The project that the database belongs to.
  package let project: String
  private let queue = OperationQueue()
  let builder: RealtimeIndexBuilder
  let rows: DatabaseRows
  let runner: BatchRunner
  private let loop: Task<Void, Never>
  let cleaner: Cleaner
  let deferrals: DeferralRunner
  private let indexWaiters: IndexBuildWaiters
  private let expiryTimer: ExpiryTimer
  /// The subscription to changes of the database's policy, which lasts as long as this object.
  private let observation: PolicyObservation
  /// The open connections by session, including those that have not submitted anything yet.
  private let connections = Guarded<[String: ConnectionState]>([:])
  private let released: @Sendable () -> Void

  /// - Parameters:
  ///   - project: the project whose callers have rights in the database.
  ///   - rules: makes the policies that enforce stored rules; nil if they are not enforced.
  ///   - revocations: decides whether credentials were revoked.
  ///   - now: the clock in milliseconds since the Unix epoch.
  ///   - threads: the threads for work on large values, which namespaces may share.
  ///   - decisionLimit: limits how many access decisions run in the background at a time, for all namespaces that share
  ///     it.
  ///   - report: reports events that an operator must know.
  ///   - created: called when the first write has created the database.
  ///   - released: called when the object is released.
  init(
    namespace: String, project: String = "", rows: DatabaseRows, policies: PolicySlot<RealtimeAccess>,
    rules: RulesCompiler? = nil, revocations: RevocationCheck = RevocationCheck(), limits: RealtimeLimits,
    cacheBytes: Int,
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds,
    threads: ThreadPool = ThreadPool(threads: 1),
    decisionLimit: ConcurrencyLimit = ConcurrencyLimit(WriteDecision.maximumConcurrency),
    maximumInFlight: Int = BatchLoop.maximumInFlight, staging: StagingLimits = .standard,
    report: @escaping @Sendable (String) -> Void = { _ in },
    created: @escaping @Sendable () -> Void,
    released: @escaping @Sendable () -> Void
  ) async throws(RealtimeError) {
    let queue = queue
    let builder = RealtimeIndexBuilder(queue)
    let indexWaiters = IndexBuildWaiters(queue)
    let expiryTimer = ExpiryTimer(now: now) { RealtimeDatabase.decideListens(queue) }
    let waitingSessions = WaitingSessions()
    let connections = connections
    let performWaitingWrites: @Sendable () -> Void = {
      waitingSessions.performWrites(queue, rows) { session in connections.withLock { $0[session] == nil } }
    }
    let executor = OperationExecutor(
      policies: policies, rules: RulesCache(rules), revocations: revocations, limits: limits,
      cacheBytes: cacheBytes, staging: staging,
      events: ExecutorEvents(
        indexesPending: { builder.wake() },
        indexesChanged: { indexWaiters.resumeAll() },
        listensUndecided: { RealtimeDatabase.decideListens(queue) },
        expiryScheduled: { expiryTimer.schedule($0) },
        sessionWaits: { waitingSessions.add() },
        operationsDropped: {
          report("\(rows.name): \($0) onDisconnect operations dropped: too many conflicts in their session")
        },
        rulesChanged: performWaitingWrites,
        canaryDiffers: { report("\(rows.name): \($0)") },
        rowWindowsEnded: { RealtimeDatabase.switchToFullValue($0, queue) }),
      now: now)
    let runner = BatchRunner(
      rows: rows, executor: executor, threads: threads, decisionLimit: decisionLimit, created: created,
      report: report)
    try await runner.load()
    try await runner.endLeftoverSessions()
    let policyChanged: @Sendable () -> Void = {
      if !policies.current.policy.awaitsRules { performWaitingWrites() }
    }
    observation = policies.observe {
      RealtimeDatabase.decideListens(queue)
      policyChanged()
    }
    // The policy may have changed before it was observed.
    policyChanged()
    let cleaner = Cleaner(rows, staging, activity: { queue.appendedCount }) {
      _ = queue.append(RealtimeOperation(.removeEmptyGenerations, from: .call(.administrator) { _ in }))
    }
    let deferrals = DeferralRunner(
      queue: queue, runner: runner, cleaner: cleaner, threads: threads, indexWaiters: indexWaiters)
    self.namespace = namespace
    self.project = project
    self.expiryTimer = expiryTimer
    self.builder = builder
    self.rows = rows
    self.runner = runner
    self.cleaner = cleaner
    self.deferrals = deferrals
    self.indexWaiters = indexWaiters
    self.released = released
    if rows.current != nil {
      // An earlier process may have left replaced rows that are not cleared yet, and unfinished index builds.
      cleaner.wake()
      builder.wake()
    }
    loop = Task {
      await BatchLoop(
        queue: queue, runner: runner, deferrals: deferrals, maximumInFlight: maximumInFlight
      ).run()
    }
  }

  /// Requests new decisions about the open listens whose permission may have ended.
  private static func decideListens(_ queue: OperationQueue) {
    _ = queue.append(RealtimeOperation(.decideListens, from: .call(.administrator) { _ in }))
  }

  /// Delay before a rejected ``RealtimeOperation/Action/switchToFullValue(_:)`` is submitted again.
  private static let retryDelay = Duration.milliseconds(100)

  /// Requests that the fan-out stage gets a location's complete value. Repeats the request if the store
  /// rejects the commit that contains it.
  private static func switchToFullValue(_ path: Path, _ queue: OperationQueue) {
    let operation = RealtimeOperation(
      .switchToFullValue(path),
      from: .call(.administrator) { [weak queue] result in
        guard case .failure = result, let queue else { return }
        Task {
          try? await Task.sleep(for: retryDelay)
          switchToFullValue(path, queue)
        }
      })
    _ = queue.append(operation)
  }

  deinit {
    // No operation is waiting, because every waiting operation retains the database.
    builder.stop()
    expiryTimer.stop()
    cleaner.stopAfterStep()
    queue.close()
    released()
  }

  /// Whether the database has rows: something was ever written to it.
  var exists: Bool { rows.current != nil }

  /// Rejects later operations, and returns when the earlier ones are durable and their results delivered.
  func shutdown() async {
    builder.stop()
    expiryTimer.stop()
    deferrals.stop()
    queue.close()
    await loop.value
    await cleaner.stop()
  }

  func enqueue(_ operation: RealtimeOperation) {
    var operation = operation
    operation.database = self
    operation.validateIfHeavy(runner.executor.limits, cleaner.limits)
    if queue.append(operation) { return }
    guard case .call(_, let completion) = operation.origin else { return }
    completion(.failure(RealtimeError(.unavailable, "the server is shutting down")))
  }

  /// Submits an operation of the engine. It is dropped during shutdown.
  func submit(_ operation: RealtimeOperation) {
    var operation = operation
    operation.database = self
    _ = queue.append(operation)
  }

  // MARK: Operations outside a connection

  /// Reads a location, or the window of a query (the children that it selects), once.
  ///
  /// - Parameter deadline: the time limit; after it the read fails with
  ///   ``RealtimeModel/RealtimeError/timedOut``. nil for none.
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied`, `too_big`, `failure` for a query without
  ///   index.
  package func get(
    _ path: Path, query: QuerySpec = .default, as caller: Principal,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> Node {
    guard case .value(let node) = try await read(.get(path, query), as: caller, until: deadline) else {
      return .empty
    }
    return node
  }

  /// Reads the keys of a location's children, or its leaf value. Bounds and limits are by key.
  ///
  /// - Parameter deadline: the time limit; after it the read fails with
  ///   ``RealtimeModel/RealtimeError/timedOut``. nil for none.
  package func getShallow(
    _ path: Path, query: QuerySpec = .default, as caller: Principal,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> ShallowNode {
    guard case .shallow(let node) = try await read(.getShallow(path, query), as: caller, until: deadline)
    else {
      return .empty
    }
    return node
  }

  /// Replaces a value, or a priority if the path ends in `.priority`. Returns once the write is durable and
  /// delivered to listeners.
  ///
  /// - Parameter ifHash: the hash that the existing value must have, `""` for no value; nil to write
  ///   unconditionally.
  package func set(
    _ path: Path, to node: Node, ifHash: String? = nil, as caller: Principal
  ) async throws(RealtimeError) -> RealtimeWriteResult {
    try await write(.set(path, node), ifHash: ifHash, as: caller)
  }

  /// Replaces the values at several relative paths in one write; none may lie inside another.
  package func update(
    _ path: Path, _ changes: [(Path, Node)], as caller: Principal
  ) async throws(RealtimeError) -> RealtimeWriteResult {
    try await write(.update(path, changes), ifHash: nil, as: caller)
  }

  private func write(
    _ write: RealtimeWrite, ifHash: String?, as caller: Principal
  ) async throws(RealtimeError) -> RealtimeWriteResult {
    switch try await call(.write(write, hash: ifHash), as: caller) {
    case .written(let node): .written(node)
    case .stale(let node): .stale(current: node)
    case .value, .shallow, .setting, .rules, .count: .written(.empty)
    }
  }

  /// Reads durable rows off the sequencer, so that a large read does not delay other operations.
  func read(
    _ action: RealtimeOperation.Action, as caller: Principal, until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> RealtimeOperation.CallResult {
    let caller = caller.acting(in: project)
    return try await runner.read(RealtimeOperation(action, from: .call(caller) { _ in }), until: deadline)
  }

  var limits: RealtimeLimits { runner.executor.limits }

  /// Whether the policy permits a caller every operation. False for a user if stored rules may deny something.
  package func allowsEverything(_ caller: Principal) -> Bool {
    let caller = caller.acting(in: project)
    return policies.current.allowsEverything(caller)
      && (caller.role != nil || !runner.executor.rules.mayDeny)
  }

  /// The policies that decide access to the database.
  package var policies: PolicySlot<RealtimeAccess> { runner.executor.policies }

  func call(
    _ action: RealtimeOperation.Action, as caller: Principal
  ) async throws(RealtimeError) -> RealtimeOperation.CallResult {
    let caller = caller.acting(in: project)
    let result: Result<RealtimeOperation.CallResult, RealtimeError> = await withCheckedContinuation {
      continuation in
      enqueue(RealtimeOperation(action, from: .call(caller) { continuation.resume(returning: $0) }))
    }
    return try result.get()
  }

  // MARK: Connections

  /// Opens a connection, on behalf of `caller` until it authenticates otherwise.
  ///
  /// - Parameter sink: receives the answers and pushes of the connection. The engine holds it until the
  ///   connection ends.
  package func connect(as caller: Principal, to sink: any RealtimeSink) -> RealtimeConnection {
    let session = SessionName.make()
    let state = ConnectionState(name: session, caller: caller.acting(in: project), sink: sink)
    connections.withLock { $0[session] = state }
    return RealtimeConnection(session: session, database: self, state: state)
  }

  /// Ends a session before any later operation, and performs its onDisconnect writes. If its connection is
  /// still open, its last output is ``RealtimeOutput/ended``.
  package func takeOver(session: String) {
    let connection = connections.withLock { $0[session] }
    enqueue(
      RealtimeOperation(.takeOver(session: session, of: connection), from: .call(.administrator) { _ in }))
  }

  /// The connections that their endpoints have not closed.
  var openConnections: [ConnectionState] { connections.withLock { Array($0.values) } }

  /// Removes a connection that its endpoint has closed.
  func remove(_ connection: ConnectionState) {
    connections.withLock { $0[connection.name] = nil }
    indexWaiters.resumeAbandoned()
  }
}
