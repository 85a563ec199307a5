// What happens to each operation inside a sequenced body: checks, access, reading and changing the tree, and what is left
// for the fan-out stage. (What sessions leave for their end is in Presence/.)

import OrderedStore
import RealtimeModel

/// One sequenced body under way.
struct SequencedBody {
  let tree: Tree
  /// nil while the store cannot write.
  let writer: PassWriter?
  /// The body's instant in milliseconds since the Unix epoch: its server timestamps.
  let now: Int64
  let sequencer: Sequencer
  /// Why nothing can be written, while nothing can.
  var failure = RealtimeError(.unavailable, "the database cannot write now")
  /// Whether an operation was allowed to write and could not.
  private(set) var missedWriter = false
  var steps: [FanOutStep] = []
  /// What was put off until a hash is known, and what its connection asked for behind it.
  private(set) var held: [HeldOperation] = []
  private var heldConnections: Set<ObjectIdentifier> = []
  /// How long operations have read so far.
  private var reading = Duration.zero
  /// The most turns that an operation of this batch has lost, until it has its turn.
  var mostTurnsLost = 0
  /// How many listens were decided again for callers that changed.
  private var decidedAgain = 0
  /// Whether operations may be put off.
  let mayHold: Bool
  /// The way back for sessions.
  let journal: SessionJournal
  private var logged: [(Path, Node?)] = []
  /// The rules, once they were asked for.
  var knownRules: RulesFile??
  /// What is to be built of indexes, once it was asked for.
  var knownBuilds: IndexBuilds?

  init(
    tree: Tree, writer: PassWriter?, now: Int64, sequencer: Sequencer, journal: SessionJournal,
    mayHold: Bool = false, failure: RealtimeError? = nil
  ) {
    self.tree = tree
    self.writer = writer
    self.now = now
    self.sequencer = sequencer
    self.journal = journal
    self.mayHold = mayHold
    if let failure { self.failure = failure }
  }

  /// Runs one operation; only errors of the store get out, since they end the whole body.
  mutating func run(_ operation: Operation) throws {
    // Its connection may have gone since the batch was taken.
    if operation.isAbandoned { return }
    if let connection = operation.connection {
      if heldConnections.contains(ObjectIdentifier(connection)) {
        return held.append(HeldOperation(operation: operation, reason: .behindAnother))
      }
      if connection.session.hasEnded {
        guard case .close = operation.action else { return }
      }
      sequencer.register(connection, journal)
    }
    do {
      try takeTurn(operation)
    } catch let delay as PutOff {
      held.append(HeldOperation(operation: operation, reason: delay.reason))
      if let connection = operation.connection { heldConnections.insert(ObjectIdentifier(connection)) }
    } catch let error as RealtimeError {
      steps.append(.answer(operation.origin, .failure(error)))
    }
  }

  /// Performs an operation, unless others of its kind have held up the writes of this batch for long enough. The one that
  /// lost most turns goes before all others and in any case: what is new does not overtake it. What was read aside waits
  /// no longer, since all that changes meanwhile has to be applied to it.
  private mutating func takeTurn(_ operation: Operation) throws {
    guard mayHold, operation.takesTurns else { return try perform(operation) }
    if operation.turnsLost < mostTurnsLost
      || reading > .zero && reading >= sequencer.generations.limits.turnTime
    {
      throw PutOff(reason: .turn)
    }
    mostTurnsLost = 0
    let start = ContinuousClock.now
    defer { reading += ContinuousClock.now - start }
    try perform(operation)
  }

  private mutating func perform(_ operation: Operation) throws {
    let caller = operation.caller
    switch operation.action {
    case .write(let write, let hash):
      let node = try perform(write, ifHash: hash, for: operation)
      steps.append(.answer(operation.origin, node))
    case .get(let path, let query):
      try mayRead(path, query, caller)
      if operation.needsIndex(query), !(try hasIndex(query.ordering, path)) {
        throw RealtimeError.indexNotDefined(query.ordering.wireText, path: path.absolute)
      }
      steps.append(.answer(operation.origin, .value(try window(query, at: path, for: operation))))
    case .getShallow(let path, let query):
      try mayRead(path, query, caller)
      steps.append(.answer(operation.origin, .shallow(try shallow(query, at: path))))
    case .listen(let listen): try perform(listen, for: operation)
    case .unlisten(let path, let tag):
      guard case .connection(let connection, _) = operation.origin else { return }
      let name = ListenName(path: path, tag: tag)
      change(connection, listen: name, to: nil)
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
    case .getSetting(let setting):
      steps.append(.answer(operation.origin, .text(try text(of: setting, for: caller))))
    case .setSetting(let setting, let text):
      try set(setting, to: text, for: caller)
      steps.append(.answer(operation.origin, .done))
    case .estimate(let write, let most):
      steps.append(.answer(operation.origin, .count(try estimate(write, atMost: most, for: caller))))
    case .buildIndexes: steps.append(.answer(operation.origin, .count(try buildIndexes() ? 1 : 0)))
    case .getRules: steps.append(.answer(operation.origin, .rules(try rules())))
    case .setRules(let rules):
      try set(rules, for: caller)
      try unlabelStable(unless: rules.text)
      steps.append(.answer(operation.origin, .done))
    case .administer(_, let work):
      guard caller.identity == .administrator else { throw RealtimeError.permissionDenied }
      try work(&self)
      steps.append(.answer(operation.origin, .done))
    case .close:
      guard case .connection(let connection, _) = operation.origin else { return }
      try end(connection)
    case .takeOver(let session, let connection):
      try takeOver(session, of: connection)
      steps.append(.answer(operation.origin, .done))
    case .place(let path, let imported): try place(imported, at: path, for: operation)
    case .tidy: _ = try writer?.forgetEmptyGenerations()
    case .followWhole(let path): try followWhole(path, for: operation)
    case .pass: steps.append(.answer(operation.origin, .done))
    }
  }

  // MARK: Reads

  func mayRead(_ path: Path, _ query: QuerySpec, _ caller: Caller) throws {
    for key in path.keys {
      guard ChildKey.isValid(key.text) || key.isPriority else { throw RealtimeError.invalidPath }
    }
    if sequencer.policy.allowsEverything(caller) { return }
    let view = TreeAccessView(tree: tree, changes: [], now: now)
    if let denial = try sequencer.policy.decide(caller, .read(path, query), view: view) { throw denial }
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
    if !listen.isDefault { try mayOrder(listen) }
    if let shown = try joinByRows(listen, for: operation) {
      change(connection, listen: name, to: listen.query)
      steps.append(
        .listen(connection, listen, shown, PreparedListen(isPart: true), warnings: [], request: request))
      return
    }
    let value =
      if !listen.isDefault, !listen.query.isWide,
        sequencer.orders.has(listen.query.ordering, at: listen.path),
        let node = try tree.nodeIfSmall(at: listen.path, sequencer.generations.limits),
        !listen.isHashed || node.estimatedSize(of: listen.query) <= sequencer.generations.limits.preparedBytes
      {
        // The fan-out stage has the children in this order, for others.
        OrderedLocation(node)
      } else {
        try self.value(
          at: listen.path, for: operation, listen.isDefault ? nil : listen.query,
          isHashed: listen.isHashed)
      }
    // What is told from now on is changes of all of it.
    if !listen.isDefault { sequencer.windows.remove(listen.path, journal) }
    change(connection, listen: name, to: listen.query)
    let warnings = try hasIndex(listen.query.ordering, listen.path) ? [] : ["no_index"]
    steps.append(
      .listen(
        connection, listen, value.node,
        .init(location: listen.isDefault ? nil : value, firstPush: operation.firstPush), warnings: warnings,
        request: request))
  }

  /// Refuses a listen in one order too many: the children of its location are kept in each, and every write to them
  /// keeps all of them up to date. By key they are in order anyway.
  private func mayOrder(_ listen: Operation.Listen) throws {
    let (orders, most) = (sequencer.orders, sequencer.limits.ordersPerLocation)
    guard listen.query.limit != nil, listen.query.ordering != .key,
      !orders.has(listen.query.ordering, at: listen.path),
      orders.count(at: listen.path) >= most
    else { return }
    throw RealtimeError(
      .failure,
      "too many orders: a location may be listened to with limits in \(most) at a time (ordersPerLocation)")
  }

  /// Adds, replaces or removes a listen.
  func change(_ connection: ConnectionState, listen name: ListenName, to query: QuerySpec?) {
    let before = connection.session.listens[name]
    journal.change(connection, listen: name, to: query)
    sequencer.orders.change(name, from: before, to: query, journal)
    if let before { sequencer.windows.leave(name.path, before, journal) }
  }

  /// How many listens one body decides again for callers that change; those of the first in any case.
  static let mostDecidedAgain = 2_048

  private mutating func authenticate(_ connection: ConnectionState, as caller: Caller) throws {
    if connection.session.caller == caller { return }
    let count = connection.isClosed ? 0 : connection.session.listens.count
    // Whoever has many listens and changes its caller time and again gets one turn of a batch.
    if mayHold, count > 0, decidedAgain > 0, decidedAgain + count > SequencedBody.mostDecidedAgain {
      throw PutOff(reason: .turn)
    }
    decidedAgain += count
    journal.change(connection, \.caller, to: caller)
    if connection.session.hasDisconnectRows { try write(caller, of: connection) }
    if connection.isClosed { return }
    for (name, query) in connection.session.listens {
      do {
        try mayRead(name.path, query, caller)
      } catch let error as RealtimeError {
        change(connection, listen: name, to: nil)
        steps.append(.unlisten(connection, name, revoked: error))
      }
    }
  }

  // MARK: Writes

  private mutating func perform(_ write: Write, ifHash hash: String?, for operation: Operation) throws
    -> Answer
  {
    let submitted =
      try operation.checked?.get()
      ?? WriteRequest(write, limits: sequencer.limits, bytes: operation.mostBytes(sequencer.limits))
    var request = submitted
    try request.resolve(in: tree, now: now)
    try mayWrite(request.changes, operation.caller)
    let staged = try staged(submitted, of: operation)
    if let hash, let target = request.changes.first {
      let current = try value(at: target.path, for: operation).node
      guard try matches(current, hash, operation) else { return .stale(current) }
    }
    try apply(request.changes, staged)
    if case .set = write { return .written(request.changes.first?.value ?? .empty) }
    return .written(.empty)
  }

  /// What was filled in beforehand of a write.
  ///
  /// Writing much here would hold up everyone else, so that the operation is put off until that was done aside.
  private mutating func staged(_ request: WriteRequest, of operation: Operation) throws -> StagedWrite {
    if let staged = operation.staged {
      let staged = try staged.get()
      guard operation.weight(without: staged) <= RowWeight.mostOfACommit else {
        throw RealtimeError.writeTooBig
      }
      return staged
    }
    if operation.weight > sequencer.generations.limits.heavyBytes {
      _ = try mustWrite()
      if mayHold { throw PutOff(reason: .staging(request)) }
    }
    guard operation.weight <= RowWeight.mostOfACommit else { throw RealtimeError.writeTooBig }
    return StagedWrite()
  }

  /// Whether a value has the hash that a conditional write wants.
  ///
  /// Hashing a large value here would hold up everyone else, so that the operation is put off until that was done aside.
  /// If the value is another one by then, the client, who wrote before it, cannot have known it: it is stale.
  private func matches(_ current: Node, _ hash: String, _ operation: Operation) throws -> Bool {
    if let verdict = operation.verdict { return verdict.matches && verdict.node == current }
    if mayHold, !hash.isEmpty, current.estimatedSize > sequencer.generations.limits.preparedBytes {
      throw PutOff(reason: .hash(current))
    }
    return current.matches(hash: hash)
  }

  /// What writes, once everything has been checked and allowed.
  mutating func mustWrite() throws -> PassWriter {
    guard let writer else {
      missedWriter = true
      throw failure
    }
    return writer
  }

  func mayWrite(_ changes: [(path: Path, value: Node)], _ caller: Caller) throws {
    if sequencer.policy.allowsEverything(caller) { return }
    let view = TreeAccessView(tree: tree, changes: changes, now: now)
    if let denial = try sequencer.policy.decide(caller, .write(changes), view: view) { throw denial }
  }

  /// Changes the tree; the changes stand in ascending order of paths, none inside another.
  mutating func apply(_ changes: [(path: Path, value: Node)], _ staged: StagedWrite = StagedWrite()) throws {
    let writer = try mustWrite()
    try lookForPriorities()
    var effective: [Change] = []
    var emptied: [Path] = []
    // Many changes may be of one location, about which that much has to be found out once: whether a leaf stands there
    // that makes room for children, and, behind the last of those that are removed, whether any is left.
    var object: Path?
    var removed: Path?
    var empty = EmptyRows(around: changes, fewest: sequencer.generations.limits.stretchedChanges)
    // Priorities last: one may belong to a location that another change brings into being.
    for priorities in [false, true] {
      for (position, change) in changes.enumerated() where change.path.isPriority == priorities {
        let parent = priorities ? nil : change.path.parent
        if let place = removed, priorities || !change.value.isEmpty || place.parent != parent {
          let orphaned = try tree.dropOrphanedPriorities(above: place, in: writer)
          if !orphaned.isEmpty { empty?.forget() }
          emptied += orphaned
          removed = nil
        }
        let indexed = try indexes(around: change.path)
        let isStaged = staged.changes[position] != nil
        let outcome =
          if let (generation, deferred) = staged.changes[position] {
            (
              changed: true,
              before: try tree.place(generation, at: change.path, change.value, deferred, in: writer)
            )
          } else {
            try tree.set(change.path, to: change.value, inside: object, &empty, in: writer)
          }
        if isStaged { empty?.forget() }
        if !priorities, !change.value.isEmpty { object = parent }
        if outcome.changed {
          if !priorities, change.value.isEmpty { removed = change.path }
          if let indexed {
            try keepIndexes(
              indexed, at: change.path, isStaged ? nil : change.value,
              hadChildren: outcome.before.map { !$0.isEmpty && !$0.isLeaf } ?? true, in: writer)
          }
          effective.append(Change(path: change.path, value: change.value, before: outcome.before))
        }
      }
    }
    if let removed { emptied += try tree.dropOrphanedPriorities(above: removed, in: writer) }
    guard !effective.isEmpty else { return }
    effective.sort { $0.path < $1.path }
    logged += effective.map { ($0.path, $0.value) }
    try tell(told(effective, emptied: emptied))
  }

  /// Leaves a write to the fan-out stage; its changes as listeners are told them.
  mutating func tell(_ changes: [Change]) throws {
    steps.append(.write(changes, windows: try follow(changes)))
  }

  /// Takes note that a location was replaced by a value that is too large for the log.
  mutating func logReplaced(_ path: Path) { logged.append((path, nil)) }

  /// Adds the log record of everything the body wrote to the tree.
  func log() throws {
    guard let writer, !logged.isEmpty else { return }
    try writer.log(WriteRecord(logged).bytes, nil)
  }
}

/// An operation that was put off.
struct HeldOperation: Sendable {
  enum Reason: Sendable {
    /// It waits for the hash of this value.
    case hash(Node)
    /// It waits until what is large of this write is filled in.
    case staging(WriteRequest)
    /// It waits for what an imported value holds at these locations.
    case values(ImportedTree, at: Path, [Path])
    /// It waits for the value at a location, or for what is costly to find out of a value that is known.
    case reading(Path, LargeRead?)
    /// It waits for what a query shows its caller of a location.
    case window(Path, QuerySpec, Caller)
    /// It waits until an index is built, since its location is larger than an answer may be.
    case index
    /// It waits for the next batch: enough of its kind was done in this one.
    case turn
    /// It stands behind another of its connection.
    case behindAnother
  }

  let operation: Operation
  let reason: Reason
}

/// Thrown where something is needed first that takes too long in the sequencer.
struct PutOff: Error {
  let reason: HeldOperation.Reason
}

extension Operation {
  /// Whether a read once is refused without an index. Clients ask for all of a location in an order of theirs.
  fileprivate func needsIndex(_ query: QuerySpec) -> Bool { connection == nil || !query.showsAll }

  /// On whose behalf the operation runs, as the sequencer knows it now.
  var caller: Caller {
    switch origin {
    case .connection(let connection, _): connection.session.caller
    case .call(let caller, _): caller
    }
  }
}
