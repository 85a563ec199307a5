// Tests that truncated values in index entries keep the order of values. Different values may have equal entries, but no
// entry is on the wrong side of another entry, and every range contains the entries of its values.

import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Truncated values in index entries", .timeLimit(.minutes(10))) struct TruncatedValueTests {
  private static let values: [Value] = {
    var source = RandomValues(seed: 21)
    return (0..<250).map { _ in source.longValue(isWide: true) }
  }()

  @Test("entries sort as values do, ascending and descending; only truncated values may have equal entries")
  func order() {
    let values = Self.values
    var ties = 0
    for mode in [CompositeIndex.Mode.ascending, .descending] {
      // A document's id follows the value in an entry.
      let keys = values.map { NumberedIndex.encode($0, mode) + FirestoreKeyLayout.segment("d") }
      for i in values.indices {
        for j in i..<values.count {
          let (a, b) = mode == .ascending ? (values[i], values[j]) : (values[j], values[i])
          let order = Value.compare(a, b)
          let bytes = ComparisonOrder.compare(bytes: keys[i], keys[j])
          if bytes == order { continue }
          let isTie = bytes == .same && !IndexValue.isExact(a) && !IndexValue.isExact(b)
          if isTie { ties += 1 }
          #expect(isTie, "\(a.canonicalText.suffix(40)) \(b.canonicalText.suffix(40))")
        }
      }
    }
    #expect(ties > 300)
  }

  @Test("the decoder finds the end of every value in an index entry")
  func ends() {
    for value in Self.values {
      let bytes = IndexValue.encode(value)
      let key = [9] + bytes + FirestoreKeyLayout.segment("d")
      #expect(IndexValue.end(in: key, from: 1) == 1 + bytes.count)
    }
  }

  @Test("the range of a filter contains the entries of all matching values")
  func ranges() {
    let field = FieldPath(field: "f")
    var matches = 0
    for operand in Self.values.prefix(60) where operand != .null {
      for op in [
        FieldFilter.Operator.equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
      ] {
        let filter = FieldFilter(field, op, operand)
        let range = KeyRange(ofValues: field, meeting: [.field(filter)])
        for value in Self.values where filter.matches(value) {
          matches += 1
          let key = IndexValue.encode(value) + FirestoreKeyLayout.segment("d")
          let isInside = range.contains(key)
          #expect(isInside, "\(op) \(operand.canonicalText.suffix(40))")
        }
      }
    }
    #expect(matches > 1_000)
  }
}
