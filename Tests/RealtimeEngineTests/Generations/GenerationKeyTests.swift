// Tests the mapping from keys of the tree to physical keys against a naive model. A generation is a large
// subtree whose rows have a separate key prefix. A pending delete is a range of replaced rows that the server clears in
// the background.

import OrderedStore
import RandomModels
import Testing

@testable import RealtimeEngine

@Suite("Physical keys of generations")
struct GenerationKeyTests {
  @Test(
    "A key's row is in the innermost generation, and a range splits into physical ranges that hold each key once",
    arguments: 0..<200)
  func contiguousRanges(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    func key() -> [UInt8] {
      var bytes: [UInt8] = [RowKeys.tree]
      for _ in 0..<random.below(4) { bytes += [UInt8(97 + random.below(2)), RowKeys.terminator] }
      return bytes
    }
    var generations = SubtreeGenerations()
    var naive: [[UInt8]: UInt64] = [:]
    for number in 1...(1 + random.below(6)) {
      let prefix = key()
      naive = naive.filter { !$0.key.starts(with: prefix) }
      naive[prefix] = UInt64(number)
      generations.install(SubtreeGeneration(prefix: prefix, number: UInt64(number)))
    }
    func stored(_ key: [UInt8]) -> [UInt8] {
      guard let holder = naive.filter({ key.starts(with: $0.key) }).max(by: { $0.key.count < $1.key.count })
      else { return key }
      return RowKeys.prefix(ofGeneration: holder.value) + key.dropFirst(holder.key.count)
    }
    let keys = Set((0..<60).map { _ in key() }).sorted { compareKeys($0, $1) < 0 }
    for key in keys { #expect(generations.physicalKey(key) == stored(key)) }
    let range = random.below(2) == 0 ? KeyRange(prefix: key()) : KeyRange(start: key(), end: key() + [0xff])
    guard range.end.map({ compareKeys(range.start, $0) < 0 }) ?? true else { return }
    var found: [[UInt8]] = []
    var rest: KeyRange? = range
    while let current = rest {
      let (run, next) = generations.contiguousRange(current)
      for key in keys where run.range.contains(stored(key)) && range.contains(key) { found.append(key) }
      // A contiguous physical range contains no row of a key outside the requested range.
      for key in keys where run.range.contains(stored(key)) && stored(key) != key {
        #expect(range.contains(key))
      }
      rest = next.map { KeyRange(start: $0, end: range.end) }
    }
    #expect(found == keys.filter(range.contains))
  }

  @Test("The range of a pending delete is the same after encoding and decoding")
  func pendingDelete() throws {
    let long = [UInt8](repeating: 7, count: 300)
    for range in [KeyRange(prefix: [1]), KeyRange(start: long, end: nil), KeyRange(start: [], end: [0])] {
      #expect(try GenerationRows.decode(GenerationRows.encode(range)) == range)
    }
    #expect(throws: (any Error).self) { try GenerationRows.decode([9, 1]) }
    #expect(throws: (any Error).self) { try GenerationRows.decode([]) }
  }
}
