// Tests the order of truncated encodings: index keys of values that are longer than an index stores.

import FirestoreModel
import RandomModels
import Testing

@Suite("Index keys of truncated values", .timeLimit(.minutes(10)))
struct TruncatedEncodingTests {
  private static let values: [Value] = {
    var source = RandomValues(seed: 11)
    return (0..<300).map { _ in source.longValue(isWide: true) }
  }()

  /// Counts the pairs whose bytes are equal although the values differ, and the pairs that sort differently.
  private static func compare(
    _ values: [Value], _ keys: [[UInt8]], mayTie: ([UInt8]) -> Bool
  ) -> (ties: Int, wrong: Int) {
    var ties = 0
    var wrong = 0
    for i in values.indices {
      for j in i..<values.count {
        let order = Value.compare(values[i], values[j])
        let bytes = ComparisonOrder.compare(bytes: keys[i], keys[j])
        if bytes == order { continue }
        if bytes == .same, mayTie(keys[i]) {
          ties += 1
        } else {
          wrong += 1
        }
      }
    }
    return (ties, wrong)
  }

  @Test(
    "The first 1,500 bytes of keys sort as values do; they are equal for different values only in longer keys"
  )
  func prefixes() {
    let keys = Self.values.map { Array(IndexKeyEncoder.encode($0).prefix(Limits.indexedValueBytes)) }
    let (ties, wrong) = Self.compare(Self.values, keys) { $0.count == Limits.indexedValueBytes }
    #expect(ties > 300 && wrong == 0, "\(ties) ties, \(wrong) wrong")
  }

  @Test("Complete keys of scalars sort as values do; different values have equal keys only if truncated")
  func scalars() {
    let values = Self.values.filter { $0.kind != .array && $0.kind != .map }
    let keys = values.map(IndexKeyEncoder.encode)
    let (ties, wrong) = Self.compare(values, keys) { $0.count > Limits.indexedValueBytes }
    #expect(ties > 30 && wrong == 0, "\(ties) ties, \(wrong) wrong")
  }

  @Test("The bytes of an array's key beyond the first 1,500 may not sort as the array does")
  func bytesAfterTruncation() {
    let text = String(repeating: "x", count: 1_500)
    let smaller = Value.array([.string(text + "a"), 2])
    let larger = Value.array([.string(text + "b"), 1])
    #expect(Value.compare(smaller, larger) == .ascending)
    let keys = [smaller, larger].map(IndexKeyEncoder.encode)
    #expect(ComparisonOrder.compare(bytes: keys[0], keys[1]) == .descending)
    #expect(keys[0].prefix(Limits.indexedValueBytes) == keys[1].prefix(Limits.indexedValueBytes))
  }
}
