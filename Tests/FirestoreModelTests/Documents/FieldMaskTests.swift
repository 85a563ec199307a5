// Tests field masks. A projection merges a sorted mask with the document's sorted fields in one pass. The tests
// compare its result with looking up each path, and measure its cost with long masks.

import FirestoreModel
import RandomModels
import Testing

@Suite("Field masks", .timeLimit(.minutes(10)))
struct FieldMaskTests {
  /// A simple implementation of projections.
  private func naive(_ fields: MapValue, _ paths: [FieldPath]) -> MapValue {
    var result = MapValue()
    for path in paths where !path.isDocumentID {
      if let value = fields.value(at: path) { result.set(value, at: path) }
    }
    return result
  }

  @Test(
    "A projection selects the same fields as looking up each path, in any order, with repeats, nested paths and `__name__`"
  )
  func againstNaive() throws {
    var source = MaskSource(generator: RandomValues(seed: 92))
    for _ in 0..<20_000 {
      var fields = source.map()
      if source.generator.below(8) == 0 { fields["__name__"] = ["a": 1] }
      var paths: [FieldPath] = []
      for _ in 0..<source.generator.below(9) { paths.append(try source.path(in: [fields])) }
      if source.generator.below(4) == 0 { paths.append(.documentID) }
      if source.generator.below(8) == 0 { paths.append(FieldPath.documentID.appending("a")) }
      if let path = paths.first, source.generator.below(4) == 0 { paths.append(path) }
      let mask = FieldMask(paths)
      #expect(fields.projected(to: mask) == naive(fields, paths), "\(fields) \(paths)")
      // The mask does not depend on the order of the paths.
      #expect(mask == FieldMask(paths.shuffled(using: &source.generator.random)))
      #expect(mask == FieldMask(mask.paths) && mask.paths == mask.paths.sorted())
      for path in mask.paths {
        #expect(paths.contains(path) && !mask.paths.contains { $0 != path && path.hasPrefix($0) })
      }
    }
  }

  @Test("Names with equal characters but different bytes are different names")
  func bytewiseNames() {
    let fields: MapValue = ["\u{E9}": 1, "e\u{301}": 2]
    #expect(fields.projected(to: [FieldPath(field: "\u{E9}")]) == ["\u{E9}": 1])
    #expect(FieldMask([FieldPath(field: "\u{E9}")]) != [FieldPath(field: "e\u{301}")])
  }

  @Test("The cost of a projection is proportional to the smaller of the document's fields and the mask")
  func cost() throws {
    let names = (0..<200_000).map { "f\($0)" }
    let mask = FieldMask(names.map { FieldPath(field: $0) })
    let nested = FieldMask(names.map { FieldPath(field: "m").appending($0) })
    let small: MapValue = ["f7": 1, "f70000": 2, "g": 3]
    let large = MapValue(names.map { ($0, Value.integer(0)) })
    #expect(mask.heldBytes >= 200_000 * 24 && mask.heldBytes < 200_000 * 80)
    let clock = ContinuousClock()
    let time = clock.measure {
      for _ in 0..<20_000 {
        #expect(small.projected(to: mask) == ["f7": 1, "f70000": 2])
        #expect((["m": .map(small)] as MapValue).projected(to: nested) == ["m": ["f7": 1, "f70000": 2]])
        #expect(large.projected(to: [FieldPath(field: "f199999")]).count == 1)
      }
      #expect(large.projected(to: mask) == large)
    }
    // Looking up every path in every document would take hours.
    #expect(time < .seconds(120))
  }

  @Test(
    "The cost of deep paths is proportional to their length, and common prefixes select no other fields"
  )
  func deepPaths() throws {
    let names = (0..<2_000).map { "b\($0)" }
    let suffix = Array(repeating: "a", count: 700)
    func paths(_ beginning: [String]) throws -> [FieldPath] {
      try names.map { try #require(FieldPath(segments: beginning + [$0] + suffix)) }
    }
    for beginning in [[], ["m", "n"]] {
      let paths = try paths(beginning)
      let clock = ContinuousClock()
      let time = try clock.measure {
        let mask = FieldMask(paths)
        #expect(mask.paths == paths.sorted())
        #expect(mask.heldBytes >= 2_000 * 701 * 16 && mask.heldBytes < 2_000 * 750 * 16)
        let inside = try #require(FieldPath(segments: beginning + ["b77"] + suffix))
        var fields: MapValue = [:]
        fields.set(1, at: inside)
        var kept = fields
        fields.set(2, at: FieldPath(segments: beginning + ["b770", "a", "b"]) ?? inside)
        fields.set(3, at: FieldPath(segments: beginning + ["c"]) ?? inside)
        #expect(fields.projected(to: mask) == kept)
        kept.set(4, at: FieldPath(segments: beginning + ["b1999"] + suffix) ?? inside)
        #expect(kept.projected(to: mask) == kept)
      }
      #expect(time < .seconds(120))
    }
  }
}
