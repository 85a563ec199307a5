// Indexes the footprints of commits (the keys that they change), to find those that conflict with a read.
//
// A footprint's row keys are indexed when a transaction's read is next compared with the footprints. A database whose
// transactions take no locks therefore does not pay for the index.
//
// Invariants
//   1. `numbers` contains the row keys of exactly those footprints in `members` that are not in `unindexed`.
//   2. Footprints are indexed in the order of their insertion.

import OrderedStore

extension LockTable {
  /// Footprints by number: a writer's number or a waiter's id.
  struct Footprints {
    private var members: [UInt64: Footprint] = [:]
    /// For each row key, the numbers of the indexed footprints that contain it, in insertion order.
    private var numbers: [Key: [UInt64]] = [:]
    /// The numbers of the footprints that are not indexed yet, in insertion order.
    private var unindexed: [UInt64] = []

    var isEmpty: Bool { members.isEmpty && numbers.isEmpty }

    mutating func insert(_ footprint: Footprint, as number: UInt64) {
      precondition(members[number] == nil, "invariant: a writer has one footprint")
      members[number] = footprint
      unindexed.append(number)
    }

    private mutating func index() {
      for number in unindexed {
        for key in members[number]?.keys ?? [] { numbers[key, default: []].append(number) }
      }
      unindexed.removeAll(keepingCapacity: true)
    }

    mutating func remove(_ number: UInt64) {
      guard let footprint = members.removeValue(forKey: number) else { return }
      // Commits end nearly in the order in which they were inserted.
      if let position = unindexed.firstIndex(of: number) {
        unindexed.remove(at: position)
        return
      }
      for key in footprint.keys {
        guard var others = numbers[key] else { continue }
        others.removeAll { $0 == number }
        numbers[key] = others.isEmpty ? nil : others
      }
    }

    /// A footprint that conflicts with a read; nil if none does.
    mutating func any(conflictingWith read: ReadRequest) -> UInt64? {
      guard !members.isEmpty else { return nil }
      index()
      // The commit that was inserted last probably ends last. If the read waits for it, the earlier commits have
      // probably ended too when the read is checked again.
      for key in read.keys { if let last = numbers[key]?.last { return last } }
      guard !read.ranges.isEmpty else { return nil }
      return Array(members.keys).first { has($0, keyIn: read.ranges) }
    }

    /// The `count` lowest numbers of wanted footprints that conflict with a read. `isWanted` is checked
    /// before the footprint's keys, since sorting these is expensive.
    mutating func lowest(
      _ count: Int, conflictingWith read: ReadRequest, where isWanted: (UInt64) -> Bool
    ) -> [UInt64] {
      index()
      var found: [UInt64] = []
      func isBeyond(_ number: UInt64) -> Bool {
        found.count == count && found.last.map { number > $0 } ?? true
      }
      func add(_ number: UInt64) {
        found.insert(number, at: found.firstIndex { $0 > number } ?? found.count)
        if found.count > count { found.removeLast() }
      }
      for key in read.keys {
        for number in numbers[key] ?? [] {
          // Waiting writes are inserted in the order of their numbers, or nearly so.
          if isBeyond(number) { break }
          if !found.contains(number), isWanted(number) { add(number) }
        }
      }
      guard !read.ranges.isEmpty else { return found }
      for number in members.keys.filter(isWanted).sorted() {
        if isBeyond(number) { break }
        if !found.contains(number), has(number, keyIn: read.ranges) { add(number) }
      }
      return found
    }

    private mutating func has(_ number: UInt64, keyIn ranges: [KeyRange]) -> Bool {
      guard let footprint = members[number] else { return false }
      let ordered = footprint.ordered ?? footprint.sorted()
      if footprint.ordered == nil { members[number]?.ordered = ordered }
      return ranges.contains { Footprints.has(ordered, keyIn: $0) }
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
  }
}

extension LockTable.Footprint {
  /// Whether a condition holds for all rows and entries.
  func allKeys(_ body: (Key) -> Bool) -> Bool {
    keys.allSatisfy(body) && entries.allSatisfy { $0.allSatisfy(body) }
  }

  /// All rows and entries, sorted.
  func sorted() -> [Key] {
    var all: [Key] = []
    _ = allKeys { key in
      all.append(key)
      return true
    }
    all.sort { compareKeys($0, $1) < 0 }
    return all
  }
}
