// Tests masked updates, which make one pass over the fields and the mask. The result must equal setting and
// removing each path separately.

import FirestoreModel
import RandomModels
import Testing

/// Generates maps, and paths that often lead into them.
struct MaskSource {
  var generator: RandomValues
  // The names are few, so that paths often coincide. Some need quotes, escapes or bytewise comparison.
  let names = ["a", "b", "a.b", "`", "\\", "\\`", "\u{E9}", "e\u{301}", "ab", "😀", " "]

  mutating func map(depth: Int = 0) -> MapValue {
    MapValue(
      (0..<generator.below(6)).map { _ in
        let name = generator.pick(names)
        let isMap = depth < 3 && generator.below(3) > 0
        return (name, isMap ? .map(map(depth: depth + 1)) : generator.value(depth: 3))
      })
  }

  /// A path that often leads into one of the maps. It is formatted and parsed as the text that clients send.
  mutating func path(in maps: [MapValue]) throws -> FieldPath {
    var names: [String] = []
    var map: MapValue? = generator.pick(maps)
    repeat {
      if let inside = map, !inside.isEmpty, generator.below(4) > 0 {
        let entry = inside.entries[generator.below(inside.count)]
        names.append(entry.key)
        map = if case .map(let next) = entry.value { next } else { nil }
      } else {
        names.append(generator.pick(self.names))
        map = nil
      }
    } while names.count < 4 && generator.below(3) > 0
    let path = try #require(FieldPath(segments: names))
    let parsed = try FieldPath(parsing: path.description)
    #expect(parsed == path)
    return parsed
  }
}

@Suite("Masked updates", .timeLimit(.minutes(10)))
struct MaskedUpdateTests {
  /// A simple implementation of masked updates.
  private func naive(_ fields: MapValue, _ update: MapValue, _ mask: [FieldPath]) -> MapValue {
    var result = fields
    for path in mask {
      if let value = update.value(at: path) { result.set(value, at: path) } else { result.remove(at: path) }
    }
    return result
  }

  @Test("One pass over sorted paths equals applying each path, in any order and with nested paths")
  func againstNaive() throws {
    var source = MaskSource(generator: RandomValues(seed: 91))
    for _ in 0..<20_000 {
      let fields = source.map()
      let update = source.map()
      var mask: [FieldPath] = []
      for _ in 0..<source.generator.below(7) { mask.append(try source.path(in: [fields, update])) }
      #expect(
        fields.merging(update, mask: mask) == naive(fields, update, mask), "\(fields) \(update) \(mask)")
      let shuffled = mask.shuffled(using: &source.generator.random)
      #expect(fields.merging(update, mask: shuffled) == naive(fields, update, mask))
    }
  }

  @Test("An empty mask changes nothing, whatever the update contains")
  func emptyMask() {
    let fields: MapValue = ["a": 1]
    #expect(fields.merging(["a": 2], mask: []) == fields)
  }

  @Test("An update of 20,000 fields with a mask of 20,000 paths takes one pass")
  func manyFields() throws {
    let count = 20_000
    func name(_ index: Int) -> String { "f\(index)" }
    // The document has as many small fields as 1 MiB permits. Every second field of the mask exists.
    let fields = MapValue((0..<count).filter { $0.isMultiple(of: 2) }.map { (name($0), Value.integer(0)) })
    let update = MapValue((0..<count).filter { !$0.isMultiple(of: 3) }.map { (name($0), Value.integer(1)) })
    let mask = (0..<count).reversed().map { FieldPath(field: name($0)) }
    let clock = ContinuousClock()
    let time = clock.measure {
      let result = fields.merging(update, mask: mask)
      #expect(result == update)
      let outer: MapValue = ["m": .map(fields)]
      let paths = mask.compactMap { FieldPath(segments: ["m"] + $0.segments) }
      let nested = outer.merging(["m": .map(update)], mask: paths)
      #expect(nested == ["m": .map(update)])
    }
    // One pass takes milliseconds. An update that moved the fields for every path would take minutes.
    #expect(time < .seconds(20))
  }
}
