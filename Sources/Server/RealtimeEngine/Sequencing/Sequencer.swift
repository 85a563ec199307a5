// Executes operations in their one order, inside the store's sequenced bodies: checks them, decides access, reads and
// changes the tree, and leaves for the fan-out stage what follows from each.
//
// Invariants
//   1. Everything here happens in sequenced bodies, one at a time, on durable plus in-flight state; what it leaves is
//      handed on only when that state is durable.
//   2. An operation that fails leaves nothing but its error.
//   3. A pass whose commit failed leaves nothing in memory: sessions are rolled back by its journal, the cache is
//      emptied, before anything else runs.

import OrderedStore
import RealtimeModel

/// The sequenced side of one database.
///
/// `@unchecked Sendable`: touched in sequenced bodies only, which the store runs one at a time, and between them only
/// by the one task that issues them, while none runs.
final class Sequencer: @unchecked Sendable {
  /// What a pass over a batch leaves.
  struct Pass: Sendable {
    var steps: [FanOutStep]
    /// What was put off, and the rest.
    var held: [HeldOperation] = []
    var executed: [Operation] = []
    /// Whether it left rows to be cleared in the background.
    var hasGarbage = false
  }

  let policy: any AccessPolicy
  let limits: RealtimeLimits
  let rules = RulesCache()
  let generations: GenerationState
  let orders = ListenedOrders()
  let windows = WindowedLocations()
  /// Told when there are index rows to be built.
  let indexWork: @Sendable () -> Void
  /// Told of locations that can no longer be followed by rows.
  let wholeWanted: @Sendable (Path) -> Void
  /// Whether nobody has looked yet whether the tree is empty: see ``SequencedBody/lookForPriorities()``.
  var mustLookForPriorities = true
  private let cache: TreeCache
  private var sessions: [String: ConnectionState] = [:]
  /// The last pass, if its body ended and its commit may have been refused even so: see ``PassWriter``.
  private var unconfirmed: (version: Version, journal: SessionJournal)?

  init(
    policy: any AccessPolicy, limits: RealtimeLimits, cacheBytes: Int, staging: StagingLimits = .standard,
    indexWork: @escaping @Sendable () -> Void = {},
    wholeWanted: @escaping @Sendable (Path) -> Void = { _ in }
  ) {
    self.wholeWanted = wholeWanted
    generations = GenerationState(staging)
    self.indexWork = indexWork
    self.policy = policy
    self.limits = limits
    cache = TreeCache(budget: cacheBytes)
  }

  /// Runs operations in order in one sequenced body, and logs what they wrote.
  ///
  /// - Parameter mayHold: whether operations that would take long may be put off.
  /// - Throws: only what makes the whole body fail: errors of the store. Everything is as it was before, then.
  func run(
    _ operations: [Operation], in writer: any SequencedTransaction, _ journal: SessionJournal, mayHold: Bool
  ) throws -> Pass {
    var held: Set<Int> = []
    var pass = try run(in: writer, journal, mayHold: mayHold) { body in
      for operation in operations where operation.takesTurns {
        body.mostTurnsLost = max(body.mostTurnsLost, operation.turnsLost)
      }
      for (position, operation) in operations.enumerated() {
        let before = body.held.count
        try body.run(operation)
        if body.held.count > before { held.insert(position) }
      }
    }
    pass.executed =
      held.isEmpty ? operations : operations.indices.filter { !held.contains($0) }.map { operations[$0] }
    return pass
  }

  /// Runs something in a sequenced body, and logs what it wrote.
  func run(
    in writer: any SequencedTransaction, _ journal: SessionJournal, mayHold: Bool = false,
    _ work: (inout SequencedBody) throws -> Void
  ) throws -> Pass {
    try confirmLast(in: writer)
    let writer = PassWriter(writer, generations, journal)
    var body = SequencedBody(
      tree: Tree(view: writer, cache: cache, limits: limits), writer: writer,
      now: Int64(writer.commitVersion.microseconds / 1000), sequencer: self, journal: journal,
      mayHold: mayHold)
    do {
      try work(&body)
      try body.log()
      unconfirmed = try writer.mark() ? (writer.commitVersion, journal) : nil
    } catch {
      takeBack([journal])
      throw error
    }
    return Pass(steps: body.steps, held: body.held, hasGarbage: writer.hasGarbage)
  }

  /// Finds out whether the last pass was committed, and takes it back if it was not.
  private func confirmLast(in view: any ReadView) throws {
    guard let last = unconfirmed else { return }
    if try view.get(RowKeys.mark)?.writtenAt != last.version { takeBack([last.journal]) }
    unconfirmed = nil
  }

  /// Carries out a read outside any connection, beside the sequencer: touches nothing but the policy and the limits.
  /// Nothing is left of a read that is too large for one look at the store.
  func read(_ operation: Operation, in view: any ReadView) throws -> [FanOutStep] {
    var body = SequencedBody(
      tree: Tree(view: try generations.durable.view(view), cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, journal: SessionJournal(), mayHold: true)
    try body.run(operation)
    return body.steps
  }

  /// Decides whether a caller may read a location, beside the sequencer.
  /// - Throws: ``RealtimeError``, or what the view throws.
  func mayRead(_ path: Path, _ caller: Caller, _ query: QuerySpec = .default, in view: any ReadView) throws {
    let body = SequencedBody(
      tree: Tree(view: try generations.durable.view(view), cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, journal: SessionJournal())
    try body.mayRead(path, query, caller)
  }

  /// Runs what does not write while the store cannot; writes are answered with the store's error.
  ///
  /// - Parameter journal: of an earlier attempt at the same: reads may be run again from the start.
  func run(
    _ operations: [Operation], reading view: any ReadView, failure: RealtimeError, _ journal: SessionJournal
  ) throws -> [FanOutStep] {
    journal.rollBack()
    var body = SequencedBody(
      tree: Tree(view: try generations.durable.view(view), cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, journal: journal, failure: failure)
    for operation in operations { try body.run(operation) }
    return body.steps
  }

  /// Runs one operation where no rows are yet; nil if it was allowed to write, which needs them.
  func attempt(_ operation: Operation, on view: any ReadView) throws -> [FanOutStep]? {
    let journal = SessionJournal()
    var body = SequencedBody(
      tree: Tree(view: try generations.durable.view(view), cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, journal: journal)
    try body.run(operation)
    guard body.missedWriter else { return body.steps }
    journal.rollBack()
    return nil
  }

  /// Takes back passes whose commits failed, given from the first to the last. No body may be running but the caller.
  func takeBack(_ journals: [SessionJournal]) {
    for journal in journals.reversed() { journal.rollBack() }
    cache.removeAll()
  }

  /// The large reads that are to hear of changes.
  var largeReads: LargeReads { cache.largeReads }

  /// Whoever listens to what a write at a path replaces.
  struct Audience {
    /// The listens at and above the path.
    var above: [(connection: ConnectionState, name: ListenName)] = []
    /// Those below it.
    var below: [(connection: ConnectionState, name: ListenName)] = []
  }

  /// Finds those who listen at, above and below a path. Visits every listen: for rare, large writes.
  func audience(of path: Path) -> Audience {
    var audience = Audience()
    for connection in sessions.values {
      for name in connection.session.listens.keys {
        if name.path.contains(path) {
          audience.above.append((connection, name))
        } else if path.contains(name.path) {
          audience.below.append((connection, name))
        }
      }
    }
    return audience
  }

  func register(_ connection: ConnectionState, _ journal: SessionJournal) {
    guard sessions[connection.name] !== connection else { return }
    sessions[connection.name] = connection
    journal.note { self.sessions[connection.name] = nil }
  }

  func unregister(_ session: String, _ journal: SessionJournal) -> ConnectionState? {
    guard let connection = sessions.removeValue(forKey: session) else { return nil }
    journal.note { self.sessions[session] = connection }
    return connection
  }
}
