// Tests the encoding of index keys: the bytes must sort in the order of the values.

import FirestoreModel
import RandomModels
import Testing

@Suite("Order-preserving encoding", .timeLimit(.minutes(10)))
struct IndexEncodingTests {
  @Test("Encoded bytes sort as values do, on a million random pairs")
  func ordersMillionPairs() {
    var source = RandomValues(seed: 1)
    let values = (0..<1450).map { _ in source.value() }
    let encoded = values.map { IndexKeyEncoder.encode($0) }
    var pairs = 0
    var wrong = 0
    for i in values.indices {
      for j in i..<values.count {
        pairs += 1
        if Value.compare(values[i], values[j]) != ComparisonOrder.compare(bytes: encoded[i], encoded[j]) {
          wrong += 1
          if wrong < 5 { Issue.record("\(values[i]) and \(values[j]) order differently in bytes") }
        }
      }
    }
    #expect(pairs >= 1_000_000)
    #expect(wrong == 0)
  }

  @Test("Integers and doubles sort by value, also where several integers have the same nearest double")
  func ordersNumbers() {
    var source = RandomValues(seed: 2)
    var numbers = (0..<20_000).map { _ in source.number() }
    numbers.sort { Value.compare($0, $1) == .ascending }
    for (a, b) in zip(numbers, numbers.dropFirst()) {
      let bytes = ComparisonOrder.compare(bytes: IndexKeyEncoder.encode(a), IndexKeyEncoder.encode(b))
      #expect(Value.compare(a, b) == bytes, "\(a) \(b)")
    }
  }

  @Test("Descending encodings sort in reverse")
  func ordersDescending() {
    var source = RandomValues(seed: 3)
    func descending(_ value: Value) -> [UInt8] {
      var encoder = IndexKeyEncoder()
      encoder.append(value, .descending)
      return encoder.bytes
    }
    for _ in 0..<20_000 {
      let (a, b) = (source.value(), source.value())
      #expect(
        Value.compare(b, a) == ComparisonOrder.compare(bytes: descending(a), descending(b)), "\(a) \(b)")
    }
  }

  @Test("No encoding is a prefix of another, so the parts of a key are distinguishable")
  func isPrefixFree() {
    var source = RandomValues(seed: 4)
    var encoded = (0..<4000).map { _ in IndexKeyEncoder.encode(source.value()) }
    encoded.sort { ComparisonOrder.compare(bytes: $0, $1) == .ascending }
    for (a, b) in zip(encoded, encoded.dropFirst()) where a != b { #expect(!b.starts(with: a)) }
  }

  @Test(
    "The decoder skips exactly one value of a key, ascending or descending",
    arguments: [
      StructuredQuery.Direction.ascending, .descending,
    ])
  func skipsValues(direction: StructuredQuery.Direction) {
    var source = RandomValues(seed: 5)
    let path: ResourcePath = "books/b1"
    for _ in 0..<5000 {
      let value = source.value()
      var encoder = IndexKeyEncoder(prefix: [1, 2, 3])
      encoder.append(value, direction)
      let end = encoder.bytes.count
      encoder.append(path)
      var decoder = IndexKeyDecoder(encoder.bytes, from: 3)
      let skipped = decoder.skipValue(direction)
      #expect(skipped && decoder.position == end, "\(value)")
      let read = decoder.path()
      #expect(read == path)
      #expect(decoder.isAtEnd)
    }
  }

  @Test(
    "Text over 1,500 bytes is truncated in a key and keeps its order, and the encoder marks the key as inexact"
  )
  func truncatesText() {
    let long = String(repeating: "x", count: 1500)
    #expect(IndexKeyEncoder.encode(.string(long + "a")) == IndexKeyEncoder.encode(.string(long + "b")))
    var encoder = IndexKeyEncoder()
    encoder.append(.string(long))
    #expect(encoder.isExact)
    encoder.append(.string(long + "a"))
    #expect(!encoder.isExact)
    let shorter = IndexKeyEncoder.encode(.string(String(long.dropLast())))
    #expect(ComparisonOrder.compare(bytes: shorter, encoder.bytes) == .ascending)
  }

  @Test("Long containers are truncated at one length, and the decoder still skips them")
  func truncatesContainers() {
    let array = Value.array((0..<1000).map { .integer($0) })
    let other = Value.array((0..<1001).map { .integer($0) })
    for value in [array, other, .map(["k": array]), .vector([Double](repeating: 1, count: 2048))] {
      for direction in [StructuredQuery.Direction.ascending, .descending] {
        var encoder = IndexKeyEncoder()
        encoder.append(value, direction)
        #expect(encoder.bytes.count == IndexKeyEncoder.byteLimit)
        #expect(!encoder.isExact)
        encoder.append("a/b" as ResourcePath)
        var decoder = IndexKeyDecoder(encoder.bytes)
        let skipped = decoder.skipValue(direction)
        let path = decoder.path()
        #expect(skipped && path == "a/b")
      }
    }
    #expect(IndexKeyEncoder.encode(array) == IndexKeyEncoder.encode(other))
  }

  @Test("Encoded paths sort by segment with numeric ids first, and decode")
  func ordersPaths() {
    var source = RandomValues(seed: 6)
    func encode(_ path: ResourcePath) -> [UInt8] {
      var encoder = IndexKeyEncoder()
      encoder.append(path)
      return encoder.bytes
    }
    for _ in 0..<10_000 {
      let (a, b) = (source.documentName().path, source.documentName().path)
      #expect(ResourcePath.compare(a, b) == ComparisonOrder.compare(bytes: encode(a), encode(b)))
      var decoder = IndexKeyDecoder(encode(a))
      let read = decoder.path()
      #expect(read == a)
    }
    #expect(encode(.root) == [0x01])
  }

  @Test("Field paths decode, and none is a prefix of another")
  func encodesFieldPaths() {
    let paths = [["a"], ["a", "b"], ["a.b"], ["a\u{0}"], ["\u{0}"], ["ab"], ["a", "\u{0}"]].compactMap {
      FieldPath(segments: $0)
    }
    let encoded = paths.map { path in
      var encoder = IndexKeyEncoder()
      encoder.append(path)
      return encoder.bytes
    }
    for (i, a) in encoded.enumerated() {
      var decoder = IndexKeyDecoder(a)
      let read = decoder.fieldPath()
      #expect(read == paths[i])
      for (j, b) in encoded.enumerated() where i != j { #expect(!b.starts(with: a)) }
    }
  }

  @Test("The examples in the description of the key format have the documented bytes")
  func examples() {
    #expect(IndexKeyEncoder.encode("a") == [0x50, 0x61, 0x00, 0x01])
    let one: [UInt8] = [0x30, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0]
    #expect(IndexKeyEncoder.encode(1) == one)
    #expect(IndexKeyEncoder.encode(1.0) == one)
  }

  @Test(
    "The bounds of a type enclose the keys of all its values, and the range for comparisons of numbers excludes NaN"
  )
  func bounds() {
    var source = RandomValues(seed: 7)
    for _ in 0..<3000 {
      let value = source.value()
      let bytes = IndexKeyEncoder.encode(value)
      #expect(ComparisonOrder.compare(bytes: IndexBounds.start(of: value.kind), bytes) != .descending)
      #expect(ComparisonOrder.compare(bytes: IndexBounds.end(of: value.kind), bytes) == .descending)
      let isInRange =
        ComparisonOrder.compare(bytes: IndexBounds.rangeStart(of: value.kind), bytes) != .descending
      #expect(isInRange == !value.isNaN)
    }
  }

  @Test("Corrupted keys are rejected and never read beyond their end")
  func rejectsCorruptedKeys() {
    var source = RandomValues(seed: 8)
    for _ in 0..<20_000 {
      var encoder = IndexKeyEncoder()
      encoder.append(source.value())
      encoder.append(source.documentName().path)
      var bytes = encoder.bytes
      for _ in 0..<1 + source.below(3) where !bytes.isEmpty {
        bytes[source.below(bytes.count)] = UInt8(source.below(256))
        bytes.removeLast(source.below(min(3, bytes.count)))
      }
      var decoder = IndexKeyDecoder(bytes)
      _ = decoder.skipValue() && decoder.path() != nil
      #expect(decoder.position <= bytes.count)
    }
  }
}
