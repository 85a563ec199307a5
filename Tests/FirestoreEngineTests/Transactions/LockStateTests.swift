// Compares the lock table's state with a simple model of the lock rules. The model searches lists linearly and
// rescans its queue from the front after every release.

import OrderedStore
import Testing

@testable import FirestoreEngine

/// A simple, slow implementation of the lock rules.
private struct ModelLocks {
  struct HeldLocks {
    var mode: LockTable.Mode
    var keys: [Key] = []
    var requested: [KeyRange] = []
    var scanned: [KeyRange] = []
    var ranges: [KeyRange] { requested + scanned }
  }

  var locks: [LockTable.Owner: HeldLocks] = [:]
  var inFlight: [UInt64: LockTable.Footprint] = [:]
  var queue: [(id: UInt64, request: LockTable.Request, deadline: UInt64)] = []

  func isBlocked(_ request: LockTable.Request, at position: Int) -> Bool {
    switch request {
    case .read(let read):
      for (owner, other) in locks where owner != read.owner {
        let excludes = other.mode == .exclusive || read.mode == .exclusive
        if excludes, read.keys.contains(where: { other.keys.contains($0) }) { return true }
        if excludes, intersects(read.keys, other.ranges) { return true }
        if excludes,
          read.ranges.contains(where: { range in other.ranges.contains { RandomRanges.overlap($0, range) } })
        {
          return true
        }
      }
      for flight in inFlight.values where read.keys.contains(where: { flight.keys.contains($0) }) {
        return true
      }
      for flight in inFlight.values where intersects(all(flight), read.ranges) { return true }
      if holdsAll(read) { return false }
      for waiter in queue[..<position] {
        guard case .read(let other) = waiter.request, other.owner != read.owner,
          read.mode == .exclusive || other.mode == .exclusive
        else { continue }
        if read.keys.contains(where: { other.keys.contains($0) }) || intersects(read.keys, other.ranges)
          || intersects(other.keys, read.ranges)
          || read.ranges.contains(where: { range in other.ranges.contains { RandomRanges.overlap($0, range) }
          })
        {
          return true
        }
      }
      return false
    case .write(let write):
      let (owner, footprint) = (write.owner, write.footprint)
      for (holder, other) in locks where holder != owner {
        if footprint.keys.contains(where: { other.keys.contains($0) }) { return true }
        if intersects(all(footprint), other.ranges) { return true }
      }
      guard owner == nil else { return false }
      for waiter in queue[..<position] {
        guard case .read(let other) = waiter.request else { continue }
        if other.keys.contains(where: { footprint.keys.contains($0) })
          || intersects(all(footprint), other.ranges)
        {
          return true
        }
      }
      return false
    case .afterWrites(_, let writes): return queue.contains { writes.contains($0.id) }
    }
  }

  func writes(conflictingWith read: LockTable.ReadRequest, endingBy moment: UInt64) -> Set<UInt64> {
    if holdsAll(read) { return [] }
    let writes = queue.filter { waiter in
      guard case .write(let write) = waiter.request, write.owner == nil else { return false }
      let conflicts = read.keys.contains { write.footprint.keys.contains($0) }
      return waiter.deadline <= moment && (conflicts || intersects(all(write.footprint), read.ranges))
    }
    return Set(writes.map(\.id).sorted().prefix(8))
  }

  private func holdsAll(_ read: LockTable.ReadRequest) -> Bool {
    guard let own = locks[read.owner] else { return false }
    return read.keys.allSatisfy { own.keys.contains($0) }
      && read.ranges.allSatisfy { own.requested.contains($0) || covers(own.scanned, $0) }
  }

  private func all(_ footprint: LockTable.Footprint) -> [Key] {
    footprint.keys + footprint.entries.flatMap { $0 }
  }

  private func intersects(_ keys: [Key], _ ranges: [KeyRange]) -> Bool {
    keys.contains { key in ranges.contains { $0.contains(key) } }
  }

  /// True if the ranges cover `wanted`. Ranges end only at keys that the tests generate.
  private func covers(_ ranges: [KeyRange], _ wanted: KeyRange) -> Bool {
    var position = wanted.start
    while true {
      if let end = wanted.end, !position.lexicographicallyPrecedes(end) { return true }
      guard let next = ranges.first(where: { $0.contains(position) }) else { return false }
      guard let end = next.end else { return true }
      position = end
    }
  }

  mutating func acquire(_ request: LockTable.Request) {
    switch request {
    case .read(let read):
      locks[read.owner, default: HeldLocks(mode: read.mode)].keys += read.keys
      locks[read.owner]?.requested += read.ranges
    case .write(let write): inFlight[write.writer] = write.footprint
    case .afterWrites: break
    }
  }

  /// Grants the first request that can be granted, until none can.
  mutating func grantAll() -> [UInt64] {
    var granted: [UInt64] = []
    while let position = queue.indices.first(where: { !isBlocked(queue[$0].request, at: $0) }) {
      let waiter = queue.remove(at: position)
      acquire(waiter.request)
      granted.append(waiter.id)
    }
    return granted
  }
}

@Suite("Lock table", .timeLimit(.minutes(10))) struct LockStateTests {
  @Test(
    "a read waits behind the eight oldest conflicting writes that time out soon; a release grants the writes and the read"
  )
  func yieldsToEightWrites() throws {
    var state = LockTable.State()
    let holder = LockTable.Owner(id: 1, age: 1)
    let reader = LockTable.Owner(id: 2, age: 2)
    let (even, odd): (Key, Key) = ([1, 0], [1, 1])
    state.acquire(
      .read(LockTable.ReadRequest(owner: holder, mode: .shared, keys: [even, odd], ranges: [])), from: 0)
    for id in UInt64(1)...60 {
      let footprint = LockTable.Footprint(
        keys: [id.isMultiple(of: 2) ? even : odd], entries: [[[2, UInt8(id)]]])
      let request = LockTable.Request.write(
        LockTable.WriteRequest(writer: id, owner: nil, footprint: footprint))
      let found = state.blocker(of: request, before: id)
      let witness = try #require(found)
      // Every fifth write times out after time 1, so the read does not yield to it.
      let waiter = LockTable.Waiter(id: id, request: request, deadline: id.isMultiple(of: 5) ? 9 : 1) { _ in }
      state.append(waiter, witness: witness)
    }
    func writes(_ keys: [Key], _ ranges: [KeyRange]) -> Set<UInt64> {
      let read = LockTable.ReadRequest(owner: reader, mode: .shared, keys: keys, ranges: ranges)
      return state.writes(conflictingWith: read, endingBy: 1)
    }
    let entries = KeyRange(start: [2, 4], end: [2, 8])
    #expect(writes([even], []) == [2, 4, 6, 8, 12, 14, 16, 18])
    #expect(writes([even, odd], []) == [1, 2, 3, 4, 6, 7, 8, 9])
    #expect(writes([odd, even, odd], []) == [1, 2, 3, 4, 6, 7, 8, 9])
    #expect(writes([], [entries]) == [4, 6, 7])
    #expect(writes([even], [entries]) == [2, 4, 6, 7, 8, 12, 14, 16])
    #expect(writes([], [KeyRange(prefix: [2])]) == [1, 2, 3, 4, 6, 7, 8, 9])
    let afterWrites = LockTable.Request.afterWrites(reader, after: writes([even], []))
    let found = state.blocker(of: afterWrites, before: 61)
    let witness = try #require(found)
    state.append(LockTable.Waiter(id: 61, request: afterWrites) { _ in }, witness: witness)
    state.release(holder)
    #expect(state.grant(after: .owner(holder)).map(\.id) == Array(1...61))
  }

  @Test("random requests are granted or queued as in the model", arguments: 0..<20)
  func matchesModel(seed: UInt64) throws {
    var source = RandomRanges(seed: seed + 100)
    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &source.random) }
    var state = LockTable.State()
    var model = ModelLocks()
    var nextID: UInt64 = 1
    let owners = (1...6).map { LockTable.Owner(id: $0, age: $0) }
    func mode(_ owner: LockTable.Owner) -> LockTable.Mode { owner.id > 4 ? .exclusive : .shared }
    for _ in 0..<600 {
      var granted: [UInt64] = []
      switch below(10) {
      case 0..<4:
        let owner = owners[below(owners.count)]
        let id = nextID
        nextID += 1
        let request: LockTable.Request
        if below(3) > 0 {
          let read = LockTable.ReadRequest(
            owner: owner, mode: mode(owner), keys: (0..<below(3)).map { _ in source.key() },
            ranges: (0..<below(2)).map { _ in source.filledRange() })
          let moment = UInt64(below(4))
          let writes = model.writes(conflictingWith: read, endingBy: moment)
          #expect(state.writes(conflictingWith: read, endingBy: moment) == writes)
          request = writes.isEmpty || below(2) == 0 ? .read(read) : .afterWrites(owner, after: writes)
        } else {
          let footprint = LockTable.Footprint(
            keys: (0...below(2)).map { _ in source.key() },
            entries: [(0..<below(3)).map { _ in source.key() }])
          request = .write(
            LockTable.WriteRequest(writer: id, owner: below(2) == 0 ? nil : owner, footprint: footprint))
        }
        let deadline = UInt64(below(4))
        let isBlocked = model.isBlocked(request, at: model.queue.count)
        if let witness = state.blocker(of: request, before: id) {
          #expect(isBlocked)
          let waiter = LockTable.Waiter(id: id, request: request, deadline: deadline) { _ in }
          state.append(waiter, witness: witness)
          model.queue.append((id, request, deadline))
        } else {
          #expect(!isBlocked)
          state.acquire(request, from: id)
          model.acquire(request)
          if let owner = request.owner { granted = state.grant(after: .owner(owner)).map(\.id) }
        }
      case 4..<6:
        guard let writer = model.inFlight.keys.sorted().first else { continue }
        state.removeFootprint(of: writer)
        granted = state.grant(after: .footprint(writer)).map(\.id)
        model.inFlight[writer] = nil
      case 6:
        guard let waiter = model.queue.randomElement(using: &source.random) else { continue }
        let found = state.remove(waiter: waiter.id)
        let removed = try #require(found)
        model.queue.removeAll { $0.id == waiter.id }
        granted = state.grant(after: removed.blocker).map(\.id)
      case 7:
        let owner = owners[below(owners.count)]
        guard let range = model.locks[owner]?.requested.last else { continue }
        let part = KeyRange(start: range.start, end: below(2) == 0 ? range.end : range.start + [1])
        let isInside =
          range.end.map { end in part.end.map { !end.lexicographicallyPrecedes($0) } ?? false } ?? true
        let scanned = isInside ? part : range
        state.narrow(range, to: scanned, for: owner)
        granted = state.grant(after: .owner(owner)).map(\.id)
        model.locks[owner]?.requested.removeLast()
        model.locks[owner]?.scanned.append(scanned)
      default:
        let owner = owners[below(owners.count)]
        state.release(owner)
        granted = state.grant(after: .owner(owner)).map(\.id)
        model.locks[owner] = nil
      }
      #expect(granted.sorted() == model.grantAll().sorted())
      #expect(Set(state.waiters.keys) == Set(model.queue.map(\.id)))
    }
    for waiter in model.queue { _ = state.remove(waiter: waiter.id) }
    for owner in owners { state.release(owner) }
    #expect(state.waitingReadKeys.isEmpty && state.waitingReadRanges.isEmpty && state.watchers.isEmpty)
    #expect(state.waitingWriteFootprints.isEmpty && state.yieldingReadCount == 0 && state.waiters.isEmpty)
    for writer in model.inFlight.keys { state.removeFootprint(of: writer) }
    #expect(state.keys.isEmpty && state.sharedRanges.isEmpty && state.exclusiveRanges.isEmpty)
    #expect(state.footprints.isEmpty && state.queuePositions.isEmpty && state.owned.isEmpty)
  }
}
