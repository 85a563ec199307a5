// Footprints of commits, found by what a read asks for.

import OrderedStore

extension LockTable {
  /// Footprints by their numbers.
  struct Footprints {
    private struct Member {
      var footprint: Footprint
      /// All its keys in order, once somebody has asked about a range.
      var ordered: [Key]?
    }

    private var members: [UInt64: Member] = [:]
    private var numbers: [Key: [UInt64]] = [:]

    var isEmpty: Bool { members.isEmpty && numbers.isEmpty }

    mutating func insert(_ footprint: Footprint, as number: UInt64) {
      members[number] = Member(footprint: footprint)
      for key in footprint.keys { numbers[key, default: []].append(number) }
    }

    mutating func remove(_ number: UInt64) {
      guard let member = members.removeValue(forKey: number) else { return }
      for key in member.footprint.keys {
        guard var others = numbers[key] else { continue }
        others.removeAll { $0 == number }
        numbers[key] = others.isEmpty ? nil : others
      }
    }

    /// Visits footprints that a read would see some of, some more than once, until `body` returns false.
    mutating func visit(meeting read: ReadRequest, _ body: (UInt64) -> Bool) {
      guard !members.isEmpty else { return }
      for key in read.keys {
        // The last to come is likely the last to go.
        if let found = numbers[key], !found.reversed().allSatisfy(body) { return }
      }
      guard !read.ranges.isEmpty else { return }
      for number in Array(members.keys) {
        let keys = ordered(number)
        if read.ranges.contains(where: { Footprints.has(keys, keyIn: $0) }), !body(number) { return }
      }
    }

    private mutating func ordered(_ number: UInt64) -> [Key] {
      guard let member = members[number] else { return [] }
      if let ordered = member.ordered { return ordered }
      var all: [Key] = []
      _ = member.footprint.allKeys { key in
        all.append(key)
        return true
      }
      all.sort { compareKeys($0, $1) < 0 }
      members[number]?.ordered = all
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
  }
}

extension LockTable.Footprint {
  /// Whether something holds for all rows and entries.
  func allKeys(_ body: (Key) -> Bool) -> Bool {
    keys.allSatisfy(body) && entries.allSatisfy { $0.allSatisfy(body) }
  }
}
