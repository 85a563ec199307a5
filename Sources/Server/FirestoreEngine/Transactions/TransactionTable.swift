// The open transactions of one database with their reads, and the remembered outcomes of ended transactions.
//
// Invariant: a transaction is in exactly one phase. Only an active transaction reads or commits, and ending
// it releases its locks. A token is valid for its owner only. A transaction's lease limits its idle time and
// its total time (`EngineLimits`). When the lease expires, the transaction ends.

import Access
import FirestoreModel
import Locking
import OrderedStore

/// How a transaction keeps its reads valid.
enum TransactionMode: Sendable, Equatable {
  /// Locks its reads. A transaction that retries an aborted one locks exclusively.
  case pessimistic(LockTable.Mode)
  /// Reads one snapshot without locks. The commit validates that the reads did not change.
  case optimistic
  /// Reads one snapshot and does not write.
  case readOnly
}

/// The properties of an open transaction that its requests need.
struct OpenTransaction: Sendable {
  var owner: LockTable.Owner
  var mode: TransactionMode
  /// The snapshot that all reads see; nil until the first read, and while the transaction's locks keep its reads valid.
  var snapshot: Version?
  /// The reads to validate; set when the transaction commits.
  var reads = ReadSet(version: .zero)
  /// The earlier attempt that this transaction retries, if that attempt was still open and may hold locks.
  var predecessor: LockTable.Owner?
  /// Whether it lost its locks to another transaction. Its later reads see the version that it has read so far.
  /// Only its commit fails with ABORTED, because clients retry only after a failed commit.
  var hasLostLocks = false
}

/// All transactions of one database.
final class TransactionTable: Sendable {
  enum Phase: Sendable { case active, committing, committed, rolledBack, expired, failed, aborted }

  struct Entry {
    var transaction: OpenTransaction
    var reads = TransactionReads()
    var phase: Phase
    var began: UInt64
    /// Its idle and total timeouts.
    let lease: Lease
    var lastUse: UInt64
    /// The number of requests in progress. The idle timeout runs only while it is 0.
    var requests = 0
  }

  /// The idle and total timeouts of a transaction, in microseconds.
  struct Lease {
    let idle: UInt64
    let total: UInt64
  }

  /// The remembered outcome of an ended transaction.
  struct Ended {
    var phase: Phase
    var age: UInt64
  }

  struct State {
    var open: [UInt64: Entry] = [:]
    var ended: [UInt64: Ended] = [:]
    /// Bytes of the reads of all open transactions.
    var readBytes = 0
    /// The ids of ended transactions, in the order in which they ended. Those before `endedStart` are forgotten.
    var endedOrder: [UInt64] = []
    var endedStart = 0
    var nextID: UInt64 = 1
    var isSweeping = false
  }

  private let name: DatabaseName
  private let epoch: UInt64
  private let signer: TokenSigner
  private let clock: any EngineClock
  private let lease: Lease
  private let maximumOpen: Int
  private let state = Guarded(State())
  /// Releases an ended transaction's locks.
  private let release: @Sendable (LockTable.Owner) -> Void

  init(
    name: DatabaseName, epoch: UInt64, signer: TokenSigner, clock: any EngineClock, limits: EngineLimits,
    release: @escaping @Sendable (LockTable.Owner) -> Void
  ) {
    self.name = name
    self.epoch = epoch
    self.signer = signer
    self.clock = clock
    lease = Lease(idle: limits.transactionIdleTimeout, total: limits.transactionTimeout)
    maximumOpen = limits.maximumOpenTransactions
    self.release = release
  }

  static let invalid = FirestoreError.invalidArgument("Invalid transaction.")
  static let expiredMessage = "The referenced transaction has expired or is no longer valid."

  // MARK: Beginning

  /// Begins a transaction and returns its token.
  /// - Throws: INVALID_ARGUMENT for an invalid `retry_transaction`, RESOURCE_EXHAUSTED if too many are open.
  func begin(_ options: TransactionOptions, snapshot: Version?, as caller: Principal) throws -> [UInt8] {
    let tokenOwner = TokenOwner(caller, in: name)
    var predecessor: LockTable.Owner?
    var mode = TransactionMode.readOnly
    if case .readWrite(let retrying, let concurrency) = options {
      mode = concurrency == .optimistic ? .optimistic : .pessimistic(.shared)
      if let retrying {
        predecessor = try self.predecessor(retrying, tokenOwner)
        if concurrency != .optimistic { mode = .pessimistic(.exclusive) }
      }
    }
    let now = clock.now()
    // Rules do not decide whether a transaction begins. So callers other than service accounts may use only half of the
    // transactions.
    let maximum = caller.role == nil ? maximumOpen / 2 : maximumOpen
    let (id, startsSweeper) = try state.withLock { state -> (UInt64, Bool) in
      guard state.open.count < maximum else {
        throw FirestoreError.resourceExhausted(
          "Too many transactions are open: a database may have \(maximum)"
            + (caller.role == nil ? " before a caller without a role begins another." : "."))
      }
      let id = state.nextID
      state.nextID += 1
      let owner = LockTable.Owner(id: id, age: predecessor?.age ?? id)
      let isLive = predecessor.map { state.open[$0.id] != nil } ?? false
      let transaction = OpenTransaction(
        owner: owner, mode: mode, snapshot: snapshot, predecessor: isLive ? predecessor : nil)
      state.open[id] = Entry(
        transaction: transaction, phase: .active, began: now, lease: lease, lastUse: now)
      defer { state.isSweeping = true }
      return (id, !state.isSweeping)
    }
    if startsSweeper { startSweeper() }
    return TransactionToken(epoch: epoch, id: id, in: name).bytes(signer, for: tokenOwner)
  }

  /// The earlier attempt that a new transaction retries; nil if the table no longer remembers the attempt.
  ///
  /// This does not end the attempt. The Python SDK stores the transaction id in the decorated function, so
  /// threads that share the function may name each other's open transactions here. The attempt ends only if
  /// it blocks the retry's reads.
  private func predecessor(_ token: [UInt8], _ tokenOwner: TokenOwner) throws -> LockTable.Owner? {
    guard let id = try issuedID(in: token, to: tokenOwner) else { return nil }
    return state.withLock { state in
      state.open[id]?.transaction.owner ?? state.ended[id].map { LockTable.Owner(id: id, age: $0.age) }
    }
  }

  /// The id in a token that this process issued to the owner for this database; nil for a token of an earlier
  /// process.
  /// - Throws: INVALID_ARGUMENT for a token that was never issued, or was issued to another caller.
  private func issuedID(in bytes: [UInt8], to tokenOwner: TokenOwner) throws(FirestoreError) -> UInt64? {
    guard let token = TransactionToken(bytes) else { throw TransactionTable.invalid }
    let expected = TransactionToken(epoch: token.epoch, id: token.id, in: name)
    guard token.project == expected.project else { throw TransactionTable.invalid }
    guard token.database == expected.database else {
      throw FirestoreError.aborted(TransactionTable.expiredMessage)
    }
    guard TransactionToken.isAuthentic(bytes, signer, for: tokenOwner) else { throw TransactionTable.invalid }
    guard token.epoch == epoch else { return nil }
    return token.id
  }

  // MARK: Use

  /// Begins a request of an active transaction. The idle timeout pauses until `endRequest`.
  /// - Throws: for an ended transaction, the error that Firestore returns for the way it ended.
  func beginRequest(_ token: [UInt8], toCommit: Bool, as caller: Principal) throws -> OpenTransaction {
    guard let id = try issuedID(in: token, to: TokenOwner(caller, in: name)) else {
      throw FirestoreError.aborted(TransactionTable.expiredMessage)
    }
    expireIfDue(id)
    return try state.withLock { state in
      if var entry = state.open[id] {
        guard entry.phase == .active else { throw FirestoreError.aborted(TransactionTable.expiredMessage) }
        if toCommit, entry.transaction.hasLostLocks {
          state.end(id, as: .aborted)
          throw LockTable.contention
        }
        entry.requests += 1
        if toCommit {
          entry.phase = .committing
          entry.transaction.reads = entry.reads.readSet
        }
        state.open[id] = entry
        return entry.transaction
      }
      switch state.ended[id]?.phase {
      case .failed, .committed, .rolledBack:
        throw FirestoreError.invalidArgument(TransactionTable.expiredMessage)
      case .aborted: throw LockTable.contention
      default: throw FirestoreError.aborted(TransactionTable.expiredMessage)
      }
    }
  }

  /// Checks, before a read, that a transaction may read more.
  /// - Throws: INVALID_ARGUMENT if the transaction would exceed its limit, RESOURCE_EXHAUSTED if all
  ///   transactions together would.
  func checkReadLimits(_ owner: LockTable.Owner, _ keys: [Key], _ ranges: [KeyRange]) throws(FirestoreError) {
    if let readLimitError = state.withLock({ $0.readLimitError(of: keys, ranges, by: owner) }) {
      throw readLimitError
    }
  }

  /// Adds reads that `checkReadLimits` could not check before, because the request had to read to find them.
  /// - Throws: as `checkReadLimits`.
  func add(_ owner: LockTable.Owner, _ reads: ReadSet) throws(FirestoreError) {
    let readLimitError = state.withLock { state in
      let readLimitError = state.readLimitError(of: reads.keys, reads.ranges, by: owner)
      if readLimitError == nil { state.change(owner) { entry in entry.add(reads) } }
      return readLimitError
    }
    if let readLimitError { throw readLimitError }
  }

  /// Ends a request of a transaction and records its reads.
  func endRequest(_ owner: LockTable.Owner, read: ReadSet? = nil) {
    let now = clock.now()
    state.withLock { state in
      state.change(owner) { entry in
        entry.requests -= 1
        precondition(entry.requests >= 0, "invariant: a request ends once")
        entry.lastUse = now
        guard let read else { return }
        entry.add(read)
        // Locks keep a pessimistic transaction's reads valid. A transaction without locks continues to read
        // the version of its first read.
        var isLocked = false
        if case .pessimistic = entry.transaction.mode { isLocked = !entry.transaction.hasLostLocks }
        if !isLocked, entry.transaction.snapshot == nil { entry.transaction.snapshot = read.version }
      }
    }
  }

  /// Records that a transaction lost its locks, or is about to lose them. All its reads are valid at the
  /// version of its latest read, so its later reads return that version.
  func markLocksLost(_ owner: LockTable.Owner) {
    state.withLock { state in
      guard let version = state.open[owner.id]?.reads.version else { return }
      state.open[owner.id]?.transaction.hasLostLocks = true
      if version > .zero { state.open[owner.id]?.transaction.snapshot = version }
    }
  }

  /// Records the version of a read under locks. Returns the transaction, or nil if it has ended.
  ///
  /// While the transaction has its locks, all its reads are valid at the new version. If `markLocksLost` was
  /// called first, the recorded version does not change.
  func recordRead(_ owner: LockTable.Owner, at version: Version) -> OpenTransaction? {
    state.withLock { state in
      guard let transaction = state.open[owner.id]?.transaction else { return nil }
      if !transaction.hasLostLocks { state.open[owner.id]?.reads.recordVersion(version) }
      return transaction
    }
  }

  /// The transaction's current state; nil if it has ended.
  func current(_ owner: LockTable.Owner) -> OpenTransaction? {
    state.withLock { $0.open[owner.id]?.transaction }
  }

  /// The time since which a transaction has had no request in progress. Nil while a request is in progress,
  /// and after the transaction has ended.
  func idleSince(_ owner: LockTable.Owner) -> UInt64? {
    state.withLock { state in
      guard let entry = state.open[owner.id], entry.requests == 0 else { return nil }
      return entry.lastUse
    }
  }

  /// The number of open transactions.
  var openCount: Int { state.withLock { $0.open.count } }

  /// Ends a transaction and releases its locks.
  func end(_ owner: LockTable.Owner, as phase: Phase) {
    state.withLock { $0.end(owner.id, as: phase) }
    release(owner)
  }

  /// Ends a transaction of the caller whose commit failed before it reached the table. Ignores ended
  /// transactions, those with a commit in progress, and those of other callers.
  func fail(_ token: [UInt8], as caller: Principal) {
    guard let id = try? issuedID(in: token, to: TokenOwner(caller, in: name)) else { return }
    let owner: LockTable.Owner? = state.withLock { state in
      guard let entry = state.open[id], entry.phase == .active else { return nil }
      state.end(id, as: .failed)
      return entry.transaction.owner
    }
    if let owner { release(owner) }
  }

  /// Rolls a transaction back.
  /// - Throws: ABORTED if it has expired or its commit is in progress, INVALID_ARGUMENT if it has committed or was never
  ///   issued to the caller.
  func rollBack(_ token: [UInt8], as caller: Principal) throws {
    guard let id = try issuedID(in: token, to: TokenOwner(caller, in: name)) else {
      throw FirestoreError.aborted(TransactionTable.expiredMessage)
    }
    expireIfDue(id)
    let owner = try state.withLock { state -> LockTable.Owner? in
      if let entry = state.open[id] {
        guard entry.phase == .active else { throw FirestoreError.aborted(TransactionTable.expiredMessage) }
        state.end(id, as: .rolledBack)
        return entry.transaction.owner
      }
      switch state.ended[id]?.phase {
      case .rolledBack, .failed, .aborted: return nil
      case .committed: throw FirestoreError.invalidArgument(TransactionTable.expiredMessage)
      default: throw FirestoreError.aborted(TransactionTable.expiredMessage)
      }
    }
    if let owner { release(owner) }
  }

  // MARK: Leases

  /// Ends a transaction whose lease has expired, if the sweeper (the task that ends expired transactions) has not done so.
  private func expireIfDue(_ id: UInt64) {
    let now = clock.now()
    let owner: LockTable.Owner? = state.withLock { state in
      guard let entry = state.open[id], entry.phase == .active, entry.deadline <= now else { return nil }
      state.end(id, as: .expired)
      return entry.transaction.owner
    }
    if let owner { release(owner) }
  }

  /// Ends all transactions with expired leases. Returns the current time.
  private func expireDue() -> UInt64 {
    let now = clock.now()
    let owners = state.withLock { state in
      var owners: [LockTable.Owner] = []
      for (id, entry) in state.open where entry.phase == .active && entry.deadline <= now {
        owners.append(entry.transaction.owner)
        state.end(id, as: .expired)
      }
      return owners
    }
    for owner in owners { release(owner) }
    return now
  }

  /// Starts the sweeper: a task that ends transactions when their leases expire. It runs while transactions
  /// are open.
  private func startSweeper() {
    Task { [weak self, clock] in
      // A sweep scans all transactions, so sweeps are at least 50 ms apart.
      var earliest: UInt64 = 0
      while true {
        guard let deadline = self?.nextDeadline() else { return }
        do { try await clock.sleep(until: max(deadline, earliest)) } catch { return }
        guard let now = self?.expireDue() else { return }
        earliest = now + 50_000
      }
    }
  }

  private func nextDeadline() -> UInt64? {
    let now = clock.now()
    return state.withLock { state in
      guard !state.open.isEmpty else {
        state.isSweeping = false
        return nil
      }
      return state.open.values.map { entry in
        // A commit in progress does not expire. The sweeper checks the transaction again in a second.
        guard entry.phase == .active else { return now + 1_000_000 }
        // A request in progress may end at any time, and then the idle timeout starts. It cannot expire
        // before now + idle timeout.
        return entry.requests > 0 ? min(entry.deadline, now + entry.lease.idle) : entry.deadline
      }.min()
    }
  }
}

extension TransactionTable.Entry {
  var deadline: UInt64 {
    let total = began + lease.total
    return requests > 0 ? total : min(total, lastUse + lease.idle)
  }

  /// Adds reads. For a read-only transaction, which needs no validation, records only the version.
  fileprivate mutating func add(_ read: ReadSet) {
    if transaction.mode == .readOnly { reads.recordVersion(read.version) } else { reads.add(read) }
  }
}

extension TransactionTable.State {
  /// The error if the reads would exceed a limit; nil if they do not, or if the transaction has ended.
  fileprivate func readLimitError(
    of keys: [Key], _ ranges: [KeyRange], by owner: LockTable.Owner
  ) -> FirestoreError? {
    guard let entry = open[owner.id], entry.transaction.mode != .readOnly else { return nil }
    let bytes = TransactionReads.size(of: keys, ranges)
    if entry.reads.count + keys.count + ranges.count > EngineLimits.maximumTransactionReads
      || entry.reads.bytes + bytes > EngineLimits.maximumTransactionReadBytes
    {
      return .invalidArgument("Transaction too big. Decrease transaction size.")
    }
    if readBytes + bytes > EngineLimits.maximumOpenTransactionsReadBytes {
      return .resourceExhausted("Open transactions have read too much. Try again when some have ended.")
    }
    return nil
  }

  /// Changes an open transaction. Its entry is removed from the dictionary during the change, so that Swift
  /// does not copy its reads.
  fileprivate mutating func change(_ owner: LockTable.Owner, _ body: (inout TransactionTable.Entry) -> Void) {
    guard var entry = open.removeValue(forKey: owner.id) else { return }
    readBytes -= entry.reads.bytes
    precondition(readBytes >= 0, "invariant: the bytes are those of the open transactions' reads")
    body(&entry)
    readBytes += entry.reads.bytes
    open[owner.id] = entry
  }

  mutating func end(_ id: UInt64, as phase: TransactionTable.Phase) {
    guard let entry = open.removeValue(forKey: id) else { return }
    readBytes -= entry.reads.bytes
    ended[id] = TransactionTable.Ended(
      phase: phase, age: entry.transaction.owner.age)
    endedOrder.append(id)
    while endedOrder.count - endedStart > EngineLimits.maximumEndedTransactions {
      ended[endedOrder[endedStart]] = nil
      endedStart += 1
    }
    if endedStart > EngineLimits.maximumEndedTransactions {
      endedOrder.removeFirst(endedStart)
      endedStart = 0
    }
  }
}
