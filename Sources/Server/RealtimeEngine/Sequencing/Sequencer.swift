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

  /// Carries out a read outside any connection, beside the sequencer: touches nothing but the policy and the limits.
  func read(_ operation: Operation, in view: any ReadView) throws -> [FanOutStep] {
    var body = SequencedBody(
      tree: Tree(view: view, cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self)
    try body.run(operation)
    return body.steps
  }

  /// Runs what does not write while the store cannot; writes are answered with the store's error.
  func run(_ operations: [Operation], reading view: any ReadView, failure: RealtimeError) throws
    -> [FanOutStep]
  {
    var body = SequencedBody(
      tree: Tree(view: view, cache: nil, limits: limits), writer: nil,
      now: Int64(view.version.microseconds / 1000), sequencer: self, failure: failure)
    for operation in operations { try body.run(operation) }
    return body.steps
  }

  /// Runs something else than operations in a sequenced body, and logs what it wrote.
  func run(in writer: any Sequenced, _ work: (inout SequencedBody) throws -> Void) throws {
    var body = SequencedBody(
      tree: Tree(view: writer, cache: nil, limits: limits), writer: writer,
      now: Int64(writer.commitVersion.microseconds / 1000), sequencer: self)
    try work(&body)
    try body.log()
  }

  /// Forgets what a body that failed may have left in memory.
  func bodyFailed() {
    cache.removeAll()
    isInside = false
  }

  func register(_ connection: ConnectionState) { sessions[connection.name] = connection }
  func unregister(_ session: String) -> ConnectionState? { sessions.removeValue(forKey: session) }
}
