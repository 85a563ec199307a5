// Executes operations in their one order, inside the store's sequenced bodies: checks them, decides access, reads and
// changes the tree, and leaves for the fan-out stage what follows from each.
//
// Invariants
//   1. Everything here happens in sequenced bodies, one at a time, on durable plus in-flight state; what it leaves is
//      handed on only when that state is durable.
//   2. An operation that fails leaves nothing but its error.

import OrderedStore
import RealtimeModel

/// The sequenced side of one database.
///
/// `@unchecked Sendable`: touched in sequenced bodies only, which the store runs one at a time, and between them only
/// by the one task that issues them.
final class Sequencer: @unchecked Sendable {
  let policy: any AccessPolicy
  let limits: RealtimeLimits
  private let cache: TreeCache
  private var sessions: [String: ConnectionState] = [:]
  private var isInside = false

  init(policy: any AccessPolicy, limits: RealtimeLimits, cacheBytes: Int) {
    self.policy = policy
    self.limits = limits
    cache = TreeCache(budget: cacheBytes)
  }

  /// Runs operations in order in one sequenced body, and logs what they wrote.
  ///
  /// - Throws: only what makes the whole body fail: errors of the store.
  func run(_ operations: [Operation], in writer: any Sequenced) throws -> [FanOutStep] {
    // A body that did not come to its end left changes in the cache that no row has.
    if isInside { cache.removeAll() }
    isInside = true
    var body = SequencedBody(
      tree: Tree(view: writer, cache: cache, limits: limits), writer: writer,
      now: Int64(writer.commitVersion.microseconds / 1000), sequencer: self)
    for operation in operations { try body.run(operation) }
    try body.log()
    isInside = false
    return body.steps
  }

  /// Runs what does not write while the store cannot; writes are answered with the store's error.
  func run(_ operations: [Operation], reading view: any ReadView, failure: RealtimeError) throws -> [FanOutStep] {
    var body = SequencedBody(
      tree: Tree(view: view, cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, failure: failure)
    for operation in operations { try body.run(operation) }
    return body.steps
  }

  /// Ends every session that a process before this one left behind.
  func fireLeftovers(in writer: any Sequenced) throws -> [FanOutStep] {
    var body = SequencedBody(
      tree: Tree(view: writer, cache: cache, limits: limits), writer: writer,
      now: Int64(writer.commitVersion.microseconds / 1000), sequencer: self)
    try body.fireLeftovers()
    try body.log()
    return body.steps
  }

  /// Forgets what a body that failed may have left in memory.
  func bodyFailed() {
    cache.removeAll()
    isInside = false
  }

  func register(_ connection: ConnectionState) { sessions[connection.name] = connection }
  func unregister(_ session: String) -> ConnectionState? { sessions.removeValue(forKey: session) }
}

/// One sequenced body under way.
struct SequencedBody {
  let tree: Tree
  /// nil while the store cannot write.
  let writer: (any Sequenced)?
  /// The body's instant in milliseconds since the Unix epoch: its server timestamps.
  let now: Int64
  let sequencer: Sequencer
  /// Why nothing can be written, while nothing can.
  var failure = RealtimeError(.unavailable, "the database cannot write now")
  private(set) var steps: [FanOutStep] = []
  private var logged: [Change] = []

  init(
    tree: Tree, writer: (any Sequenced)?, now: Int64, sequencer: Sequencer, failure: RealtimeError? = nil
  ) {
    self.tree = tree
    self.writer = writer
    self.now = now
    self.sequencer = sequencer
    if let failure { self.failure = failure }
  }

  /// Runs one operation; only errors of the store get out, since they end the whole body.
  mutating func run(_ operation: Operation) throws {
    if case .connection(let connection, _) = operation.origin {
      if connection.session.hasEnded {
        guard case .close = operation.action else { return }
      }
      sequencer.register(connection)
    }
    do {
      try perform(operation)
    } catch let error as RealtimeError {
      steps.append(.answer(operation.origin, .failure(error)))
    }
  }

  private mutating func perform(_ operation: Operation) throws {
    let caller = operation.caller
    switch operation.action {
    case .write(let write, let hash):
      let node = try perform(write, ifHash: hash, for: operation)
      steps.append(.answer(operation.origin, node))
    case .get(let path, let query):
      try mayRead(path, query, caller)
      if !query.showsAll || query.ordering != .priority, !hasIndex(query.ordering, path) {
        throw RealtimeError.indexNotDefined(query.ordering.wireText, path: path.absolute)
      }
      steps.append(.answer(operation.origin, .value(try tree.node(at: path).window(query))))
    case .getShallow(let path, let query):
      try mayRead(path, query, caller)
      steps.append(.answer(operation.origin, .shallow(try tree.shallow(at: path).window(query))))
    case .listen(let listen): try perform(listen, for: operation)
    case .unlisten(let path, let tag):
      guard case .connection(let connection, _) = operation.origin else { return }
      let name = ListenName(path: path, tag: tag)
      connection.session.listens[name] = nil
      steps.append(.unlisten(connection, name, revoked: nil))
      steps.append(.answer(operation.origin, .done))
    case .onDisconnect(let write):
      guard case .connection(let connection, _) = operation.origin else { return }
      try register(write, for: connection)
      steps.append(.answer(operation.origin, .done))
    case .cancelOnDisconnect(let path):
      guard case .connection(let connection, _) = operation.origin else { return }
      try cancel(path, for: connection)
      steps.append(.answer(operation.origin, .done))
    case .authenticate(let caller):
      guard case .connection(let connection, _) = operation.origin else { return }
      try authenticate(connection, as: caller)
      steps.append(.answer(operation.origin, .done))
    case .close:
      guard case .connection(let connection, _) = operation.origin else { return }
      try end(connection)
    case .takeOver(let session):
      try takeOver(session)
      steps.append(.answer(operation.origin, .done))
    }
  }

  // MARK: Reads

  private func mayRead(_ path: Path, _ query: QuerySpec, _ caller: Caller) throws {
    for key in path.keys {
      guard Key.isValid(key.text) || key.isPriority else { throw RealtimeError.invalidPath }
    }
    if sequencer.policy.allowsEverything(caller) { return }
    let view = TreeAccessView(tree: tree, changes: [], now: now)
    if let denial = try sequencer.policy.decide(caller, .read(path, query), view: view) { throw denial }
  }

  private func hasIndex(_ ordering: Ordering, _ path: Path) -> Bool {
    switch ordering {
    case .key, .priority: true
    case .value, .child: sequencer.policy.hasIndex(on: ordering, at: path)
    }
  }

  private mutating func perform(_ listen: Operation.Listen, for operation: Operation) throws {
    guard case .connection(let connection, let request) = operation.origin else { return }
    try mayRead(listen.path, listen.query, connection.session.caller)
    let name = ListenName(path: listen.path, tag: listen.tag)
    guard
      connection.session.listens[name] != nil
        || connection.session.listens.count < sequencer.limits.listensPerConnection
    else {
      throw RealtimeError(
        .failure, "too many listens: a connection may hold \(sequencer.limits.listensPerConnection)")
    }
    let node = try tree.node(at: listen.path)
    connection.session.listens[name] = listen.query
    let warnings = hasIndex(listen.query.ordering, listen.path) ? [] : ["no_index"]
    steps.append(.listen(connection, listen, node, warnings: warnings, request: request))
  }

  private mutating func authenticate(_ connection: ConnectionState, as caller: Caller) throws {
    if connection.session.caller == caller { return }
    connection.session.caller = caller
    if connection.session.hasDisconnectRows { try write(caller, of: connection) }
    for (name, query) in connection.session.listens {
      do {
        try mayRead(name.path, query, caller)
      } catch let error as RealtimeError {
        connection.session.listens[name] = nil
        steps.append(.unlisten(connection, name, revoked: error))
      }
    }
  }

  // MARK: Writes

  private mutating func perform(_ write: Write, ifHash hash: String?, for operation: Operation) throws -> Answer {
    guard writer != nil else { throw failure }
    var bytes = sequencer.limits.restWriteBytes
    if case .connection = operation.origin { bytes = sequencer.limits.socketWriteBytes }
    var request = try WriteRequest(write, limits: sequencer.limits, bytes: bytes)
    try request.resolve(in: tree, now: now)
    try mayWrite(request.changes, operation.caller)
    if let hash, let target = request.changes.first {
      let current = try tree.node(at: target.path)
      // Above this width hashing would hold up everyone else: the client gets the data instead.
      guard current.childCount <= 100_000, current.matches(hash: hash) else { return .stale(current) }
    }
    try apply(request.changes)
    if case .set = write { return .written(request.changes.first?.value ?? .empty) }
    return .written(.empty)
  }

  private func mayWrite(_ changes: [(path: Path, value: Node)], _ caller: Caller) throws {
    if sequencer.policy.allowsEverything(caller) { return }
    let view = TreeAccessView(tree: tree, changes: changes, now: now)
    if let denial = try sequencer.policy.decide(caller, .write(changes), view: view) { throw denial }
  }

  /// Changes the tree; the changes stand in ascending order of paths, none inside another.
  private mutating func apply(_ changes: [(path: Path, value: Node)]) throws {
    guard let writer else { throw failure }
    var effective: [Change] = []
    // Priorities last: one may belong to a location that another change brings into being.
    for priorities in [false, true] {
      for change in changes where change.path.isPriority == priorities {
        let outcome = try tree.set(change.path, to: change.value, in: writer)
        if outcome.changed {
          effective.append(Change(path: change.path, value: change.value, before: outcome.before))
        }
      }
    }
    guard !effective.isEmpty else { return }
    effective.sort { $0.path < $1.path }
    logged += effective
    steps.append(.write(effective))
  }

  /// Adds the log record of everything the body wrote to the tree.
  func log() throws {
    guard let writer, !logged.isEmpty else { return }
    try writer.log(WriteRecord(logged.map { ($0.path, $0.value) }).bytes, nil)
  }

  // MARK: Presence

  /// Registers values for a session's end.
  private mutating func register(_ write: Write, for connection: ConnectionState) throws {
    guard let writer else { throw failure }
    let request = try WriteRequest(write, limits: sequencer.limits, bytes: sequencer.limits.socketWriteBytes)
    var resolved = request
    try resolved.resolve(in: tree, now: now)
    try mayWrite(resolved.changes, connection.session.caller)
    for (path, value) in request.changes {
      let row = RowKeys.disconnect(ofSession: connection.name, at: path)
      try writer.clear(KeyRange(prefix: row))
      try writer.set(row, NodeEncoder.encode(value))
    }
    if !connection.session.hasDisconnectRows { try self.write(connection.session.caller, of: connection) }
    connection.session.hasDisconnectRows = true
  }

  private func write(_ caller: Caller, of connection: ConnectionState) throws {
    try writer?.set(RowKeys.caller(ofSession: connection.name), CallerCoding.encode(caller))
  }

  private func cancel(_ path: Path, for connection: ConnectionState) throws {
    guard connection.session.hasDisconnectRows else { return }
    guard let writer else { throw failure }
    try writer.clear(KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: path)))
  }

  private mutating func end(_ connection: ConnectionState) throws {
    connection.session.hasEnded = true
    connection.session.listens = [:]
    _ = sequencer.unregister(connection.name)
    steps.append(.end(connection))
    if connection.session.hasDisconnectRows { try fire(connection.name) }
  }

  private mutating func takeOver(_ session: String) throws {
    if let connection = sequencer.unregister(session) {
      try end(connection)
    } else {
      try fire(session)
    }
  }

  /// Writes what a session registered for its end, as one write, and forgets it: exactly once, since both are one commit.
  private mutating func fire(_ session: String) throws {
    guard let writer else { throw failure }
    let all = KeyRange(prefix: RowKeys.prefix(ofSession: session))
    let registered = try DisconnectRows(session: session, in: tree.view)
    guard !registered.isEmpty else { return }
    try writer.clear(all)
    var folded = FoldedChanges()
    for (path, value) in registered.values {
      do {
        var request = try WriteRequest(
          .set(path, value), limits: sequencer.limits, bytes: sequencer.limits.restWriteBytes)
        try request.resolve(in: tree, now: now)
        try mayWrite(request.changes, registered.caller)
        for change in request.changes { folded.add(change.path, change.value) }
      } catch is RealtimeError {
        // What is no longer allowed when the session ends is dropped; nobody is there to be told.
        continue
      }
    }
    try apply(folded.changes)
  }

  /// Ends every session that a process before this one left behind.
  mutating func fireLeftovers() throws {
    var sessions: [String] = []
    var start = RowKeys.sessions.start
    while true {
      var found: String?
      try tree.view.scan(KeyRange(start: start, end: RowKeys.sessions.end), reverse: false) { key, _, _ in
        let name = key.dropFirst().prefix { $0 != RowKeys.terminator }
        found = String(decoding: name, as: UTF8.self)
        return false
      }
      guard let found, let next = KeyRange.successor(ofPrefix: RowKeys.prefix(ofSession: found)) else { break }
      sessions.append(found)
      start = next
    }
    for session in sessions { try fire(session) }
  }
}

extension Operation {
  /// On whose behalf the operation runs, as the sequencer knows it now.
  var caller: Caller {
    switch origin {
    case .connection(let connection, _): connection.session.caller
    case .call(let caller, _): caller
    }
  }
}
