// The session of one read request: the version that it reads, and its transaction.
//
// Invariant: all reads of a session see the same version. A locking transaction acquires locks before it
// reads, so it reads the newest durable version. The locked documents and ranges cannot change until the
// transaction ends or loses its locks.

import Access
import FirestoreModel
import OrderedStore

/// A read in progress.
struct ReadSession: Sendable {
  /// The version to read. Nil for the newest version, until the first read sets it.
  var version: Version?
  /// The transaction that the read belongs to; nil for none.
  var transaction: OpenTransaction?
  /// The token of the transaction that this read began.
  var newToken: [UInt8]?
  /// Whether this read has acquired locks.
  var hasLocked = false

  /// Whether reads are recorded, to be validated at the transaction's commit.
  var recordsReads: Bool {
    guard let transaction else { return false }
    return transaction.mode != .readOnly
  }

  /// The lock mode; nil if the read does not lock.
  var lockMode: LockTable.Mode? {
    guard case .pessimistic(let mode)? = transaction?.mode, transaction?.hasLostLocks != true else {
      return nil
    }
    return mode
  }
}

extension FirestoreDatabase {
  /// Begins a read: determines the version that it reads, and its transaction.
  ///
  /// If the read locks or reads a fixed version, the policy first decides about the operations on the newest state. This
  /// happens before the read takes locks and before anything that depends on stored versions.
  /// - Parameter operations: the operations that the read performs.
  /// - Throws: INVALID_ARGUMENT or ABORTED for a token that the caller does not own or whose
  ///   transaction has ended, the policy's denial of the operations or of the requested transaction.
  func beginRead(
    _ consistency: ReadConsistency, _ operations: @autoclosure () -> [AuthorizedOperation],
    as caller: Principal
  ) async throws -> ReadSession {
    var session = ReadSession()
    switch consistency {
    case .latest:
      _ = await recentVersion()
      return session
    case .readTime(let time):
      try await authoriseNow(operations())
      return ReadSession(version: try await version(at: time))
    case .transaction(let token):
      session = self.session(try transactions.beginRequest(token, toCommit: false, as: caller))
      if session.version == nil { _ = await recentVersion() }
    case .newTransaction(let options):
      let token = try await begin(options, as: caller)
      session = self.session(try transactions.beginRequest(token, toCommit: false, as: caller))
      session.newToken = token
    }
    do {
      if session.lockMode != nil || session.version != nil { try await authoriseNow(operations()) }
    } catch {
      failRead(session, error)
      throw error
    }
    return session
  }

  private func session(_ transaction: OpenTransaction) -> ReadSession {
    ReadSession(version: transaction.snapshot, transaction: transaction)
  }

  /// Begins a transaction. A transaction without locks reads the snapshot that exists when it begins, or the
  /// requested read time.
  func begin(_ options: TransactionOptions, as caller: Principal) async throws -> [UInt8] {
    try await authoriseWithoutData(caller, .transaction)
    var snapshot: Version?
    switch options {
    case .readOnly(let time?): snapshot = try await version(at: time)
    case .readOnly(nil), .readWrite(_, .optimistic):
      snapshot = await recentVersion(readableFor: self.options.limits.transactionTimeoutSeconds)
    case .readWrite: break
    }
    return try transactions.begin(options, snapshot: snapshot, as: caller)
  }

  /// The version of a read time.
  /// - Throws: INVALID_ARGUMENT for times in the future, before the database's creation, outside the range of timestamps,
  ///   or with fractions of a microsecond.
  private func version(at time: Timestamp) async throws -> Version {
    guard time.isInRange else {
      throw FirestoreError.invalidArgument(
        "The requested 'read_time' must lie in the years 1 to 9999, with 0 to 999,999,999 nanoseconds.")
    }
    guard time.nanoseconds.isMultiple(of: 1000) else {
      throw FirestoreError.invalidArgument("The requested 'read_time' must be in whole microseconds.")
    }
    let version = Version(time)
    if version < rows.createdVersion {
      throw FirestoreError.invalidArgument(
        "The requested 'read_time' lies before the creation of the database.")
    }
    if version > rows.latestVersion {
      // Nothing was committed after the last version so far. The reservation gives every later commit a
      // higher version, so the state at `version` cannot change any more.
      let reserved = try await rows.reserveVersion()
      if version > reserved {
        throw FirestoreError.invalidArgument("The requested 'read_time' cannot be in the future.")
      }
    }
    return version
  }

  /// Acquires a locking transaction's locks before it reads. Does nothing for other reads.
  ///
  /// If the transaction cannot get the locks, it loses all its locks. Then it continues to read the version that it has
  /// read so far, and its commit will fail.
  func lock(_ session: inout ReadSession, keys: [Key] = [], ranges: [KeyRange] = []) async throws {
    guard let owner = session.transaction?.owner else { return }
    try transactions.checkReadLimits(owner, keys, ranges)
    guard let mode = session.lockMode else { return }
    let request = LockTable.ReadRequest(owner: owner, mode: mode, keys: keys, ranges: ranges)
    let now = options.clock.now()
    var outcome = LockTable.Outcome.timedOut
    var yieldsToWrites = true
    if let predecessor = session.transaction?.predecessor, transactions.current(predecessor) != nil {
      // The client retries this transaction, so it has abandoned the predecessor. The predecessor must not
      // block its retry.
      outcome = await locks.tryLock(
        request, until: now + options.lockWait, idleHolderTimeout: options.lockWait, yieldsToWrites: true)
      // A read yields to waiting writes only once.
      yieldsToWrites = false
      if outcome == .timedOut { transactions.end(predecessor, as: .aborted) }
    }
    if outcome == .timedOut {
      outcome = await locks.tryLock(
        request, until: now + EngineLimits.readLockTimeout, idleHolderTimeout: options.lockWait,
        yieldsToWrites: yieldsToWrites)
    }
    if outcome == .cancelled { throw CancellationError() }
    if outcome == .granted {
      session.hasLocked = true
    } else {
      transactions.markLocksLost(owner)
      locks.release(owner)
    }
    // The transaction may have timed out during the wait. Then its new locks must be released.
    guard let transaction = transactions.current(owner) else {
      locks.release(owner)
      throw FirestoreError.aborted(TransactionTable.expiredMessage)
    }
    session.transaction = transaction
    if transaction.hasLostLocks {
      locks.release(owner)
      session.version = transaction.snapshot
    }
  }

  /// Reads at the session's version.
  func read<Result: Sendable>(
    _ session: inout ReadSession, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let (result, version) = try await rows.read(at: session.version) { view in
      (try body(view), view.version)
    }
    precondition(
      session.version.map { $0 == version } ?? true, "invariant: all reads of a session see one version")
    if session.version == nil, session.lockMode != nil, let owner = session.transaction?.owner,
      let transaction = transactions.recordRead(owner, at: version), transaction.hasLostLocks
    {
      // The transaction lost its locks, perhaps before this read. So it must read the version of its earlier
      // reads.
      session.transaction = transaction
      if let snapshot = transaction.snapshot, snapshot != version {
        session.version = snapshot
        return try await read(&session, body)
      }
    }
    session.version = version
    return result
  }

  /// Lets the policy decide about an operation at the session's version, in several reads if that takes long.
  /// - Throws: the policy's denial.
  func authorise(_ authorised: AuthorizedOperation, _ session: inout ReadSession) async throws {
    if isAllowed(authorised) { return }
    var part = DecisionPart.start
    var policy: PinnedPolicy<FirestoreAccess>?
    while true {
      let (current, first) = (part, policy)
      let (decision, pinned) = try await read(&session) { view in
        let pinned = first ?? self.policies.current
        return (try self.authorise(authorised, current, by: pinned, in: view), pinned)
      }
      guard case .unfinished(let rest) = decision else { return }
      (part, policy) = (rest, pinned)
      try Task.checkCancellation()
    }
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

  /// Ends a failed read. If the read began its transaction, the transaction ends too, since the client never
  /// receives its token. If the read was denied under its locks, its transaction loses all locks, so that a denied read
  /// delays no other request.
  func failRead(_ session: ReadSession, _ error: any Error) {
    endRead(session)
    if session.hasLocked, let owner = session.transaction?.owner, FirestoreDatabase.isDenial(error) {
      transactions.markLocksLost(owner)
      locks.release(owner)
    }
    if session.newToken != nil, let owner = session.transaction?.owner {
      transactions.end(owner, as: .failed)
    }
  }
}
