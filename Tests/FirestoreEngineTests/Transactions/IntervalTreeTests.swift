// The interval tree and the union of key ranges, compared with linear searches.

import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

/// Random short keys, so that ranges often overlap, touch or repeat.
struct RandomRanges {
  var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func key() -> Key {
    (0..<Int.random(in: 0...2, using: &random)).map { _ in UInt8.random(in: 0...5, using: &random) }
  }

  mutating func range() -> KeyRange {
    let (a, b) = (key(), key())
    let isOpen = Int.random(in: 0..<12, using: &random) == 0
    let (start, end) = a.lexicographicallyPrecedes(b) ? (a, b) : (b, a)
    return KeyRange(start: start, end: isOpen ? nil : end)
  }

  /// Returns a range that contains at least one key.
  mutating func filledRange() -> KeyRange {
    while true {
      let range = range()
      if !range.isEmptyRange { return range }
    }
  }

  static func overlap(_ a: KeyRange, _ b: KeyRange) -> Bool {
    if a.isEmptyRange || b.isEmptyRange { return false }
    if let end = a.end, !b.start.lexicographicallyPrecedes(end) { return false }
    if let end = b.end, !a.start.lexicographicallyPrecedes(end) { return false }
    return true
  }
}

@Suite("Interval tree", .timeLimit(.minutes(10))) struct IntervalTreeTests {
  @Test(
    "a search finds exactly the ranges that contain a key or overlap a range, after any insertions and removals"
  )
  func matchesLinearSearch() {
    var source = RandomRanges(seed: 5)
    for _ in 0..<60 {
      var tree = IntervalTree<Int>()
      var list: [(id: UInt64, range: KeyRange, payload: Int)] = []
      for step in 0..<150 {
        if !list.isEmpty, Int.random(in: 0..<3, using: &source.random) == 0 {
          let removed = list.remove(at: Int.random(in: 0..<list.count, using: &source.random))
          tree.remove(removed.id, startingAt: removed.range.start)
        } else {
          let range = source.filledRange()
          list.append((tree.insert(range, step), range, step))
        }
        #expect(tree.count == list.count)
        let key = source.key()
        var found: [Int] = []
        tree.visit(containing: key) {
          found.append($0); return true
        }
        #expect(found.sorted() == list.filter { $0.range.contains(key) }.map(\.payload).sorted())
        let range = source.filledRange()
        found = []
        tree.visit(overlapping: range) {
          found.append($0); return true
        }
        #expect(
          found.sorted() == list.filter { RandomRanges.overlap($0.range, range) }.map(\.payload).sorted())
      }
    }
  }

  @Test("a search among many ranges visits only matches, and stops on request")
  func visitsOnlyMatches() {
    var tree = IntervalTree<Int>()
    let count = 100_000
    func key(_ number: Int) -> Key {
      [UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    }
    for number in 0..<count { _ = tree.insert(KeyRange(start: key(number), end: key(number + 1)), number) }
    for number in stride(from: 0, to: count, by: 7) {
      var found: [Int] = []
      tree.visit(containing: key(number)) {
        found.append($0); return true
      }
      #expect(found == [number])
    }
    var visits = 0
    tree.visit(overlapping: KeyRange(start: [], end: nil)) { _ in
      visits += 1
      return visits < 10
    }
    #expect(visits == 10)
  }

  @Test("a union of ranges contains exactly their keys, in the fewest ranges")
  func incrementalUnion() throws {
    var source = RandomRanges(seed: 6)
    let keys = (0..<400).map { _ in source.key() }
    for _ in 0..<100 {
      var union = HeldRanges()
      var list: [KeyRange] = []
      for id in 0..<25 {
        let range = source.filledRange()
        list.append(range)
        let covered = union.covers(range)
        let added = union.absorbing(range)
        #expect(covered == (added == nil))
        if let (merged, absorbed) = added {
          union.replace(absorbed, with: HeldRanges.Entry(range: merged, id: UInt64(id)))
        }
        for key in keys {
          #expect(
            union.entries.count { $0.range.contains(key) } == (list.contains { $0.contains(key) } ? 1 : 0))
        }
        for (a, b) in zip(union.entries, union.entries.dropFirst()) {
          let end = try #require(a.range.end)
          #expect(end.lexicographicallyPrecedes(b.range.start))
        }
      }
    }
  }

  @Test("the union of a list of ranges has exactly their keys, without overlapping or touching ranges")
  func unionOfList() {
    var source = RandomRanges(seed: 8)
    for _ in 0..<500 {
      let ranges = (0..<Int.random(in: 0..<8, using: &source.random)).map { _ in source.range() }
      let union = KeyRange.union(of: ranges)
      for _ in 0..<20 {
        let key = source.key()
        #expect(union.contains { $0.contains(key) } == ranges.contains { $0.contains(key) })
      }
      for (any, next) in zip(union, union.dropFirst()) {
        #expect(any.end.map { $0.lexicographicallyPrecedes(next.start) } == true)
      }
    }
  }
}
