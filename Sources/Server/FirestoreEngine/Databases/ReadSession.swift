// One read operation: which state it sees, and what it leaves with its transaction.
//
// Invariant: all reads of a session see one version. A locking transaction's session holds its locks before it looks,
// so what it sees is the newest durable state and stays so until the transaction ends.

import FirestoreModel
import OrderedStore

/// A read under way.
struct ReadSession: Sendable {
  /// The version that is read; nil for the newest, until the first read has settled it.
  var version: Version?
  /// The transaction that the read belongs to.
  var transaction: OpenTransaction?
  /// The token of the transaction that the read began itself.
  var newToken: [UInt8]?

  /// Whether what is read is kept for the transaction's commit.
  var keepsReads: Bool {
    guard let transaction else { return false }
    return transaction.mode != .readOnly
  }

  /// Whether the read holds locks.
  var locks: LockTable.Mode? {
    guard case .pessimistic(let mode)? = transaction?.mode, transaction?.isDoomed != true else { return nil }
    return mode
  }
}

extension FirestoreDatabase {
  /// Settles which state a read sees.
  /// - Throws: INVALID_ARGUMENT or ABORTED for a token that is not the caller's or not any more, PERMISSION_DENIED if the
  ///   caller may not begin the transaction that the read asks for.
  func beginRead(_ consistency: ReadConsistency, as caller: Caller) async throws -> ReadSession {
    switch consistency {
    case .latest:
      _ = await recentVersion()
      return ReadSession()
    case .readTime(let time): return ReadSession(version: try await version(at: time))
    case .transaction(let token):
      let session = session(try transactions.enter(token, toCommit: false, as: caller))
      if session.version == nil { _ = await recentVersion() }
      return session
    case .newTransaction(let options):
      let token = try await begin(options, as: caller)
      var session = session(try transactions.enter(token, toCommit: false, as: caller))
      session.newToken = token
      return session
    }
  }

  private func session(_ transaction: OpenTransaction) -> ReadSession {
    ReadSession(version: transaction.snapshot, transaction: transaction)
  }

  /// Begins a transaction. Unless it locks, its snapshot is that of its beginning.
  func begin(_ options: TransactionOptions, as caller: Caller) async throws -> [UInt8] {
    try await authoriseTransaction(as: caller)
    var snapshot: Version?
    switch options {
    case .readOnly(let time?): snapshot = try await version(at: time)
    case .readOnly(nil), .readWrite(_, .optimistic):
      snapshot = await recentVersion(keptFor: self.options.limits.transactionSeconds)
    case .readWrite: break
    }
    return try transactions.begin(options, snapshot: snapshot, as: caller)
  }

  /// Refuses unless the policy allows transactions.
  func authoriseTransaction(as caller: Caller) async throws {
    guard !policy.allowsEverything(caller) else { return }
    try await rows.read(at: nil) { view in
      _ = try self.authorise(caller, .transact(self.name), in: view)
    }
  }

  /// The version that a read time stands for.
  /// - Throws: INVALID_ARGUMENT for the future, for before the database's creation, and for nanoseconds.
  private func version(at time: Timestamp) async throws -> Version {
    guard time.isInRange, time.nanoseconds.isMultiple(of: 1000) else {
      throw FirestoreError.invalidArgument("The requested 'read_time' must be in whole microseconds.")
    }
    let version = Version(time)
    if version < rows.createdVersion {
      throw FirestoreError.invalidArgument(
        "The requested 'read_time' lies before the creation of the database.")
    }
    if version > rows.latestVersion {
      // Nothing has been committed since. A reservation keeps it so: every later commit lies above.
      let reserved = try await rows.reserveVersion()
      if version > reserved {
        throw FirestoreError.invalidArgument("The requested 'read_time' cannot be in the future.")
      }
    }
    return version
  }

  /// Takes a locking transaction's locks before it reads; nothing for other reads.
  ///
  /// One that cannot have them is doomed, and reads on without.
  func lock(_ session: inout ReadSession, keys: [Key] = [], ranges: [KeyRange] = []) async throws {
    guard let owner = session.transaction?.owner else { return }
    try transactions.admit(owner, keys, ranges)
    guard let mode = session.locks else { return }
    let request = LockTable.ReadRequest(owner: owner, mode: mode, keys: keys, ranges: ranges)
    let now = options.clock.now()
    var outcome = LockTable.Outcome.timedOut
    var givesWay = true
    if let predecessor = session.transaction?.predecessor, transactions.current(predecessor) != nil {
      // Its client has given it up and should have said so by now: it may not hold up its own retry.
      outcome = await locks.tryLock(
        request, until: now + options.lockWait, patience: options.lockWait, givesWay: true)
      // Once is enough for one read.
      givesWay = false
      if outcome == .timedOut { transactions.end(predecessor, as: .aborted) }
    }
    if outcome == .timedOut {
      outcome = await locks.tryLock(
        request, until: now + EngineLimits.readLockWait, patience: options.lockWait, givesWay: givesWay)
    }
    if outcome == .cancelled { throw CancellationError() }
    if outcome != .granted {
      transactions.doom(owner)
      locks.release(owner)
    }
    // The lease may have ended while waiting; then the locks just taken belong to nobody.
    guard let transaction = transactions.current(owner) else {
      locks.release(owner)
      throw FirestoreError.aborted(TransactionTable.expired)
    }
    session.transaction = transaction
    if transaction.isDoomed {
      locks.release(owner)
      session.version = transaction.snapshot
    }
  }

  /// Looks at the session's state.
  func read<Result: Sendable>(
    _ session: inout ReadSession, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let (result, version) = try await rows.read(at: session.version) { view in
      (try body(view), view.version)
    }
    if session.version == nil, session.locks != nil, let owner = session.transaction?.owner,
      let transaction = transactions.settle(owner, at: version), transaction.isDoomed
    {
      // The locks were lost, perhaps before the look: what was seen earlier decides what goes on being seen.
      session.transaction = transaction
      if let snapshot = transaction.snapshot, snapshot != version {
        session.version = snapshot
        return try await read(&session, body)
      }
    }
    session.version = version
    return result
  }

  /// Ends a read and leaves what it read with its transaction.
  func endRead(_ session: ReadSession, keys: [Key] = [], ranges: [KeyRange] = []) {
    guard let owner = session.transaction?.owner else { return }
    guard let version = session.version else {
      transactions.leave(owner)
      return
    }
    transactions.leave(owner, read: ReadSet(version: version, keys: keys, ranges: ranges))
  }

  /// Ends a read that failed. A transaction that it began itself ends with it, since the client does not know it.
  func failRead(_ session: ReadSession) {
    endRead(session)
    if session.newToken != nil, let owner = session.transaction?.owner {
      transactions.end(owner, as: .failed)
    }
  }

  /// Refuses unless the policy allows a read. Called inside the read.
  func authorise(
    _ caller: Caller, _ operation: AccessOperation, found: StoredDocument? = nil, in view: any ReadView
  ) throws -> AccessDecision {
    guard !policy.allowsEverything(caller) else { return .allowed }
    let decision = try policy.decide(
      caller, operation, before: found, after: nil, view: ReadAccessView(view: view))
    if let denial = decision.denial { throw denial }
    return decision
  }
}

/// What a policy sees inside a read.
struct ReadAccessView: AccessView {
  let view: any ReadView

  func document(_ name: DocumentName) throws -> StoredDocument? { try view.document(name) }
  func documentAfter(_ name: DocumentName) throws -> StoredDocument? { try view.document(name) }
  var time: Timestamp { view.version.timestamp }
}
