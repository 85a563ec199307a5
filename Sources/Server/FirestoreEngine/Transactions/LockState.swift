// The lock table's rules as plain state: who blocks whom, who is granted next, who dies in a deadlock.
//
// Everything is found by key: held rows and waiting rows by hash and order, ranges by an interval tree. A request costs
// its own rows, ranges and entries (times a logarithm), and what ends costs those who wait for it:
//
// Invariant: every waiter has one *witness*, something that blocks it now, and is looked at again when that goes away.

import OrderedStore

extension LockTable {
  /// Something that may stand in a request's way.
  enum Blocker: Hashable {
    /// A transaction that holds, or waits ahead for, what is asked.
    case owner(Owner)
    /// A commit in flight.
    case footprint(UInt64)
  }

  struct Waiter {
    var id: UInt64
    var request: Request
    var resume: @Sendable (Outcome) -> Void
    var witness: Blocker?
    /// Its ranges' numbers in the index of what waits.
    var ranges: [UInt64] = []
  }

  struct State {
    var keys: [Key: KeyLock] = [:]
    var sharedRanges = RangeIndex<Owner>()
    var exclusiveRanges = RangeIndex<Owner>()
    var owned: [Owner: Owned] = [:]
    var footprints: [UInt64: Flight] = [:]
    var footprintKeys: [Key: [UInt64]] = [:]
    var waiters: [UInt64: Waiter] = [:]
    var nextWaiter: UInt64 = 1
    var waitingByOwner: [Owner: Set<UInt64>] = [:]
    /// What reads wait for: rows by waiter, in order of waiters, and ranges.
    var waitingKeys = OrderedMap<[UInt64]>()
    var waitingRanges = RangeIndex<UInt64>()
    var waitingReads = 0
    var waitingExclusively = 0
    var watchers: [Blocker: Set<UInt64>] = [:]
    /// Waiters whose witness went away while it was not their turn: looked at when anything else ends.
    var stale: Set<UInt64> = []
  }

  struct KeyLock {
    var shared: Set<Owner> = []
    var exclusive: Owner?
  }

  /// What one transaction holds, all of it in one mode.
  struct Owned {
    var mode: Mode
    var keys: Set<Key> = []
    /// Ranges as they were asked for, by reads under way: each its number in the index, and how many reads hold it.
    var asked: [KeyRange: (id: UInt64, uses: Int)] = [:]
    /// Ranges that were scanned.
    var scanned = HeldRanges()
  }

  /// A commit's footprint while it is in flight.
  struct Flight {
    var footprint: Footprint
    /// All its keys in order, once somebody has asked about a range.
    var ordered: [Key]?
  }
}

extension LockTable.State {
  typealias Owner = LockTable.Owner
  typealias Blocker = LockTable.Blocker

  // MARK: Who blocks whom

  /// The first thing found that blocks a request which stands in the queue before waiter `position`.
  mutating func blocker(of request: LockTable.Request, before position: UInt64) -> Blocker? {
    var found: Blocker?
    visitBlockers(of: request, before: position) { blocker in
      found = blocker
      return false
    }
    return found
  }

  /// All transactions that block a request, and whether nothing else does.
  mutating func blockingOwners(
    of request: LockTable.Request, before position: UInt64
  ) -> (owners: Set<Owner>, isAll: Bool) {
    var owners: Set<Owner> = []
    var isAll = true
    visitBlockers(of: request, before: position) { blocker in
      if case .owner(let owner) = blocker { owners.insert(owner) } else { isAll = false }
      return true
    }
    return (owners, isAll)
  }

  /// Visits what blocks a request, some more than once, until `body` returns false.
  private mutating func visitBlockers(
    of request: LockTable.Request, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    switch request {
    case .read(let read):
      guard visitHolders(against: read, body), visitFootprints(against: read, body) else { return }
      guard waitingReads > 0, read.mode == .exclusive || waitingExclusively > 0, !holdsAll(of: read) else {
        return
      }
      visitWaiters(against: read, before: position, body)
    case .write(let owner, let footprint):
      guard visitHolders(against: footprint, of: owner, body) else { return }
      // A plain write does not overtake a transaction that waits to read, or busy documents would never be read.
      guard owner == nil, waitingReads > 0 else { return }
      visitWaiters(against: footprint, before: position, body)
    }
  }

  private func visitHolders(against read: LockTable.ReadRequest, _ body: (Blocker) -> Bool) -> Bool {
    func others(_ owner: Owner) -> Bool { owner == read.owner || body(.owner(owner)) }
    let isExclusive = read.mode == .exclusive
    for key in read.keys {
      if let lock = keys[key] {
        if let holder = lock.exclusive, !others(holder) { return false }
        if isExclusive { for holder in lock.shared where !others(holder) { return false } }
      }
      if !exclusiveRanges.isEmpty, !exclusiveRanges.visit(around: key, others) { return false }
      if isExclusive, !sharedRanges.isEmpty, !sharedRanges.visit(around: key, others) { return false }
    }
    for range in read.ranges {
      guard exclusiveRanges.visit(overlapping: range, others) else { return false }
      if isExclusive, !sharedRanges.visit(overlapping: range, others) { return false }
    }
    return true
  }

  private mutating func visitFootprints(
    against read: LockTable.ReadRequest, _ body: (Blocker) -> Bool
  ) -> Bool {
    guard !footprints.isEmpty else { return true }
    for key in read.keys {
      if let writer = footprintKeys[key]?.last, !body(.footprint(writer)) { return false }
    }
    guard !read.ranges.isEmpty else { return true }
    for writer in Array(footprints.keys) {
      guard let keys = orderedKeys(ofFootprint: writer) else { continue }
      if read.ranges.contains(where: { LockTable.State.has(keys, keyIn: $0) }), !body(.footprint(writer)) {
        return false
      }
    }
    return true
  }

  private func visitHolders(
    against footprint: LockTable.Footprint, of owner: Owner?, _ body: (Blocker) -> Bool
  ) -> Bool {
    func others(_ holder: Owner) -> Bool { holder == owner || body(.owner(holder)) }
    for key in footprint.keys {
      guard let lock = keys[key] else { continue }
      if let holder = lock.exclusive, !others(holder) { return false }
      for holder in lock.shared where !others(holder) { return false }
    }
    guard !sharedRanges.isEmpty || !exclusiveRanges.isEmpty else { return true }
    return footprint.allKeys { key in
      sharedRanges.visit(around: key, others) && exclusiveRanges.visit(around: key, others)
    }
  }

  /// Visits the reads ahead in the queue that exclude a read.
  private func visitWaiters(
    against read: LockTable.ReadRequest, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    func conflicting(_ id: UInt64) -> Bool {
      guard id < position, case .read(let other)? = waiters[id]?.request, other.owner != read.owner,
        read.mode == .exclusive || other.mode == .exclusive
      else { return true }
      return body(.owner(other.owner))
    }
    for key in read.keys {
      if let ids = waitingKeys[key], !ids.allSatisfy(conflicting) { return }
      guard waitingRanges.visit(around: key, conflicting) else { return }
    }
    for range in read.ranges {
      guard waitingRanges.visit(overlapping: range, conflicting) else { return }
      guard !waitingKeys.isEmpty else { continue }
      var cursor = OrderedMapCursor(waitingKeys)
      range.start.withUnsafeBytes { cursor.seek($0) }
      while cursor.isValid, range.contains(cursor.key) {
        guard cursor.value.allSatisfy(conflicting) else { return }
        cursor.next()
      }
    }
  }

  /// Visits the reads ahead in the queue that a plain write would touch.
  private func visitWaiters(
    against footprint: LockTable.Footprint, before position: UInt64, _ body: (Blocker) -> Bool
  ) {
    func ahead(_ id: UInt64) -> Bool {
      guard id < position, let owner = waiters[id]?.request.owner else { return true }
      return body(.owner(owner))
    }
    for key in footprint.keys {
      if let ids = waitingKeys[key], !ids.allSatisfy(ahead) { return }
    }
    guard !waitingRanges.isEmpty else { return }
    _ = footprint.allKeys { waitingRanges.visit(around: $0, ahead) }
  }

  /// Whether a transaction holds all it asks for, so that it may pass the queue.
  private func holdsAll(of read: LockTable.ReadRequest) -> Bool {
    guard let owned = owned[read.owner] else { return false }
    return read.keys.allSatisfy { owned.keys.contains($0) }
      && read.ranges.allSatisfy { owned.asked[$0] != nil || owned.scanned.covers($0) }
  }

  // MARK: Footprints

  mutating func enter(_ footprint: LockTable.Footprint, as writer: UInt64) {
    footprints[writer] = LockTable.Flight(footprint: footprint)
    for key in footprint.keys { footprintKeys[key, default: []].append(writer) }
  }

  mutating func leave(_ writer: UInt64) {
    guard let flight = footprints.removeValue(forKey: writer) else { return }
    for key in flight.footprint.keys {
      guard var writers = footprintKeys[key] else { continue }
      writers.removeAll { $0 == writer }
      footprintKeys[key] = writers.isEmpty ? nil : writers
    }
  }

  private mutating func orderedKeys(ofFootprint writer: UInt64) -> [Key]? {
    guard let flight = footprints[writer] else { return nil }
    if let ordered = flight.ordered { return ordered }
    var all: [Key] = []
    _ = flight.footprint.allKeys { key in
      all.append(key)
      return true
    }
    all.sort { compareKeys($0, $1) < 0 }
    footprints[writer]?.ordered = all
    return all
  }

  private static func has(_ ordered: [Key], keyIn range: KeyRange) -> Bool {
    var low = 0
    var high = ordered.count
    while low < high {
      let middle = (low + high) / 2
      if compareKeys(ordered[middle], range.start) < 0 { low = middle + 1 } else { high = middle }
    }
    return low < ordered.count && range.contains(ordered[low])
  }

  // MARK: Holding

  /// Records what a granted request holds from now on. A granted write holds nothing: it will enter its footprint.
  mutating func take(_ request: LockTable.Request) {
    guard case .read(let read) = request else { return }
    let owner = read.owner
    var owned = self.owned.removeValue(forKey: owner) ?? LockTable.Owned(mode: read.mode)
    for key in read.keys where owned.keys.insert(key).inserted {
      if owned.mode == .exclusive {
        keys[key, default: LockTable.KeyLock()].exclusive = owner
      } else {
        keys[key, default: LockTable.KeyLock()].shared.insert(owner)
      }
    }
    for range in read.ranges where !range.isEmptyRange {
      if let (id, uses) = owned.asked[range] {
        owned.asked[range] = (id, uses + 1)
      } else {
        owned.asked[range] = (insert(range, owner, owned.mode), 1)
      }
    }
    self.owned[owner] = owned
  }

  /// Narrows a hold on a range that was asked for to what was scanned of it.
  mutating func narrow(_ range: KeyRange, to scanned: KeyRange, for owner: Owner) {
    guard var owned = owned.removeValue(forKey: owner) else { return }
    defer { self.owned[owner] = owned }
    guard let (id, uses) = owned.asked[range] else { return }
    if !scanned.isEmptyRange, let (merged, absorbed) = owned.scanned.absorbing(scanned) {
      for entry in owned.scanned.entries[absorbed] { remove(entry.id, entry.range.start, owned.mode) }
      let id = insert(merged, owner, owned.mode)
      owned.scanned.replace(absorbed, with: HeldRanges.Entry(range: merged, id: id))
    }
    if uses > 1 {
      owned.asked[range] = (id, uses - 1)
    } else {
      owned.asked[range] = nil
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
    for (range, hold) in owned.asked { remove(hold.id, range.start, owned.mode) }
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

extension LockTable.Footprint {
  /// Whether something holds for all rows and entries.
  func allKeys(_ body: (Key) -> Bool) -> Bool {
    keys.allSatisfy(body) && entries.allSatisfy { $0.allSatisfy(body) }
  }
}
