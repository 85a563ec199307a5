// The queue of the lock table: adds and removes waiters (queued requests), grants them, and finds deadlocks.
// `LockState` defines the terms.
//
// Invariant: a waiter stays in the queue exactly as long as another request or lock blocks it. Its witness is one of
// these blockers. When the witness ends, the waiter is granted or gets another witness.

import OrderedStore

extension LockTable.State {
  /// Appends a waiter that `witness` blocks.
  mutating func append(_ waiter: LockTable.Waiter, witness: Blocker) {
    precondition(waiters[waiter.id] == nil, "invariant: a waiter is queued once")
    var waiter = waiter
    if let owner = waiter.request.owner { waitingByOwner[owner, default: []].insert(waiter.id) }
    switch waiter.request {
    case .read(let read):
      waitingReadCount += 1
      if read.mode == .exclusive { waitingExclusiveReadCount += 1 }
      for key in read.keys {
        waitingReadKeys.updateValue((waitingReadKeys[key] ?? []) + [waiter.id], forKey: key)
      }
      waiter.ranges = read.ranges.map { waitingReadRanges.insert($0, waiter.id) }
    case .write(let write):
      if write.owner == nil { waitingWriteFootprints.insert(write.footprint, as: waiter.id) }
    case .afterWrites: yieldingReadCount += 1
    }
    waiter.witness = witness
    watchers[witness, default: []].insert(waiter.id)
    waiters[waiter.id] = waiter
  }

  /// Removes a waiter from the queue; nil if it is not queued.
  mutating func remove(waiter id: UInt64) -> LockTable.Waiter? {
    guard let waiter = waiters.removeValue(forKey: id) else { return nil }
    if let owner = waiter.request.owner {
      waitingByOwner[owner]?.remove(id)
      if waitingByOwner[owner]?.isEmpty == true { waitingByOwner[owner] = nil }
    }
    switch waiter.request {
    case .read(let read):
      waitingReadCount -= 1
      if read.mode == .exclusive { waitingExclusiveReadCount -= 1 }
      for key in read.keys {
        guard let ids = waitingReadKeys[key] else { continue }
        let others = ids.filter { $0 != id }
        if others.isEmpty {
          waitingReadKeys.removeValue(forKey: key)
        } else {
          waitingReadKeys.updateValue(others, forKey: key)
        }
      }
      for (range, number) in zip(read.ranges, waiter.ranges) {
        waitingReadRanges.remove(number, startingAt: range.start)
      }
    case .write: waitingWriteFootprints.remove(id)
    case .afterWrites: yieldingReadCount -= 1
    }
    if let witness = waiter.witness { unwatch(witness, id) }
    stale.remove(id)
    precondition(
      waitingReadCount >= waitingExclusiveReadCount && waitingExclusiveReadCount >= 0
        && yieldingReadCount >= 0,
      "invariant: the counts are those of the queued waiters")
    return waiter
  }

  private mutating func unwatch(_ witness: Blocker, _ id: UInt64) {
    watchers[witness]?.remove(id)
    if watchers[witness]?.isEmpty == true { watchers[witness] = nil }
  }

  /// Removes all waiters of a transaction.
  mutating func removeWaiters(of owner: Owner) -> [LockTable.Waiter] {
    (waitingByOwner[owner] ?? []).sorted().compactMap { remove(waiter: $0) }
  }

  /// Records that a blocker ended or changed, without granting anything yet.
  mutating func markStale(_ blocker: Blocker) {
    var ids = watchers.removeValue(forKey: blocker) ?? []
    // A transaction that holds everything that it requests does not queue. Therefore a change of its locks
    // may unblock its own waiting requests.
    if case .owner(let owner) = blocker, let own = waitingByOwner[owner] {
      for id in own {
        if let witness = waiters[id]?.witness { unwatch(witness, id) }
      }
      ids.formUnion(own)
    }
    for id in ids { waiters[id]?.witness = nil }
    stale.formUnion(ids)
  }

  /// Called when the blockers `ended` have ended. Grants, in queue order, every waiter that nothing blocks
  /// any more.
  mutating func grant(after ended: Blocker...) -> [LockTable.Waiter] {
    for blocker in ended { markStale(blocker) }
    var granted: [LockTable.Waiter] = []
    // Waiters to check, sorted descending by id. The last candidate is the first in the queue.
    var candidates: [UInt64] = []
    while true {
      if !stale.isEmpty {
        candidates = Set(candidates).union(stale).sorted(by: >)
        stale = []
      }
      guard let id = candidates.popLast() else { return granted }
      guard let request = waiters[id]?.request else { continue }
      if let witness = blocker(of: request, before: id) {
        waiters[id]?.witness = witness
        watchers[witness, default: []].insert(id)
      } else if let waiter = remove(waiter: id) {
        acquire(request, from: id)
        granted.append(waiter)
        // Later waiters in the queue may have waited for this one. They may not conflict with the locks that
        // it holds now, so they are checked again.
        markStale(waiter.blocker)
      }
    }
  }

  // MARK: Deadlocks

  /// The youngest transaction of a cycle of waits through `start`; nil without a cycle.
  mutating func victimOfCycle(from start: Owner) -> Owner? {
    cycle(from: start)?.max { ($0.age, $0.id) < ($1.age, $1.id) }
  }

  /// Breaks cycles through `start` in which reads yield to writes that wait for the readers' transactions.
  /// Removes these reads from the queue, so that they proceed before the writes. No transaction has to be
  /// aborted.
  mutating func removeYieldingReads(inCyclesFrom start: Owner) -> [LockTable.Waiter] {
    var removed: [LockTable.Waiter] = []
    while yieldingReadCount > 0, let owners = cycle(from: start, includesYielding: true) {
      let count = removed.count
      for id in owners.flatMap({ waitingByOwner[$0] ?? [] }) {
        guard case .afterWrites? = waiters[id]?.request, let waiter = remove(waiter: id) else { continue }
        removed.append(waiter)
      }
      if removed.count == count { break }
    }
    return removed
  }

  /// The transactions of a cycle of waits through `start`; nil if there is none.
  private mutating func cycle(from start: Owner, includesYielding: Bool = false) -> [Owner]? {
    // A transaction without locks and without another waiting request blocks nothing, so it is not part of a cycle.
    guard owned[start] != nil || (waitingByOwner[start]?.count ?? 0) > 1 else { return nil }
    var path: [(owner: Owner, next: [Owner])] = [(start, ownersBlocking(start, includesYielding))]
    var visited: Set<Owner> = [start]
    while let top = path.indices.last {
      guard let next = path[top].next.popLast() else {
        path.removeLast()
        continue
      }
      if next == start { return path.map(\.owner) }
      if visited.insert(next).inserted { path.append((next, ownersBlocking(next, includesYielding))) }
    }
    return nil
  }

  /// The transactions that block a transaction's requests. With `includesYielding`, also the transactions
  /// that block the writes to which it yields.
  private mutating func ownersBlocking(_ owner: Owner, _ includesYielding: Bool) -> [Owner] {
    var owners: Set<Owner> = []
    for id in waitingByOwner[owner] ?? [] {
      guard let request = waiters[id]?.request else { continue }
      if includesYielding, case .afterWrites(_, let writes) = request {
        for write in writes {
          guard let ahead = waiters[write]?.request else { continue }
          owners.formUnion(blockingOwners(of: ahead, before: write))
        }
      } else {
        owners.formUnion(blockingOwners(of: request, before: id))
      }
    }
    return Array(owners)
  }
}
