// One read operation: the version that it reads, and its transaction.
//
// Invariant: all reads of a session see one version. A locking transaction acquires its locks before it
// reads, so it sees the newest durable state, which cannot change until the transaction ends.

import FirestoreModel
import OrderedStore

/// A read in progress.
struct ReadSession: Sendable {
  /// The version to read; nil for the newest, until the first read determines it.
  var version: Version?
  /// The transaction that the read belongs to; nil for none.
  var transaction: OpenTransaction?
  /// The token of the transaction that this read began.
  var newToken: [UInt8]?

  /// Whether reads are recorded for the transaction's commit.
  var keepsReads: Bool {
    guard let transaction else { return false }
    return transaction.mode != .readOnly
  }

  /// The lock mode; nil if the read does not lock.
  var locks: LockTable.Mode? {
    guard case .pessimistic(let mode)? = transaction?.mode, transaction?.hasLostLocks != true else {
      return nil
    }
    return mode
  }
}

extension FirestoreDatabase {
  /// Determines the state that a read sees.
  /// - Throws: INVALID_ARGUMENT or ABORTED for a token that the caller does not own or whose
  ///   transaction has ended, PERMISSION_DENIED if the caller may not begin the requested transaction.
  func beginRead(_ consistency: ReadConsistency, as caller: Caller) async throws -> ReadSession {
    switch consistency {
    case .latest:
      _ = await recentVersion()
      return ReadSession()
    case .readTime(let time): return ReadSession(version: try await version(at: time))
    case .transaction(let token):
      let session = session(try transactions.beginRequest(token, toCommit: false, as: caller))
      if session.version == nil { _ = await recentVersion() }
      return session
    case .newTransaction(let options):
      let token = try await begin(options, as: caller)
      var session = session(try transactions.beginRequest(token, toCommit: false, as: caller))
      session.newToken = token
      return session
    }
  }

  private func session(_ transaction: OpenTransaction) -> ReadSession {
    ReadSession(version: transaction.snapshot, transaction: transaction)
  }

  /// Begins a transaction. A transaction without locks reads the snapshot of its beginning.
  func begin(_ options: TransactionOptions, as caller: Caller) async throws -> [UInt8] {
    try await authoriseTransaction(as: caller)
    var snapshot: Version?
    switch options {
    case .readOnly(let time?): snapshot = try await version(at: time)
    case .readOnly(nil), .readWrite(_, .optimistic):
      snapshot = await recentVersion(keptFor: self.options.limits.transactionTimeoutSeconds)
    case .readWrite: break
    }
    return try transactions.begin(options, snapshot: snapshot, as: caller)
  }

  /// Asks the policy whether the caller may use transactions.
  /// - Throws: the policy's denial.
  func authoriseTransaction(as caller: Caller) async throws {
    guard !policy.allowsEverything(caller) else { return }
    try await rows.read(at: nil) { view in
      _ = try self.authorise(caller, .transact(self.name), in: view)
    }
  }

  /// The version of a read time.
  /// - Throws: INVALID_ARGUMENT for the future, for times before the database's creation, and for
  ///   nanoseconds.
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
      // Nothing was committed since. A reservation keeps it so: every later commit has a higher version.
      let reserved = try await rows.reserveVersion()
      if version > reserved {
        throw FirestoreError.invalidArgument("The requested 'read_time' cannot be in the future.")
      }
    }
    return version
  }

  /// Acquires a locking transaction's locks before it reads. Other reads do nothing.
  ///
  /// A transaction that cannot get the locks is marked aborted and continues reading without locks.
  func lock(_ session: inout ReadSession, keys: [Key] = [], ranges: [KeyRange] = []) async throws {
    guard let owner = session.transaction?.owner else { return }
    try transactions.checkReadLimits(owner, keys, ranges)
    guard let mode = session.locks else { return }
    let request = LockTable.ReadRequest(owner: owner, mode: mode, keys: keys, ranges: ranges)
    let now = options.clock.now()
    var outcome = LockTable.Outcome.timedOut
    var yieldsToWrites = true
    if let predecessor = session.transaction?.predecessor, transactions.current(predecessor) != nil {
      // The client retries this transaction, so it has abandoned the predecessor. The predecessor must not
      // block its retry.
      outcome = await locks.tryLock(
        request, until: now + options.lockWait, idleHolderTimeout: options.lockWait, yieldsToWrites: true)
      // One read yields only once.
      yieldsToWrites = false
      if outcome == .timedOut { transactions.end(predecessor, as: .aborted) }
    }
    if outcome == .timedOut {
      outcome = await locks.tryLock(
        request, until: now + EngineLimits.readLockTimeout, idleHolderTimeout: options.lockWait,
        yieldsToWrites: yieldsToWrites)
    }
    if outcome == .cancelled { throw CancellationError() }
    if outcome != .granted {
      transactions.markAborted(owner)
      locks.release(owner)
    }
    // The lease may have expired during the wait; then the new locks have no owner.
    guard let transaction = transactions.current(owner) else {
      locks.release(owner)
      throw FirestoreError.aborted(TransactionTable.expired)
    }
    session.transaction = transaction
    if transaction.hasLostLocks {
      locks.release(owner)
      session.version = transaction.snapshot
    }
  }

  /// Reads the session's state.
  func read<Result: Sendable>(
    _ session: inout ReadSession, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let (result, version) = try await rows.read(at: session.version) { view in
      (try body(view), view.version)
    }
    precondition(
      session.version.map { $0 == version } ?? true, "invariant: all reads of a session see one version")
    if session.version == nil, session.locks != nil, let owner = session.transaction?.owner,
      let transaction = transactions.recordRead(owner, at: version), transaction.hasLostLocks
    {
      // The locks were lost, perhaps before this read. Earlier reads determine the visible state.
      session.transaction = transaction
      if let snapshot = transaction.snapshot, snapshot != version {
        session.version = snapshot
        return try await read(&session, body)
      }
    }
    session.version = version
    return result
  }

  /// Ends a read and records its keys and ranges with the transaction.
  func endRead(_ session: ReadSession, keys: [Key] = [], ranges: [KeyRange] = []) {
    guard let owner = session.transaction?.owner else { return }
    guard let version = session.version else {
      transactions.endRequest(owner)
      return
    }
    transactions.endRequest(owner, read: ReadSet(version: version, keys: keys, ranges: ranges))
  }

  /// Ends a failed read. A transaction that the read itself began ends too, since the client does not know
  /// it.
  func failRead(_ session: ReadSession) {
    endRead(session)
    if session.newToken != nil, let owner = session.transaction?.owner {
      transactions.end(owner, as: .failed)
    }
  }

  /// Asks the policy about a read, inside the read.
  /// - Throws: the policy's denial.
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

/// The documents that a policy may read during a read.
struct ReadAccessView: AccessView {
  let view: any ReadView

  func document(_ name: DocumentName) throws -> StoredDocument? { try view.document(name) }
  func documentAfter(_ name: DocumentName) throws -> StoredDocument? { try view.document(name) }
  var time: Timestamp { view.version.timestamp }
}
