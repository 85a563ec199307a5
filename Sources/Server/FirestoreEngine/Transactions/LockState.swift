// The lock table's rules as plain state: who blocks whom, who is granted next, who dies in a deadlock.

import OrderedStore

extension LockTable {
  /// Who keeps a request from being granted.
  struct Blockers {
    /// Transactions that hold, or wait ahead for, what is asked.
    var owners: Set<Owner> = []
    /// Whether a commit in flight, or a waiter without a transaction, is in the way too.
    var others = false

    var isFree: Bool { owners.isEmpty && !others }
  }
}

extension LockTable.State {
  typealias Owner = LockTable.Owner
  typealias Blockers = LockTable.Blockers

  /// What blocks a request that stands in the queue before position `position`.
  func blockers(of request: LockTable.Request, before position: Int) -> Blockers {
    var blockers = Blockers()
    switch request {
    case .read(let read):
      addHolders(against: read, to: &blockers)
      addFootprints(against: read, to: &blockers)
      if !holdsAll(of: read) {
        for waiter in waiters[..<position] {
          guard case .read(let other) = waiter.request, other.owner != read.owner,
            read.mode == .exclusive || other.mode == .exclusive, overlap(read, other)
          else { continue }
          blockers.owners.insert(other.owner)
        }
      }
    case .write(let owner, let footprint):
      addHolders(against: footprint, of: owner, to: &blockers)
      // A plain write does not overtake a transaction that waits to read, or busy documents would never be read.
      if owner == nil {
        for waiter in waiters[..<position] {
          guard case .read(let other) = waiter.request, touches(footprint, other) else { continue }
          blockers.owners.insert(other.owner)
        }
      }
    }
    return blockers
  }

  private func addHolders(against read: LockTable.ReadRequest, to blockers: inout Blockers) {
    for key in read.keys {
      guard let lock = keys[key] else { continue }
      if let holder = lock.exclusive, holder != read.owner { blockers.owners.insert(holder) }
      if read.mode == .exclusive {
        for holder in lock.shared where holder != read.owner { blockers.owners.insert(holder) }
      }
    }
    for (holder, owned) in owned where holder != read.owner && !blockers.owners.contains(holder) {
      let conflicts = owned.ranges.contains { held in
        (held.mode == .exclusive || read.mode == .exclusive)
          && (read.keys.contains { held.range.contains($0) }
            || read.ranges.contains { $0.overlaps(held.range) })
      }
      if conflicts { blockers.owners.insert(holder) }
    }
  }

  private func addFootprints(against read: LockTable.ReadRequest, to blockers: inout Blockers) {
    for key in read.keys where footprintKeys[key] != nil {
      blockers.others = true
      return
    }
    guard !read.ranges.isEmpty else { return }
    for footprint in footprints.values where touches(footprint, read) {
      blockers.others = true
      return
    }
  }

  private func addHolders(
    against footprint: LockTable.Footprint, of owner: Owner?, to blockers: inout Blockers
  ) {
    for key in footprint.keys {
      guard let lock = keys[key] else { continue }
      if let holder = lock.exclusive, holder != owner { blockers.owners.insert(holder) }
      for holder in lock.shared where holder != owner { blockers.owners.insert(holder) }
    }
    for (holder, owned) in owned where holder != owner && !owned.ranges.isEmpty {
      if owned.ranges.contains(where: { touches(footprint, $0.range) }) { blockers.owners.insert(holder) }
    }
  }

  private func touches(_ footprint: LockTable.Footprint, _ range: KeyRange) -> Bool {
    footprint.keys.contains { range.contains($0) }
      || footprint.entries.contains { $0.contains { range.contains($0) } }
  }

  private func touches(_ footprint: LockTable.Footprint, _ read: LockTable.ReadRequest) -> Bool {
    read.keys.contains { footprint.keys.contains($0) } || read.ranges.contains { touches(footprint, $0) }
  }

  private func overlap(_ a: LockTable.ReadRequest, _ b: LockTable.ReadRequest) -> Bool {
    a.keys.contains { b.keys.contains($0) }
      || a.keys.contains { key in b.ranges.contains { $0.contains(key) } }
      || b.keys.contains { key in a.ranges.contains { $0.contains(key) } }
      || a.ranges.contains { range in b.ranges.contains { $0.overlaps(range) } }
  }

  /// Whether a transaction holds all it asks for, so that it may pass the queue.
  private func holdsAll(of read: LockTable.ReadRequest) -> Bool {
    guard let owned = owned[read.owner] else { return false }
    return read.keys.allSatisfy { owned.keys.contains($0) }
      && read.ranges.allSatisfy { range in owned.ranges.contains { $0.range == range } }
  }

  /// Records what a granted request holds from now on. A granted write holds nothing: it will enter its footprint.
  mutating func take(_ request: LockTable.Request) {
    guard case .read(let read) = request else { return }
    var owned = self.owned[read.owner] ?? LockTable.Owned()
    for key in read.keys {
      var lock = keys[key] ?? LockTable.KeyLock()
      if read.mode == .exclusive { lock.exclusive = read.owner } else { lock.shared.insert(read.owner) }
      keys[key] = lock
      owned.keys.insert(key)
    }
    for range in read.ranges { owned.ranges.append((range, read.mode)) }
    self.owned[read.owner] = owned
  }

  /// Grants every waiter that nothing blocks any more, in queue order, and takes it out of the queue.
  mutating func grant() -> [LockTable.Waiter] {
    var granted: [LockTable.Waiter] = []
    var position = 0
    while position < waiters.count {
      if blockers(of: waiters[position].request, before: position).isFree {
        let waiter = waiters.remove(at: position)
        take(waiter.request)
        granted.append(waiter)
      } else {
        position += 1
      }
    }
    return granted
  }

  mutating func release(_ owner: Owner) {
    guard let owned = owned.removeValue(forKey: owner) else { return }
    for key in owned.keys {
      guard var lock = keys[key] else { continue }
      lock.shared.remove(owner)
      if lock.exclusive == owner { lock.exclusive = nil }
      keys[key] = lock.shared.isEmpty && lock.exclusive == nil ? nil : lock
    }
  }

  mutating func leave(_ writer: UInt64) {
    guard let footprint = footprints.removeValue(forKey: writer) else { return }
    for key in footprint.keys {
      guard let count = footprintKeys[key] else { continue }
      footprintKeys[key] = count > 1 ? count - 1 : nil
    }
  }

  /// The youngest transaction of a cycle of waits through `start`; nil if there is no such cycle.
  func victimOfCycle(from start: Owner) -> Owner? {
    var path: [Owner] = []
    var visited: Set<Owner> = []
    func search(_ owner: Owner) -> Bool {
      path.append(owner)
      visited.insert(owner)
      for (position, waiter) in waiters.enumerated() where waiter.request.owner == owner {
        for next in blockers(of: waiter.request, before: position).owners {
          if next == start { return true }
          if !visited.contains(next), search(next) { return true }
        }
      }
      path.removeLast()
      return false
    }
    guard search(start) else { return nil }
    return path.max { ($0.age, $0.id) < ($1.age, $1.id) }
  }
}

extension KeyRange {
  /// Whether two ranges share a key.
  func overlaps(_ other: KeyRange) -> Bool {
    if let end, !other.start.lexicographicallyPrecedes(end) { return false }
    if let otherEnd = other.end, !start.lexicographicallyPrecedes(otherEnd) { return false }
    return true
  }
}
