// The open transactions of one database, what they read, and the memory of those that ended.
//
// Invariant: a transaction is in exactly one phase; only an active one reads or commits, and whoever ends it
// releases its locks. A token is good for its holder alone. A lease ends every transaction some time after its last
// request, and some time after its beginning (`EngineLimits`).

import FirestoreModel
import Locking
import OrderedStore

/// How a transaction keeps its reads true.
enum TransactionMode: Sendable, Equatable {
  /// Locks what it reads; a retried one exclusively.
  case pessimistic(LockTable.Mode)
  /// Reads one snapshot, validated at commit.
  case optimistic
  /// Reads one snapshot and writes nothing.
  case readOnly
}

/// One transaction as its operations see it.
struct OpenTransaction: Sendable {
  var owner: LockTable.Owner
  var mode: TransactionMode
  /// The snapshot that all reads see; nil until the first read, and always for locking transactions.
  var snapshot: Version?
  /// What was read, for validation: filled in when the transaction commits.
  var reads = ReadSet(version: .zero)
  /// The attempt that this one retries, as long as it may still hold locks.
  var predecessor: LockTable.Owner?
  /// Whether it has lost its locks to another. Its reads go on in the state it has seen so far, since clients retry only
  /// what fails at commit; its commit fails ABORTED.
  var isDoomed = false
}

/// All transactions of one database.
final class TransactionTable: Sendable {
  enum Phase: Sendable { case active, committing, committed, rolledBack, expired, failed, aborted }

  struct Entry {
    var transaction: OpenTransaction
    var holder: TransactionHolder
    var reads = TransactionReads()
    var phase: Phase
    var began: UInt64
    /// How long it may be idle, and last in all.
    let lease: Lease
    var lastUse: UInt64
    /// Requests under way, during which the idle lease rests.
    var requests = 0
  }

  /// How long a transaction may be idle, and last in all, in microseconds.
  struct Lease {
    let idle: UInt64
    let total: UInt64
  }

  /// What is remembered of a transaction that has ended.
  struct Ended {
    var phase: Phase
    var age: UInt64
    var holder: TransactionHolder
  }

  struct State {
    var open: [UInt64: Entry] = [:]
    var ended: [UInt64: Ended] = [:]
    /// Bytes of what all open transactions have read.
    var readBytes = 0
    var endedOrder: [UInt64] = []
    var endedStart = 0
    var next: UInt64 = 1
    var isSweeping = false
  }

  private let name: DatabaseName
  private let epoch: UInt64
  private let clock: any EngineClock
  private let lease: Lease
  private let mostOpen: Int
  private let state = Guarded(State())
  /// Gives back an ended transaction's locks.
  private let release: @Sendable (LockTable.Owner) -> Void

  init(
    name: DatabaseName, epoch: UInt64, clock: any EngineClock, limits: EngineLimits,
    release: @escaping @Sendable (LockTable.Owner) -> Void
  ) {
    self.name = name
    self.epoch = epoch
    self.clock = clock
    lease = Lease(idle: limits.transactionIdle, total: limits.transactionTotal)
    mostOpen = limits.openTransactions
    self.release = release
  }

  static let invalid = FirestoreError.invalidArgument("Invalid transaction.")
  static let expired = "The referenced transaction has expired or is no longer valid."

  // MARK: Beginning

  /// Begins a transaction and returns its token.
  /// - Throws: INVALID_ARGUMENT for a bad `retry_transaction`, RESOURCE_EXHAUSTED when too many are open.
  func begin(_ options: TransactionOptions, snapshot: Version?, as caller: Caller) throws -> [UInt8] {
    let holder = TransactionHolder(caller)
    var predecessor: LockTable.Owner?
    var mode = TransactionMode.readOnly
    if case .readWrite(let retrying, let concurrency) = options {
      mode = concurrency == .optimistic ? .optimistic : .pessimistic(.shared)
      if let retrying {
        predecessor = try self.predecessor(retrying, holder)
        if concurrency != .optimistic { mode = .pessimistic(.exclusive) }
      }
    }
    let now = clock.now()
    let (id, startSweeper) = try state.withLock { state -> (UInt64, Bool) in
      guard state.open.count < mostOpen else {
        throw FirestoreError.resourceExhausted(
          "Too many transactions are open: a database may have \(mostOpen).")
      }
      let id = state.next
      state.next += 1
      let owner = LockTable.Owner(id: id, age: predecessor?.age ?? id)
      let isLive = predecessor.map { state.open[$0.id] != nil } ?? false
      let transaction = OpenTransaction(
        owner: owner, mode: mode, snapshot: snapshot, predecessor: isLive ? predecessor : nil)
      state.open[id] = Entry(
        transaction: transaction, holder: holder, phase: .active, began: now, lease: lease, lastUse: now)
      defer { state.isSweeping = true }
      return (id, !state.isSweeping)
    }
    if startSweeper { sweep() }
    return TransactionToken(epoch: epoch, id: id, in: name).bytes
  }

  /// The attempt that a new transaction retries; nil if it is too long ago to know.
  ///
  /// It is not ended: Python programs that share a decorated function between threads name each other's transactions
  /// here. Whether it stands in the retry's way shows when the retry reads.
  private func predecessor(_ token: [UInt8], _ holder: TransactionHolder) throws -> LockTable.Owner? {
    guard let id = try issued(token, to: holder) else { return nil }
    return state.withLock { state in
      state.open[id]?.transaction.owner ?? state.ended[id].map { LockTable.Owner(id: id, age: $0.age) }
    }
  }

  /// The number in a token that this process may have issued for this database; nil for one of an earlier process.
  ///
  /// One that was issued to another caller is like one that was never issued.
  private func issued(_ bytes: [UInt8], to holder: TransactionHolder) throws(FirestoreError) -> UInt64? {
    guard let token = TransactionToken(bytes) else { throw TransactionTable.invalid }
    let own = TransactionToken(epoch: token.epoch, id: token.id, in: name)
    guard token.project == own.project else { throw TransactionTable.invalid }
    guard token.database == own.database else { throw FirestoreError.aborted(TransactionTable.expired) }
    guard token.epoch == epoch else { return nil }
    let isHolders = state.withLock { state in
      guard token.id > 0, token.id < state.next else { return false }
      return (state.open[token.id]?.holder ?? state.ended[token.id]?.holder ?? holder) == holder
    }
    guard isHolders else { throw TransactionTable.invalid }
    return token.id
  }

  // MARK: Use

  /// Starts a request of an active transaction, which keeps its idle lease until `leave`.
  /// - Throws: what table 3.3 of the specification says for ended ones.
  func enter(_ token: [UInt8], toCommit: Bool, as caller: Caller) throws -> OpenTransaction {
    guard let id = try issued(token, to: TransactionHolder(caller)) else {
      throw FirestoreError.aborted(TransactionTable.expired)
    }
    expire(id)
    return try state.withLock { state in
      if var entry = state.open[id] {
        guard entry.phase == .active else { throw FirestoreError.aborted(TransactionTable.expired) }
        if toCommit, entry.transaction.isDoomed {
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
      case .failed: throw FirestoreError.invalidArgument(TransactionTable.expired)
      case .committed, .rolledBack:
        throw toCommit
          ? FirestoreError.aborted(TransactionTable.expired)
          : FirestoreError.invalidArgument(TransactionTable.expired)
      case .aborted: throw LockTable.contention
      default: throw FirestoreError.aborted(TransactionTable.expired)
      }
    }
  }

  /// Makes sure that a transaction may read more: called before it does.
  /// - Throws: INVALID_ARGUMENT if it would have read too much, RESOURCE_EXHAUSTED if all together have.
  func admit(_ owner: LockTable.Owner, _ keys: [Key], _ ranges: [KeyRange]) throws(FirestoreError) {
    if let refusal = state.withLock({ $0.refusal(of: keys, ranges, by: owner) }) { throw refusal }
  }

  /// Adds what a request under way has read, where that was not known before.
  /// - Throws: as `admit`.
  func add(_ owner: LockTable.Owner, _ reads: ReadSet) throws(FirestoreError) {
    let refusal = state.withLock { state in
      let refusal = state.refusal(of: reads.keys, reads.ranges, by: owner)
      if refusal == nil { state.change(owner) { entry in entry.add(reads) } }
      return refusal
    }
    if let refusal { throw refusal }
  }

  /// Ends a request of a transaction, adding what it read.
  func leave(_ owner: LockTable.Owner, read: ReadSet? = nil) {
    let now = clock.now()
    state.withLock { state in
      state.change(owner) { entry in
        entry.requests -= 1
        entry.lastUse = now
        guard let read else { return }
        entry.add(read)
        // Locks keep what was read true; without them one version does.
        var isLocked = false
        if case .pessimistic = entry.transaction.mode { isLocked = !entry.transaction.isDoomed }
        if !isLocked, entry.transaction.snapshot == nil { entry.transaction.snapshot = read.version }
      }
    }
  }

  /// Notes that a transaction has lost its locks, or is about to. What it read was true until now, so that is what it
  /// goes on seeing.
  func doom(_ owner: LockTable.Owner) {
    state.withLock { state in
      guard let version = state.open[owner.id]?.reads.version else { return }
      state.open[owner.id]?.transaction.isDoomed = true
      if version > .zero { state.open[owner.id]?.transaction.snapshot = version }
    }
  }

  /// The transaction as it stands once a read has seen a version under its locks; nil if it has ended.
  ///
  /// Unless it has lost its locks, all it has read was true at that version: whichever of the two is noted first decides
  /// what its later reads see.
  func settle(_ owner: LockTable.Owner, at version: Version) -> OpenTransaction? {
    state.withLock { state in
      guard let transaction = state.open[owner.id]?.transaction else { return nil }
      if !transaction.isDoomed { state.open[owner.id]?.reads.note(version) }
      return transaction
    }
  }

  /// The transaction as it stands; nil if it has ended.
  func current(_ owner: LockTable.Owner) -> OpenTransaction? {
    state.withLock { $0.open[owner.id]?.transaction }
  }

  /// Since when a transaction has had no request under way; nil while it has one, and once it has ended.
  func idleSince(_ owner: LockTable.Owner) -> UInt64? {
    state.withLock { state in
      guard let entry = state.open[owner.id], entry.requests == 0 else { return nil }
      return entry.lastUse
    }
  }

  /// The number of transactions that have not ended.
  var openCount: Int { state.withLock { $0.open.count } }

  /// Ends a transaction and gives back its locks.
  func end(_ owner: LockTable.Owner, as phase: Phase) {
    state.withLock { $0.end(owner.id, as: phase) }
    release(owner)
  }

  /// Ends a transaction of the caller's whose commit was refused before it came here. Nothing happens to one that has
  /// ended, or whose other commit is under way, nor to another caller's.
  func fail(_ token: [UInt8], as caller: Caller) {
    guard let id = try? issued(token, to: TransactionHolder(caller)) else { return }
    let owner: LockTable.Owner? = state.withLock { state in
      guard let entry = state.open[id], entry.phase == .active else { return nil }
      state.end(id, as: .failed)
      return entry.transaction.owner
    }
    if let owner { release(owner) }
  }

  /// Rolls back.
  /// - Throws: ABORTED for one that has committed or expired, INVALID_ARGUMENT for one never issued to the caller.
  func rollBack(_ token: [UInt8], as caller: Caller) throws {
    guard let id = try issued(token, to: TransactionHolder(caller)) else {
      throw FirestoreError.aborted(TransactionTable.expired)
    }
    expire(id)
    let owner = try state.withLock { state -> LockTable.Owner? in
      if let entry = state.open[id] {
        guard entry.phase == .active else { throw FirestoreError.aborted(TransactionTable.expired) }
        state.end(id, as: .rolledBack)
        return entry.transaction.owner
      }
      switch state.ended[id]?.phase {
      case .rolledBack, .failed, .aborted: return nil
      default: throw FirestoreError.aborted(TransactionTable.expired)
      }
    }
    if let owner { release(owner) }
  }

  // MARK: Leases

  /// Ends a transaction that has outlived its lease, if the sweeper has not come to it yet.
  private func expire(_ id: UInt64) {
    let now = clock.now()
    let owner: LockTable.Owner? = state.withLock { state in
      guard let entry = state.open[id], entry.phase == .active, entry.deadline <= now else { return nil }
      state.end(id, as: .expired)
      return entry.transaction.owner
    }
    if let owner { release(owner) }
  }

  /// Ends everything that has outlived its lease, and returns the time of that.
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

  /// Sleeps from lease to lease while transactions are open.
  private func sweep() {
    Task { [weak self, clock] in
      // All are gone over each time: a crowd that began one after the other does not end one by one.
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
        // A commit under way has no deadline of its own: look again soon.
        guard entry.phase == .active else { return now + 1_000_000 }
        // A request under way may end at any time, but the idle lease that begins then ends no earlier than this.
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

  /// Adds what was read; of a read-only transaction, which validates nothing, the version alone.
  fileprivate mutating func add(_ read: ReadSet) {
    if transaction.mode == .readOnly { reads.note(read.version) } else { reads.add(read) }
  }
}

extension TransactionTable.State {
  /// Why a transaction may not read more; nil if it may, or has ended.
  fileprivate func refusal(
    of keys: [Key], _ ranges: [KeyRange], by owner: LockTable.Owner
  ) -> FirestoreError? {
    guard let entry = open[owner.id], entry.transaction.mode != .readOnly else { return nil }
    let bytes = TransactionReads.size(of: keys, ranges)
    if entry.reads.count + keys.count + ranges.count > EngineLimits.transactionReads
      || entry.reads.bytes + bytes > EngineLimits.transactionReadBytes
    {
      return .invalidArgument("Transaction too big. Decrease transaction size.")
    }
    if readBytes + bytes > EngineLimits.openTransactionsReadBytes {
      return .resourceExhausted("Open transactions have read too much. Try again when some have ended.")
    }
    return nil
  }

  /// Changes an open transaction, taken out meanwhile so that what it has read is not copied.
  fileprivate mutating func change(_ owner: LockTable.Owner, _ body: (inout TransactionTable.Entry) -> Void) {
    guard var entry = open.removeValue(forKey: owner.id) else { return }
    readBytes -= entry.reads.bytes
    body(&entry)
    readBytes += entry.reads.bytes
    open[owner.id] = entry
  }

  mutating func end(_ id: UInt64, as phase: TransactionTable.Phase) {
    guard let entry = open.removeValue(forKey: id) else { return }
    readBytes -= entry.reads.bytes
    ended[id] = TransactionTable.Ended(
      phase: phase, age: entry.transaction.owner.age, holder: entry.holder)
    endedOrder.append(id)
    while endedOrder.count - endedStart > EngineLimits.endedTransactions {
      ended[endedOrder[endedStart]] = nil
      endedStart += 1
    }
    if endedStart > EngineLimits.endedTransactions {
      endedOrder.removeFirst(endedStart)
      endedStart = 0
    }
  }
}
