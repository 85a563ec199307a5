// The state of the lock table, and the rules that decide which requests block which others.
//
// All lookups are by key, in hash tables, ordered maps and interval trees. A request with n rows, ranges and
// index entries takes about n·log(m) time, if m locks and waiters exist. When a blocker ends, only the
// requests that wait for it are checked again.
//
// Terms: a *footprint* is the set of keys that a commit changes. A *waiter* is a queued request. Its
// *witness* is one of the blockers that it waits for. A *plain write* is a commit without a transaction.
//
// Invariant: every waiter has one witness, which blocks it now. The waiter is checked again when the witness
// ends.

import OrderedStore

extension LockTable {
  /// The reason why a request has to wait.
  enum Blocker: Hashable {
    /// A transaction that holds a requested key or range, or waits for it earlier in the queue.
    case owner(Owner)
    /// A commit whose footprint was added, by its writer's number: it runs in the sequencer, was granted its
    /// locks, or is not durable yet.
    case footprint(UInt64)
    /// A waiting plain write, by its waiter's id.
    case write(UInt64)
  }

  struct Waiter {
    var id: UInt64
    var request: Request
    /// When the wait times out.
    var deadline = UInt64.max
    var resume: @Sendable (Outcome) -> Void
    var witness: Blocker?
    /// The ids of the request's ranges in `waitingReadRanges`.
    var ranges: [UInt64] = []

    /// How other waiters refer to this waiter if it blocks them.
    var blocker: Blocker { request.owner.map { .owner($0) } ?? .write(id) }
  }

  struct State {
    var keys: [Key: KeyLock] = [:]
    var sharedRanges = IntervalTree<Owner>()
    var exclusiveRanges = IntervalTree<Owner>()
    var owned: [Owner: HeldLocks] = [:]
    /// The footprints of commits, by writer, from the sequencer or the grant until the commit is durable.
    var footprints = Footprints()
    /// The queue positions that granted commits had, by writer.
    var queuePositions: [UInt64: UInt64] = [:]
    var waiters: [UInt64: Waiter] = [:]
    var nextWaiter: UInt64 = 1
    var waitingByOwner: [Owner: Set<UInt64>] = [:]
    /// The row keys that reads wait for, each with its waiters in queue order; then the ranges that reads
    /// wait for.
    var waitingReadKeys = OrderedMap<[UInt64]>()
    var waitingReadRanges = IntervalTree<UInt64>()
    var waitingReadCount = 0
    var waitingExclusiveReadCount = 0
    /// The footprints of waiting plain writes, by waiter.
    var waitingWriteFootprints = Footprints()
    /// The number of waiting requests `afterWrites`: reads that yield to a plain write.
    var yieldingReadCount = 0
    /// For each witness, the ids of the waiters that wait for it.
    var watchers: [Blocker: Set<UInt64>] = [:]
    /// Waiters whose witness ended and that have not been checked since. The next `grant` checks them.
    var stale: Set<UInt64> = []
  }

  struct KeyLock {
    var shared: Set<Owner> = []
    var exclusive: Owner?

    mutating func add(_ owner: Owner, _ mode: Mode) {
      precondition(
        exclusive == nil && (mode == .shared || shared.isEmpty),
        "invariant: an exclusive lock excludes all others")
      if mode == .exclusive { exclusive = owner } else { shared.insert(owner) }
    }
  }

  /// The locks of one transaction, all in one mode.
  struct HeldLocks {
    var mode: Mode
    var keys: Set<Key> = []
    /// Ranges requested by reads in progress. Each has its id in the tree of held ranges, and the number of
    /// reads that requested it.
    var requested: [KeyRange: (id: UInt64, uses: Int)] = [:]
    /// Ranges that completed reads scanned.
    var scanned = HeldRanges()
  }
}

extension LockTable.State {
  typealias Owner = LockTable.Owner
  typealias Blocker = LockTable.Blocker

  // MARK: Blocking requests

  /// A blocker of a request whose position in the queue is `position`; nil if nothing blocks it. Only waiters
  /// with lower ids are ahead of it.
  mutating func blocker(of request: LockTable.Request, before position: UInt64) -> Blocker? {
    var found: Blocker?
    visitBlockers(of: request, before: position) { blocker in
      found = blocker
      return false
    }
    return found
  }

  /// All transactions that block a request.
  mutating func blockingOwners(of request: LockTable.Request, before position: UInt64) -> Set<Owner> {
    var owners: Set<Owner> = []
    visitBlockers(of: request, before: position) { blocker in
      if case .owner(let owner) = blocker { owners.insert(owner) }
      return true
    }
    return owners
  }

  /// The waiting plain writes that conflict with a read and time out by `time`: the first
  /// `maximumYieldedWrites` of them. Empty if the transaction holds all requested keys and ranges already.
  mutating func writes(conflictingWith read: LockTable.ReadRequest, endingBy time: UInt64) -> Set<UInt64> {
    guard !waitingWriteFootprints.isEmpty, !holdsAll(of: read) else { return [] }
    let waiters = waiters
    let found = waitingWriteFootprints.lowest(LockTable.maximumYieldedWrites, conflictingWith: read) { id in
      waiters[id].map { $0.deadline <= time } ?? false
    }
    return Set(found)
  }

  /// Visits the blockers of a request until `body` returns false. A blocker may be visited more than once.
  private mutating func visitBlockers(
    of request: LockTable.Request, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    switch request {
    case .read(let read):
      guard visitHolders(against: read, body), visitFootprints(against: read, body) else { return }
      guard waitingReadCount > 0, read.mode == .exclusive || waitingExclusiveReadCount > 0,
        !holdsAll(of: read)
      else {
        return
      }
      visitWaiters(against: read, before: position, body)
    case .write(let write):
      guard visitHolders(against: write.footprint, of: write.owner, body) else { return }
      // A plain write does not overtake a transaction's waiting read. Otherwise a transaction could wait
      // forever for a document that is written constantly.
      guard write.owner == nil, waitingReadCount > 0 else { return }
      visitWaiters(against: write.footprint, before: position, body)
    case .afterWrites(_, let writes):
      for write in writes where waiters[write] != nil && !body(.write(write)) { return }
    }
  }

  private func visitHolders(against read: LockTable.ReadRequest, _ body: (Blocker) -> Bool) -> Bool {
    func visitOther(_ owner: Owner) -> Bool { owner == read.owner || body(.owner(owner)) }
    let isExclusive = read.mode == .exclusive
    for key in read.keys {
      if let lock = keys[key] {
        if let holder = lock.exclusive, !visitOther(holder) { return false }
        if isExclusive { for holder in lock.shared where !visitOther(holder) { return false } }
      }
      if !exclusiveRanges.isEmpty, !exclusiveRanges.visit(containing: key, visitOther) { return false }
      if isExclusive, !sharedRanges.isEmpty, !sharedRanges.visit(containing: key, visitOther) { return false }
    }
    for range in read.ranges {
      guard exclusiveRanges.visit(overlapping: range, visitOther) else { return false }
      if isExclusive, !sharedRanges.visit(overlapping: range, visitOther) { return false }
    }
    return true
  }

  private mutating func visitFootprints(
    against read: LockTable.ReadRequest, _ body: (Blocker) -> Bool
  ) -> Bool {
    // One footprint is enough, since callers need a single blocker or only transactions.
    footprints.any(conflictingWith: read).map { body(.footprint($0)) } ?? true
  }

  private func visitHolders(
    against footprint: LockTable.Footprint, of owner: Owner?, _ body: (Blocker) -> Bool
  ) -> Bool {
    func visitOther(_ holder: Owner) -> Bool { holder == owner || body(.owner(holder)) }
    for key in footprint.keys {
      guard let lock = keys[key] else { continue }
      if let holder = lock.exclusive, !visitOther(holder) { return false }
      for holder in lock.shared where !visitOther(holder) { return false }
    }
    guard !sharedRanges.isEmpty || !exclusiveRanges.isEmpty else { return true }
    return footprint.allKeys { key in
      sharedRanges.visit(containing: key, visitOther) && exclusiveRanges.visit(containing: key, visitOther)
    }
  }

  /// Visits the reads ahead in the queue that conflict with a read.
  private func visitWaiters(
    against read: LockTable.ReadRequest, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    func visitIfConflicting(_ id: UInt64) -> Bool {
      guard id < position, case .read(let other)? = waiters[id]?.request, other.owner != read.owner,
        read.mode == .exclusive || other.mode == .exclusive
      else { return true }
      return body(.owner(other.owner))
    }
    for key in read.keys {
      if let ids = waitingReadKeys[key], !ids.allSatisfy(visitIfConflicting) { return }
      guard waitingReadRanges.visit(containing: key, visitIfConflicting) else { return }
    }
    for range in read.ranges {
      guard waitingReadRanges.visit(overlapping: range, visitIfConflicting) else { return }
      guard !waitingReadKeys.isEmpty else { continue }
      var cursor = OrderedMapCursor(waitingReadKeys)
      range.start.withUnsafeBytes { cursor.seek($0) }
      while cursor.isValid, range.contains(cursor.key) {
        guard cursor.value.allSatisfy(visitIfConflicting) else { return }
        cursor.next()
      }
    }
  }

  /// Visits the reads ahead in the queue that conflict with a plain write.
  private func visitWaiters(
    against footprint: LockTable.Footprint, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    func visitIfAhead(_ id: UInt64) -> Bool {
      guard id < position, let owner = waiters[id]?.request.owner else { return true }
      return body(.owner(owner))
    }
    for key in footprint.keys {
      if let ids = waitingReadKeys[key], !ids.allSatisfy(visitIfAhead) { return }
    }
    guard !waitingReadRanges.isEmpty else { return }
    _ = footprint.allKeys { waitingReadRanges.visit(containing: $0, visitIfAhead) }
  }

  /// Whether a transaction holds everything that it requests already. Then it does not have to queue.
  private func holdsAll(of read: LockTable.ReadRequest) -> Bool {
    guard let owned = owned[read.owner] else { return false }
    return read.keys.allSatisfy { owned.keys.contains($0) }
      && read.ranges.allSatisfy { owned.requested[$0] != nil || owned.scanned.covers($0) }
  }

  // MARK: Footprints

  mutating func addFootprint(_ footprint: LockTable.Footprint, as writer: UInt64) {
    footprints.insert(footprint, as: writer)
  }

  mutating func removeFootprint(of writer: UInt64) {
    footprints.remove(writer)
    queuePositions[writer] = nil
  }

  // MARK: Holding

  /// Records the locks of a granted request, which was at `queuePosition` in the queue. A granted write
  /// adds its footprint immediately. Otherwise later reads would be granted before the write returns to the
  /// sequencer.
  mutating func acquire(_ request: LockTable.Request, from queuePosition: UInt64) {
    switch request {
    case .read(let read): hold(read)
    case .write(let write):
      addFootprint(write.footprint, as: write.writer)
      queuePositions[write.writer] = queuePosition
    case .afterWrites: break
    }
  }

  private mutating func hold(_ read: LockTable.ReadRequest) {
    let owner = read.owner
    var owned = self.owned.removeValue(forKey: owner) ?? LockTable.HeldLocks(mode: read.mode)
    precondition(owned.mode == read.mode, "invariant: a transaction locks in one mode")
    for key in read.keys where owned.keys.insert(key).inserted {
      keys[key, default: LockTable.KeyLock()].add(owner, owned.mode)
    }
    for range in read.ranges where !range.isEmptyRange {
      if let (id, uses) = owned.requested[range] {
        owned.requested[range] = (id, uses + 1)
      } else {
        owned.requested[range] = (insert(range, owner, owned.mode), 1)
      }
    }
    self.owned[owner] = owned
  }

  /// Narrows a requested range to the part that was scanned.
  mutating func narrow(_ range: KeyRange, to scanned: KeyRange, for owner: Owner) {
    guard var owned = owned.removeValue(forKey: owner) else { return }
    defer { self.owned[owner] = owned }
    guard let (id, uses) = owned.requested[range] else { return }
    if !scanned.isEmptyRange, let (merged, absorbed) = owned.scanned.absorbing(scanned) {
      for entry in owned.scanned.entries[absorbed] { remove(entry.id, entry.range.start, owned.mode) }
      let id = insert(merged, owner, owned.mode)
      owned.scanned.replace(absorbed, with: HeldRanges.Entry(range: merged, id: id))
    }
    if uses > 1 {
      owned.requested[range] = (id, uses - 1)
    } else {
      owned.requested[range] = nil
      remove(id, range.start, owned.mode)
    }
  }

  mutating func release(_ owner: Owner) {
    guard let owned = owned.removeValue(forKey: owner) else { return }
    for key in owned.keys {
      guard var lock = keys.removeValue(forKey: key) else { continue }
      lock.shared.remove(owner)
      if lock.exclusive == owner { lock.exclusive = nil }
      if !lock.shared.isEmpty || lock.exclusive != nil { keys[key] = lock }
    }
    for (range, hold) in owned.requested { remove(hold.id, range.start, owned.mode) }
    for entry in owned.scanned.entries { remove(entry.id, entry.range.start, owned.mode) }
  }

  private mutating func insert(_ range: KeyRange, _ owner: Owner, _ mode: LockTable.Mode) -> UInt64 {
    mode == .exclusive ? exclusiveRanges.insert(range, owner) : sharedRanges.insert(range, owner)
  }

  private mutating func remove(_ id: UInt64, _ start: Key, _ mode: LockTable.Mode) {
    if mode == .exclusive {
      exclusiveRanges.remove(id, startingAt: start)
    } else {
      sharedRanges.remove(id, startingAt: start)
    }
  }
}
