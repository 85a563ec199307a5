// Tests `MapValue` against a plain list of pairs, a slow and simple implementation of a map.

import FirestoreModel
import RandomModels
import Testing

@Suite("Maps of fields", .timeLimit(.minutes(10)))
struct MapValueTests {
  /// A slow map: unsorted pairs, with keys compared by bytes.
  struct PairList {
    var pairs: [(key: String, value: Value)] = []

    subscript(key: String) -> Value? {
      get { pairs.first { $0.key.hasSameUTF8(as: key) }?.value }
      set {
        pairs.removeAll { $0.key.hasSameUTF8(as: key) }
        if let newValue { pairs.append((key, newValue)) }
      }
    }

    var sorted: [String] { pairs.map(\.key).sorted { $0.precedesInUTF8($1) } }
  }

  static let keys = ["", "a", "A", "aa", "é", "e\u{301}", "z", "\u{FFFD}", "😀", "a.b", "a\u{0}"]

  @Test("Random changes give the same fields as a plain list, always sorted")
  func randomChanges() {
    var source = RandomValues(seed: 71)
    for _ in 0..<300 {
      var map = MapValue()
      var list = PairList()
      for _ in 0..<30 {
        let key = source.pick(Self.keys)
        switch source.below(4) {
        case 0:
          map[key] = nil
          list[key] = nil
        case 1:
          let value = source.value(depth: 2)
          map.update(key) { slot in slot = slot == nil ? value : .array([]) }
          list[key] = list[key] == nil ? value : .array([])
        default:
          let value = source.value(depth: 2)
          map[key] = value
          list[key] = value
        }
      }
      #expect(map.map(\.key).elementsEqual(list.sorted) { $0.hasSameUTF8(as: $1) })
      for key in Self.keys { #expect(map[key] == list[key]) }
      #expect(map.count == list.pairs.count && map.isEmpty == list.pairs.isEmpty)
    }
  }

  @Test("A map made of pairs in any order equals a map whose fields were set one by one")
  func construction() {
    var source = RandomValues(seed: 72)
    for _ in 0..<2000 {
      let pairs = (0..<source.below(8)).map { _ in (source.pick(Self.keys), source.value(depth: 2)) }
      var oneByOne = MapValue()
      for (key, value) in pairs { oneByOne[key] = value }
      let atOnce = MapValue(pairs)
      #expect(atOnce == oneByOne && atOnce.hashValue == oneByOne.hashValue)
      #expect(MapValue(unsorted: atOnce.entries) == atOnce)
    }
  }

  @Test("An update that throws leaves the map unchanged")
  func throwingUpdate() {
    var map: MapValue = ["a": 1]
    #expect(throws: FirestoreError.self) {
      try map.update("a") { slot in
        slot = 2
        throw FirestoreError.aborted("no")
      }
    }
    #expect(map == ["a": 1])
    map.update("a") { $0 = nil }
    #expect(map.isEmpty)
  }

  @Test("A value set at a path is read there and changes nothing else; removing it restores the map")
  func paths() {
    var source = RandomValues(seed: 73)
    for _ in 0..<3000 {
      let (_, before) = source.document()
      let (path, other) = (source.fieldPath(), source.fieldPath())
      let value = source.value(depth: 2)
      var after = before
      after.set(value, at: path)
      #expect(after.value(at: path) == value)
      if !other.hasPrefix(path), !path.hasPrefix(other) {
        #expect(after.value(at: other) == before.value(at: other))
      }
      after.remove(at: path)
      #expect(after.value(at: path) == nil)
      after.remove(at: path)
      if let old = before.value(at: path) {
        after.set(old, at: path)
        #expect(after == before)
      }
    }
  }

  @Test("A projection to all paths is the document, and projection is idempotent")
  func projections() {
    var source = RandomValues(seed: 74)
    for _ in 0..<1500 {
      let (_, fields) = source.document()
      let all = fields.map { FieldPath(field: $0.key) }
      #expect(fields.projected(to: FieldMask(all)) == fields)
      let some = (0..<source.below(4)).map { _ in source.fieldPath() }
      let mask = FieldMask(some)
      let projected = fields.projected(to: mask)
      #expect(projected.projected(to: mask) == projected)
      for path in some { #expect(projected.value(at: path) == fields.value(at: path)) }
    }
  }

  @Test("After a masked update, fields in the mask equal the update, and other fields equal the document")
  func merging() {
    var source = RandomValues(seed: 75)
    for _ in 0..<3000 {
      let (_, old) = source.document()
      let (_, new) = source.document()
      let mask = [source.fieldPath()]
      let merged = old.merging(new, mask: mask)
      #expect(merged.value(at: mask[0]) == new.value(at: mask[0]))
      let other = source.fieldPath()
      if !other.hasPrefix(mask[0]), !mask[0].hasPrefix(other) {
        #expect(merged.value(at: other) == old.value(at: other))
      }
      #expect(merged.merging(new, mask: mask) == merged)
    }
  }
}
