// One namespace: a tree, the one order of its operations, and everyone who listens to it.
//
// The way of an operation: `enqueue` (any thread) -> the pump, a task that takes what waits and has it run in one sequenced
// body of the store, while earlier ones are being synced (Sequencing/) -> once durable, the fan-out stage, another task, in
// the same order (Listens/).

import Locking
import OrderedStore
public import RealtimeModel

/// A Realtime Database. Writes, and everything on connections, are sequenced in the order in which they are submitted;
/// reads outside connections see everything acknowledged before them.
public final class RealtimeDatabase: Sendable {
  /// The namespace's name.
  public let namespace: String
  private let queue = OperationQueue()
  let builder: IndexBuilder
  let rows: DatabaseRows
  let runner: BatchRunner
  private let pump: Task<Void, Never>
  let cleaner: Cleaner
  let reading: LargeReading
  /// The connections that their endpoints have not closed, by session: also those that have asked for nothing yet.
  private let connections = Guarded<[String: ConnectionState]>([:])
  private let released: @Sendable () -> Void

  /// - Parameters:
  ///   - hashing: where values are hashed that are too large for the sequencer.
  ///   - report: told what an operator must know.
  ///   - created: told when the first write has brought the database into being.
  ///   - released: told when nobody needs this object any more.
  init(
    namespace: String, rows: DatabaseRows, policy: any AccessPolicy, limits: RealtimeLimits,
    cacheBytes: Int, hashing: ThreadPool = ThreadPool(threads: 1), mostInFlight: Int = Pump.mostInFlight,
    staging: StagingLimits = .standard,
    report: @escaping @Sendable (String) -> Void = { _ in },
    created: @escaping @Sendable () -> Void,
    released: @escaping @Sendable () -> Void
  ) async throws(RealtimeError) {
    let builder = IndexBuilder(queue)
    self.builder = builder
    let sequencer = Sequencer(
      policy: policy, limits: limits, cacheBytes: cacheBytes, staging: staging,
      indexWork: { builder.wake() },
      wholeWanted: { [queue] in RealtimeDatabase.followWhole($0, queue) })
    let runner = BatchRunner(
      rows: rows, sequencer: sequencer, threads: hashing, created: created, report: report)
    try await runner.load()
    try await runner.fireLeftovers()
    let queue = queue
    let cleaner = Cleaner(rows, staging, activity: { [queue] in queue.appended }) { [queue] in
      _ = queue.append(Operation(.tidy, from: .call(.administrator) { _ in }))
    }
    self.cleaner = cleaner
    if rows.current != nil { cleaner.wake() }
    self.namespace = namespace
    self.rows = rows
    self.runner = runner
    self.released = released
    let hashes = WideHashes(on: hashing)
    let reading = LargeReading(queue, runner, hashing)
    self.reading = reading
    // A server that was killed may have left something to build.
    if rows.current != nil { builder.wake() }
    pump = Task {
      await Pump(
        queue: queue, runner: runner, hashes: hashes, cleaner: cleaner, reading: reading,
        mostInFlight: mostInFlight
      ).run()
    }
  }

  /// Has a location followed as a whole, and tries again should the store refuse the commit around it.
  private static func followWhole(_ path: Path, _ queue: OperationQueue) {
    let operation = Operation(
      .followWhole(path),
      from: .call(.administrator) { [weak queue] result in
        guard case .failure = result, let queue else { return }
        Task {
          try? await Task.sleep(for: .milliseconds(100))
          followWhole(path, queue)
        }
      })
    _ = queue.append(operation)
  }

  deinit {
    // Nothing waits: what waits holds the database.
    builder.stop()
    cleaner.leave()
    queue.close()
    released()
  }

  /// Whether anything was ever written to it; else it is a name and nothing more.
  var exists: Bool { rows.current != nil }

  /// Refuses what comes later, and returns when everything submitted before is durable and delivered.
  func shutdown() async {
    builder.stop()
    reading.stop()
    queue.close()
    await pump.value
    await cleaner.stop()
  }

  func enqueue(_ operation: Operation) {
    var operation = operation
    operation.database = self
    operation.checkIfHeavy(runner.sequencer.limits, cleaner.limits)
    if queue.append(operation) { return }
    guard case .call(_, let completion) = operation.origin else { return }
    completion(.failure(RealtimeError(.unavailable, "the server is shutting down")))
  }

  // MARK: Operations outside a connection

  /// Reads once: all of a location, or the window of a query.
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied`, `too_big`, `failure` for a query without index.
  ///
  /// - Parameter deadline: when to give up, with ``RealtimeModel/RealtimeError/timedOut``; nil for never.
  public func get(
    _ path: Path, query: QuerySpec = .default, as caller: Caller,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> Node {
    guard case .value(let node) = try await read(.get(path, query), as: caller, until: deadline) else {
      return .empty
    }
    return node
  }

  /// Reads a location without what lies below its children. Bounds and limits are by key.
  ///
  /// - Parameter deadline: when to give up, with ``RealtimeModel/RealtimeError/timedOut``; nil for never.
  public func getShallow(
    _ path: Path, query: QuerySpec = .default, as caller: Caller,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> ShallowNode {
    guard case .shallow(let node) = try await read(.getShallow(path, query), as: caller, until: deadline)
    else {
      return .empty
    }
    return node
  }

  /// Replaces a value, or a priority if the path ends in `.priority`. Returns once the write is durable and listeners
  /// have been told.
  ///
  /// - Parameter ifHash: the hash that the value must have, `""` for none; nil to write in any case.
  public func set(
    _ path: Path, to node: Node, ifHash: String? = nil, as caller: Caller
  ) async throws(RealtimeError) -> WriteResult {
    try await write(.set(path, node), ifHash: ifHash, as: caller)
  }

  /// Replaces the values at several relative paths at once; none may lie inside another.
  public func update(
    _ path: Path, _ changes: [(Path, Node)], as caller: Caller
  ) async throws(RealtimeError) -> WriteResult {
    try await write(.update(path, changes), ifHash: nil, as: caller)
  }

  private func write(
    _ write: Write, ifHash: String?, as caller: Caller
  ) async throws(RealtimeError) -> WriteResult {
    switch try await call(.write(write, hash: ifHash), as: caller) {
    case .written(let node): .written(node)
    case .stale(let node): .stale(current: node)
    case .value, .shallow, .text, .rules, .count: .written(.empty)
    }
  }

  /// Reads what is durable, beside the sequencer: a large read holds nobody up.
  func read(
    _ action: Operation.Action, as caller: Caller, until deadline: ContinuousClock.Instant? = nil
  ) async throws(RealtimeError) -> Operation.CallResult {
    try await runner.read(Operation(action, from: .call(caller) { _ in }), until: deadline)
  }

  var limits: RealtimeLimits { runner.sequencer.limits }

  /// Whether nothing is forbidden to a caller.
  public func allowsEverything(_ caller: Caller) -> Bool { runner.sequencer.policy.allowsEverything(caller) }

  func call(
    _ action: Operation.Action, as caller: Caller
  ) async throws(RealtimeError) -> Operation.CallResult {
    let result: Result<Operation.CallResult, RealtimeError> = await withCheckedContinuation { continuation in
      enqueue(Operation(action, from: .call(caller) { continuation.resume(returning: $0) }))
    }
    return try result.get()
  }

  // MARK: Connections

  /// Opens a connection, on behalf of `caller` until it authenticates otherwise.
  ///
  /// - Parameter sink: where everything the connection is told goes. The engine holds it until the connection ends.
  public func connect(as caller: Caller, to sink: any RealtimeSink) -> RealtimeConnection {
    let session = SessionName.make()
    let state = ConnectionState(name: session, caller: caller, sink: sink)
    connections.withLock { $0[session] = state }
    return RealtimeConnection(session: session, database: self, state: state)
  }

  /// Ends a session before anything submitted later happens: what it registered for its end is written, and its
  /// connection, should it still stand, is told ``RealtimeOutput/ended`` and nothing more.
  public func takeOver(session: String) {
    let connection = connections.withLock { $0[session] }
    enqueue(Operation(.takeOver(session: session, of: connection), from: .call(.administrator) { _ in }))
  }

  /// Forgets a connection that its endpoint has closed.
  func forget(_ connection: ConnectionState) {
    connections.withLock { $0[connection.name] = nil }
  }
}
