// Represents one operation of a client or of the engine: its action, the recipient of its answer, and its
// progress.
//
// An operation starts as `queued`, and a batch answers it. If it needs slow work, the batch makes it `deferred`. A
// background job computes the result, and the operation is `queued` again with this result. Until then, later
// requests of the same connection are `blocked`.
//
// Invariant: only a queued operation enters a batch, and the batch that executes it answers it exactly once.

import Access
import RealtimeModel

/// A write as submitted. Paths may end in `.priority`, and values may be server values, which the sequencer
/// resolves.
enum RealtimeWrite: Sendable {
  case set(Path, Node)
  case update(Path, [(Path, Node)])
}

/// An operation and the destination of its answer.
///
/// Rare and large payloads are indirect, because a batch copies every operation several times. A payload with an existential
/// value would make each copy go through the runtime's metadata.
struct RealtimeOperation: Sendable {
  struct Listen: Sendable {
    let path: Path
    let query: QuerySpec
    let tag: Int64?
    let hash: String?
    let compoundHash: CompoundHash?
  }

  enum Action: Sendable {
    case write(RealtimeWrite, hash: String?)
    case get(Path, QuerySpec)
    case getShallow(Path, QuerySpec)
    case listen(Listen)
    case unlisten(Path, tag: Int64?)
    case onDisconnect(RealtimeWrite)
    case cancelOnDisconnect(Path)
    indirect case authenticate(Principal)
    case getSetting(Setting)
    case setSetting(Setting, String)
    case getRules
    /// Counts the values that a write would touch. A conditional write needs permission to read, too.
    case estimate(RealtimeWrite, isConditional: Bool, atMost: Int)
    indirect case setRules(StoredRules)
    /// Runs an administrator's task, which writes about `bytes` bytes.
    case administer(bytes: Int, @Sendable (BatchExecution) throws -> Void)
    /// Decides some of the open listens whose permission may have ended.
    case decideListens
    /// Ends the authentication of connections whose callers' credentials are revoked.
    case revoke([ConnectionState])
    /// Builds the next index rows.
    case buildIndexes
    case close
    /// Ends a session and performs its onDisconnect writes, whether or not its connection is still open.
    case takeOver(session: String, of: ConnectionState?)
    /// Installs an imported value at its location. Its rows are durable already.
    case installImport(Path, ImportedTree)
    /// Removes the entries of generations that have no rows (see `SubtreeGenerations`).
    case removeEmptyGenerations
    /// Gives the fan-out stage the complete value of a location whose windows were updated from rows.
    case switchToFullValue(Path)
    /// Does nothing. Its answer confirms that all earlier operations are durable.
    case barrier

    /// Whether the operation requires valid credentials. Operations that end a listen or a session, and
    /// operations of the server, are performed even after the credentials have expired.
    var needsCredentials: Bool {
      switch self {
      case .write, .get, .getShallow, .listen, .onDisconnect, .cancelOnDisconnect, .getSetting, .setSetting,
        .getRules, .estimate, .setRules, .administer, .installImport:
        true
      case .unlisten, .authenticate, .decideListens, .revoke, .buildIndexes, .close, .takeOver,
        .removeEmptyGenerations, .switchToFullValue, .barrier:
        false
      }
    }
  }

  enum Origin: Sendable {
    /// A connection, and the request number for the answer.
    case connection(ConnectionState, request: Int64?)
    /// A call outside any connection.
    indirect case call(Principal, @Sendable (Result<CallResult, RealtimeError>) -> Void)
  }

  enum CallResult: Sendable {
    /// The value of a set with its server values resolved; nil if the caller may not read it.
    case written(Node?)
    case stale(Node)
    case value(Node)
    case shallow(ShallowNode)
    case setting(String?)
    case rules(RulesFile?)
    case count(Int)
  }

  /// The position of an operation between submission and answer.
  enum Stage: Sendable {
    /// In the queue, ready for a batch.
    case queued
    /// Behind a deferred operation of the same connection.
    case blocked
    /// Out of the queue until the deferral ends.
    case deferred(Deferral)
  }

  let action: Action
  let origin: Origin
  /// Upper bound, in bytes, of the rows that it writes and of its part of the log record. Rows that it clears
  /// do not count.
  let weight: Int
  /// Cost in a batch, in units of one small write. Every answer of a batch waits for the work of all its
  /// operations.
  let cost: Int
  private(set) var stage = Stage.queued
  /// Results of the deferrals so far.
  var results = DeferralResults()
  /// The validated write, or the reason for its rejection. Only heavy writes, whose ``weight`` exceeds the limit for
  /// staging, are validated before the sequencer.
  private(set) var validated: Result<WriteRequest, RealtimeError>?
  /// Number of batches that had no time left for the operation.
  var timesSkipped = 0
  /// The database. This reference keeps it in memory until the operation is answered.
  var database: RealtimeDatabase?

  init(_ action: Action, from origin: Origin) {
    self.action = action
    self.origin = origin
    cost = if case .listen(let listen) = action { listen.isDefault ? 4 : 64 } else { 1 }
    weight =
      switch action {
      case .write(let write, _), .onDisconnect(let write): write.weight
      case .buildIndexes: 512 << 10
      case .setSetting(_, let text): 64 + text.utf8.count
      case .setRules(let rules): 64 + rules.file.text.utf8.count
      case .administer(let bytes, _): 64 + bytes
      default: 64
      }
  }

  /// The connection whose requests keep their order; nil for a call outside any connection.
  var connection: ConnectionState? {
    if case .connection(let connection, _) = origin { connection } else { nil }
  }

  /// The caller, as the executor knows it now. A connection's caller is nobody once its credentials have expired.
  var caller: Principal {
    switch origin {
    case .connection(let connection, _): connection.session.caller
    case .call(let caller, _): caller
    }
  }

  /// Whether nobody receives the result: the operation reads or listens for a closed connection.
  ///
  /// Writes and onDisconnect requests of a closed connection are still executed, for their caller.
  var isAbandoned: Bool {
    switch action {
    case .listen, .unlisten, .get, .getShallow: connection?.isClosed ?? false
    default: false
    }
  }

  /// Whether the operation ends a session, and therefore may never be dropped.
  var endsSession: Bool {
    switch action {
    case .close, .takeOver: true
    default: false
    }
  }

  /// The session that the operation ends, if it does.
  var endedSession: String? {
    switch action {
    case .close: connection?.name
    case .takeOver(let session, _): session
    default: nil
    }
  }

  /// Whether the operation may be skipped once the throttled operations of its batch have taken too long.
  /// Writes of the batch still run.
  ///
  /// Reads, cancellations of onDisconnect writes and background work are throttled. An operation whose value a deferral
  /// has already read is not throttled: until it runs, every change must also be applied to that value.
  var isThrottled: Bool {
    switch action {
    case .get, .getShallow, .listen, .buildIndexes, .switchToFullValue, .cancelOnDisconnect:
      results.location == nil && results.window == nil
    default: false
    }
  }

  // MARK: Stages

  /// A copy of the operation that is deferred for this reason.
  func deferred(_ deferral: Deferral) -> RealtimeOperation { moved(to: .deferred(deferral)) }

  /// A copy of the operation that is blocked behind a deferred operation of its connection.
  var blocked: RealtimeOperation { moved(to: .blocked) }

  /// A copy of the operation that is ready for a batch again.
  var requeued: RealtimeOperation { moved(to: .queued) }

  /// Whether a batch may execute the operation.
  var isQueued: Bool { if case .queued = stage { true } else { false } }

  /// The reason for the deferral; nil if the operation is not deferred.
  var deferral: Deferral? { if case .deferred(let deferral) = stage { deferral } else { nil } }

  private func moved(to stage: Stage) -> RealtimeOperation {
    var operation = self
    operation.stage = stage
    return operation
  }

  // MARK: Heavy writes

  /// Maximum bytes of JSON that the operation may carry.
  func maximumBytes(_ limits: RealtimeLimits) -> Int {
    if case .connection = origin { return limits.socketWriteBytes }
    return limits.restWriteBytes
  }

  /// Validates a heavy write on the thread that submits it, so that the sequencer does not have to.
  mutating func validateIfHeavy(_ limits: RealtimeLimits, _ staging: StagingLimits) {
    guard weight > staging.minimumStagedBytes, case .write(let write, _) = action else { return }
    let bytes = maximumBytes(limits)
    validated = Result { () throws(RealtimeError) in try WriteRequest(write, limits: limits, bytes: bytes) }
  }

  /// The weight of the commit that performs the write, once `staged` has been written in the background.
  func weight(without staged: StagedWrite) -> Int {
    guard case .success(let request)? = validated else { return weight }
    let size = request.changes.reduce(0) { $0 + $1.value.estimatedSize }
    var rest = 64 + RowWeight.logged(request.changes.count, estimatedSize: size)
    for (position, change) in request.changes.enumerated() {
      if let (_, deferred) = staged.changes[position] {
        // A server value resolves to a number.
        for path in deferred { rest += RowWeight.path(change.path.appending(path)) + 32 }
      } else {
        rest += RowWeight.change(change.path, change.value)
      }
    }
    return rest
  }
}

extension RealtimeOperation.Listen {
  /// Whether the listen shows the complete location and has no tag.
  var isDefault: Bool { tag == nil && query.showsAll }

  /// Whether the client sent a hash of the value that it holds.
  var isHashed: Bool { hash?.isEmpty == false }
}

extension RealtimeWrite {
  /// Upper bound, in bytes, of the rows that it writes and of its part of the log record.
  var weight: Int {
    switch self {
    case .set(let path, let node):
      return 64 + RowWeight.change(path, node) + RowWeight.logged(1, estimatedSize: node.estimatedSize)
    case .update(let path, let changes):
      let size = changes.reduce(0) { $0 + $1.1.estimatedSize }
      return changes.reduce(64 + RowWeight.logged(changes.count, estimatedSize: size)) {
        $0 + RowWeight.change(path.appending($1.0), $1.1)
      }
    }
  }
}
