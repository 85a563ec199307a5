// The lock table's queue as plain state: who waits, who is granted when something ends, who dies in a deadlock.
//
// Invariant: a waiter stands in the queue exactly as long as something blocks it; what a witness's end does not set
// free gets another witness.

import OrderedStore

extension LockTable.State {
  /// Puts a waiter at the end of the queue, because of `witness`.
  mutating func append(_ waiter: LockTable.Waiter, witness: Blocker) {
    var waiter = waiter
    if let owner = waiter.request.owner { waitingByOwner[owner, default: []].insert(waiter.id) }
    if case .read(let read) = waiter.request {
      waitingReads += 1
      if read.mode == .exclusive { waitingExclusively += 1 }
      for key in read.keys { waitingKeys.updateValue((waitingKeys[key] ?? []) + [waiter.id], forKey: key) }
      waiter.ranges = read.ranges.map { waitingRanges.insert($0, waiter.id) }
    }
    waiter.witness = witness
    watchers[witness, default: []].insert(waiter.id)
    waiters[waiter.id] = waiter
  }

  /// Takes a waiter out of the queue; nil if it is not there any more.
  mutating func remove(waiter id: UInt64) -> LockTable.Waiter? {
    guard let waiter = waiters.removeValue(forKey: id) else { return nil }
    if let owner = waiter.request.owner {
      waitingByOwner[owner]?.remove(id)
      if waitingByOwner[owner]?.isEmpty == true { waitingByOwner[owner] = nil }
    }
    if case .read(let read) = waiter.request {
      waitingReads -= 1
      if read.mode == .exclusive { waitingExclusively -= 1 }
      for key in read.keys {
        guard let ids = waitingKeys[key] else { continue }
        let others = ids.filter { $0 != id }
        if others.isEmpty {
          waitingKeys.removeValue(forKey: key)
        } else {
          waitingKeys.updateValue(others, forKey: key)
        }
      }
      for (range, number) in zip(read.ranges, waiter.ranges) {
        waitingRanges.remove(number, startingAt: range.start)
      }
    }
    if let witness = waiter.witness { unwatch(witness, id) }
    stale.remove(id)
    return waiter
  }

  private mutating func unwatch(_ witness: Blocker, _ id: UInt64) {
    watchers[witness]?.remove(id)
    if watchers[witness]?.isEmpty == true { watchers[witness] = nil }
  }

  /// Takes all waiters of a transaction out of the queue.
  mutating func removeWaiters(of owner: Owner) -> [LockTable.Waiter] {
    (waitingByOwner[owner] ?? []).sorted().compactMap { remove(waiter: $0) }
  }

  /// Notes that a blocker has gone, or holds something else now, without granting anything yet.
  mutating func postpone(_ blocker: Blocker) {
    var ids = watchers.removeValue(forKey: blocker) ?? []
    // A transaction that holds all it asks for passes the queue: what it holds may decide its own other requests.
    if case .owner(let owner) = blocker, let own = waitingByOwner[owner] {
      for id in own {
        if let witness = waiters[id]?.witness { unwatch(witness, id) }
      }
      ids.formUnion(own)
    }
    for id in ids { waiters[id]?.witness = nil }
    stale.formUnion(ids)
  }

  /// Grants, in the queue's order, every waiter that only something of `ended` was still in the way of.
  mutating func grant(after ended: Blocker...) -> [LockTable.Waiter] {
    for blocker in ended { postpone(blocker) }
    var granted: [LockTable.Waiter] = []
    // The last of these is the next in the queue.
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
        take(request)
        granted.append(waiter)
        // Who stood behind it in the queue may not conflict with what it holds now.
        if let owner = request.owner { postpone(.owner(owner)) }
      }
    }
  }

  /// The youngest transaction of a cycle of waits through `start`; nil if there is no such cycle.
  mutating func victimOfCycle(from start: Owner) -> Owner? {
    // Whoever holds nothing and has just come is waited for by nobody.
    guard owned[start] != nil || (waitingByOwner[start]?.count ?? 0) > 1 else { return nil }
    var path: [(owner: Owner, next: [Owner])] = [(start, ownersBlocking(start))]
    var visited: Set<Owner> = [start]
    while let top = path.indices.last {
      guard let next = path[top].next.popLast() else {
        path.removeLast()
        continue
      }
      if next == start { return path.map(\.owner).max { ($0.age, $0.id) < ($1.age, $1.id) } }
      if visited.insert(next).inserted { path.append((next, ownersBlocking(next))) }
    }
    return nil
  }

  private mutating func ownersBlocking(_ owner: Owner) -> [Owner] {
    var owners: Set<Owner> = []
    for id in waitingByOwner[owner] ?? [] {
      guard let request = waiters[id]?.request else { continue }
      owners.formUnion(blockingOwners(of: request, before: id).owners)
    }
    return Array(owners)
  }
}
