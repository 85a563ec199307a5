// Tests of the ordered map (a copy-on-write B+ tree) and of key ranges, against simple models.

import OrderedStore
import RandomModels
import Testing

extension SeededGenerator {
  mutating func key(bytes: UInt8 = 20) -> Key {
    (0..<Int.random(in: 0...3, using: &self)).map { _ in UInt8.random(in: 0..<bytes, using: &self) }
  }
}

@Suite("Ordered map")
struct OrderedMapTests {
  private static func forward(_ map: OrderedMap<Int>, from start: Key = []) -> [Key] {
    var cursor = OrderedMapCursor(map)
    start.withUnsafeBytes { cursor.seek($0) }
    var keys: [Key] = []
    while cursor.isValid {
      keys.append(cursor.key)
      cursor.next()
    }
    return keys
  }

  private static func backward(_ map: OrderedMap<Int>, below end: Key? = nil) -> [Key] {
    var cursor = OrderedMapCursor(map)
    if let end { end.withUnsafeBytes { cursor.seekBelow($0) } } else { cursor.seekToLast() }
    var keys: [Key] = []
    while cursor.isValid {
      keys.append(cursor.key)
      cursor.previous()
    }
    return keys
  }

  @Test(
    "A filtered map has the included keys in order, and accepts further changes",
    arguments: [0, 1, 47, 48, 49, 5000])
  func filtered(count: Int) {
    var random = SeededGenerator(seed: UInt64(count))
    var map = OrderedMap<Int>()
    while map.count < count {
      map.updateValue(Int.random(in: 0..<3, using: &random), forKey: random.key(bytes: 40))
    }
    var model: [Key: Int] = [:]
    for key in Self.forward(map) { model[key] = map[key] }
    for excluded in [3, 0, 1, 2] {
      map = map.filtered { $0 != excluded }
      model = model.filter { $0.value != excluded }
      #expect(map.count == model.count)
      let sorted = model.keys.sorted { $0.lexicographicallyPrecedes($1) }
      #expect(Self.forward(map) == sorted)
      #expect(Self.backward(map) == sorted.reversed())
      #expect(sorted.allSatisfy { map[$0] == model[$0] })
      for _ in 0..<100 {
        let key = random.key(bytes: 40)
        #expect(map.updateValue(2, forKey: key) == model.updateValue(2, forKey: key))
        let removed = random.key(bytes: 40)
        #expect(map.removeValue(forKey: removed) == model.removeValue(forKey: removed))
      }
    }
  }

  @Test(
    "The map agrees with a dictionary after random changes", arguments: 1...6 as ClosedRange<UInt64>
  )
  func agreesWithDictionary(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var map = OrderedMap<Int>()
    var model: [Key: Int] = [:]
    for step in 0..<6000 {
      let key = random.key()
      // Phases with mostly insertions alternate with phases with mostly removals, so that nodes split and
      // become empty.
      if Int.random(in: 0..<10, using: &random) < ((step / 1500) % 2 == 0 ? 7 : 2) {
        #expect(map.updateValue(step, forKey: key) == model.updateValue(step, forKey: key))
      } else {
        #expect(map.removeValue(forKey: key) == model.removeValue(forKey: key))
      }
      #expect(map.count == model.count)
      if step % 500 == 0 || step == 5999 {
        let sorted = model.keys.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(Self.forward(map) == sorted)
        #expect(Self.backward(map) == sorted.reversed())
        let bound = random.key()
        #expect(Self.forward(map, from: bound) == sorted.filter { !$0.lexicographicallyPrecedes(bound) })
        #expect(
          Self.backward(map, below: bound) == sorted.filter { $0.lexicographicallyPrecedes(bound) }.reversed()
        )
        for key in sorted { #expect(map[key] == model[key]) }
      }
    }
  }

  @Test("A copy does not change when the original does", arguments: 1...3 as ClosedRange<UInt64>)
  func copiesAreIndependent(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var map = OrderedMap<Int>()
    var copies: [(map: OrderedMap<Int>, model: [Key: Int])] = []
    var model: [Key: Int] = [:]
    for step in 0..<2000 {
      let key = random.key()
      if Bool.random(using: &random) {
        map.updateValue(step, forKey: key)
        model[key] = step
      } else {
        map.removeValue(forKey: key)
        model[key] = nil
      }
      if step % 100 == 0 { copies.append((map, model)) }
    }
    for (map, model) in copies {
      #expect(Self.forward(map) == model.keys.sorted { $0.lexicographicallyPrecedes($1) })
      for (key, value) in model { #expect(map[key] == value) }
    }
  }

  @Test("A map used as a queue contains exactly the keys that are not removed yet")
  func useAsQueue() {
    var map = OrderedMap<Int>()
    func key(_ number: Int) -> Key { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
    for number in 0..<20_000 {
      map.updateValue(number, forKey: key(number))
      if number >= 100 { #expect(map.removeValue(forKey: key(number - 100)) == number - 100) }
    }
    #expect(map.count == 100)
    #expect(Self.forward(map) == (19_900..<20_000).map(key))
    for number in 19_900..<20_000 { map.removeValue(forKey: key(number)) }
    #expect(map.isEmpty && Self.forward(map).isEmpty && Self.backward(map).isEmpty)
  }
}

@Suite("Key ranges")
struct KeyRangeTests {
  @Test("The successor of a prefix is the least key above all keys with the prefix")
  func prefixSuccessor() {
    #expect(KeyRange.successor(ofPrefix: [1, 2]) == [1, 3])
    #expect(KeyRange.successor(ofPrefix: [1, 255]) == [2])
    #expect(KeyRange.successor(ofPrefix: [255, 255]) == nil)
    #expect(KeyRange.successor(ofPrefix: []) == nil)
  }

  @Test(
    "The range of a prefix contains exactly the keys with the prefix", arguments: 1...3 as ClosedRange<UInt64>
  )
  func prefixRange(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<2000 {
      let prefix = random.key(bytes: 3)
      let key = random.key(bytes: 3)
      #expect(KeyRange(prefix: prefix).contains(key) == key.starts(with: prefix), "\(prefix) \(key)")
    }
  }
}
