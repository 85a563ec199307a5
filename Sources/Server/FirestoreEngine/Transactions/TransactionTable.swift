// The open transactions of one database, what they read, and the memory of those that ended.
//
// Invariant: a transaction is in exactly one phase; only an active one reads or commits, and whoever ends it
// releases its locks. A lease ends every transaction 60 s after its last request and 270 s after its beginning.

import FirestoreModel
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
  /// What was read, for validation.
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
    var phase: Phase
    var began: UInt64
    var lastUse: UInt64
    /// Requests under way, during which the idle lease rests.
    var requests = 0
  }

  struct State {
    var open: [UInt64: Entry] = [:]
    var ended: [UInt64: (phase: Phase, age: UInt64)] = [:]
    var endedOrder: [UInt64] = []
    var endedStart = 0
    var next: UInt64 = 1
    var isSweeping = false
  }

  private let name: DatabaseName
  private let epoch: UInt64
  private let clock: any EngineClock
  private let state = Guarded(State())
  /// Gives back an ended transaction's locks.
  private let release: @Sendable (LockTable.Owner) -> Void

  init(
    name: DatabaseName, epoch: UInt64, clock: any EngineClock,
    release: @escaping @Sendable (LockTable.Owner) -> Void
  ) {
    self.name = name
    self.epoch = epoch
    self.clock = clock
    self.release = release
  }

  static let expired = "The referenced transaction has expired or is no longer valid."

  // MARK: Beginning

  /// Begins a transaction and returns its token.
  /// - Throws: INVALID_ARGUMENT for a bad `retry_transaction`, RESOURCE_EXHAUSTED when too many are open.
  func begin(_ options: TransactionOptions, snapshot: Version?) throws -> [UInt8] {
    var predecessor: LockTable.Owner?
    var mode = TransactionMode.readOnly
    if case .readWrite(let retrying, let concurrency) = options {
      mode = concurrency == .optimistic ? .optimistic : .pessimistic(.shared)
      if let retrying {
        predecessor = try self.predecessor(retrying)
        if concurrency != .optimistic { mode = .pessimistic(.exclusive) }
      }
    }
    let now = clock.now()
    let (id, startSweeper) = try state.withLock { state -> (UInt64, Bool) in
      guard state.open.count < EngineLimits.openTransactions else {
        throw FirestoreError.resourceExhausted("Too many transactions are open.")
      }
      let id = state.next
      state.next += 1
      let owner = LockTable.Owner(id: id, age: predecessor?.age ?? id)
      let isLive = predecessor.map { state.open[$0.id] != nil } ?? false
      let transaction = OpenTransaction(
        owner: owner, mode: mode, snapshot: snapshot, predecessor: isLive ? predecessor : nil)
      state.open[id] = Entry(transaction: transaction, phase: .active, began: now, lastUse: now)
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
  private func predecessor(_ token: [UInt8]) throws -> LockTable.Owner? {
    guard let id = try issued(token) else { return nil }
    return state.withLock { state in
      state.open[id]?.transaction.owner ?? state.ended[id].map { LockTable.Owner(id: id, age: $0.age) }
    }
  }

  /// The number in a token that this process may have issued for this database; nil for one of an earlier process.
  private func issued(_ bytes: [UInt8]) throws(FirestoreError) -> UInt64? {
    guard let token = TransactionToken(bytes) else {
      throw FirestoreError.invalidArgument("Invalid transaction.")
    }
    let own = TransactionToken(epoch: token.epoch, id: token.id, in: name)
    guard token.project == own.project else { throw FirestoreError.invalidArgument("Invalid transaction.") }
    guard token.database == own.database else { throw FirestoreError.aborted(TransactionTable.expired) }
    guard token.epoch == epoch else { return nil }
    let next = state.withLock { $0.next }
    guard token.id < next else { throw FirestoreError.invalidArgument("Invalid transaction.") }
    return token.id
  }

  // MARK: Use

  /// Starts a request of an active transaction, which keeps its idle lease until `leave`.
  /// - Throws: what table 3.3 of the specification says for ended ones.
  func enter(_ token: [UInt8], toCommit: Bool) throws -> OpenTransaction {
    guard let id = try issued(token) else { throw FirestoreError.aborted(TransactionTable.expired) }
    expire(id)
    return try state.withLock { state in
      if var entry = state.open[id] {
        guard entry.phase == .active else { throw FirestoreError.aborted(TransactionTable.expired) }
        if toCommit, entry.transaction.isDoomed {
          state.end(id, as: .aborted)
          throw LockTable.contention
        }
        entry.requests += 1
        if toCommit { entry.phase = .committing }
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

  /// Ends a request of a transaction, adding what it read.
  func leave(_ owner: LockTable.Owner, read: ReadSet? = nil) {
    let now = clock.now()
    state.withLock { state in
      guard var entry = state.open[owner.id] else { return }
      entry.requests -= 1
      entry.lastUse = now
      if let read {
        if entry.transaction.mode != .readOnly {
          entry.transaction.reads.keys += read.keys
          entry.transaction.reads.ranges += read.ranges
        }
        // Under locks nothing read before can have changed since: one version, the latest, holds for all.
        entry.transaction.reads.version = max(entry.transaction.reads.version, read.version)
        if case .pessimistic = entry.transaction.mode {
        } else if entry.transaction.snapshot == nil {
          entry.transaction.snapshot = read.version
        }
      }
      state.open[owner.id] = entry
    }
  }

  /// Notes that a transaction has lost its locks. What it read was true until now, so that is what it goes on seeing.
  func doom(_ owner: LockTable.Owner) {
    state.withLock { state in
      guard var entry = state.open[owner.id] else { return }
      entry.transaction.isDoomed = true
      if entry.transaction.reads.version > .zero {
        entry.transaction.snapshot = entry.transaction.reads.version
      }
      state.open[owner.id] = entry
    }
    release(owner)
  }

  /// The transaction as it stands; nil if it has ended.
  func current(_ owner: LockTable.Owner) -> OpenTransaction? {
    state.withLock { $0.open[owner.id]?.transaction }
  }

  /// Ends a transaction and gives back its locks.
  func end(_ owner: LockTable.Owner, as phase: Phase) {
    state.withLock { $0.end(owner.id, as: phase) }
    release(owner)
  }

  /// Rolls back.
  /// - Throws: ABORTED for one that has committed or expired, INVALID_ARGUMENT for one never issued.
  func rollBack(_ token: [UInt8]) throws {
    guard let id = try issued(token) else { throw FirestoreError.aborted(TransactionTable.expired) }
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

  /// Ends everything that has outlived its lease.
  private func expireDue() {
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
  }

  /// Sleeps from lease to lease while transactions are open.
  private func sweep() {
    Task { [weak self, clock] in
      while true {
        guard let deadline = self?.nextDeadline() else { return }
        do { try await clock.sleep(until: deadline) } catch { return }
        self?.expireDue()
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
      // A commit under way has no deadline of its own: look again soon.
      return state.open.values.map { $0.phase == .active ? $0.deadline : now + 1_000_000 }.min()
    }
  }
}

extension TransactionTable.Entry {
  var deadline: UInt64 {
    let total = began + EngineLimits.transactionTotal
    return requests > 0 ? total : min(total, lastUse + EngineLimits.transactionIdle)
  }
}

extension TransactionTable.State {
  mutating func end(_ id: UInt64, as phase: TransactionTable.Phase) {
    guard let entry = open.removeValue(forKey: id) else { return }
    ended[id] = (phase, entry.transaction.owner.age)
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
