// Tests scans of index keys. Every filter corresponds to one range of the sorted keys, and the range must contain
// exactly the matching documents. The engine scans an index in the same way.

import FirestoreModel
import RandomModels
import Testing

@Suite("Ranges over index keys", .timeLimit(.minutes(10)))
struct IndexScanTests {
  struct Entry {
    let key: [UInt8]
    let value: Value
    let name: DocumentName
  }

  /// An index of one field over random documents, in key order.
  static func index(seed: UInt64) -> [Entry] {
    var source = RandomValues(seed: seed)
    return (0..<400).map { _ in
      let (value, name) = (source.value(depth: 1), source.documentName())
      var encoder = IndexKeyEncoder()
      encoder.append(value)
      encoder.append(name.path)
      return Entry(key: encoder.bytes, value: value, name: name)
    }.sorted { ComparisonOrder.compare(bytes: $0.key, $1.key) == .ascending }
  }

  /// The keys from an inclusive bound to an exclusive bound.
  static func scan(_ index: [Entry], from lower: [UInt8], to upper: [UInt8]) -> [Entry] {
    index.filter {
      ComparisonOrder.compare(bytes: $0.key, lower) != .ascending
        && ComparisonOrder.compare(bytes: $0.key, upper) == .ascending
    }
  }

  /// The smallest key above all keys with a prefix; empty if there is none.
  static func endOfPrefix(_ prefix: [UInt8]) -> [UInt8] {
    var bytes = prefix
    while let last = bytes.popLast() {
      if last < 0xFF { return bytes + [last + 1] }
    }
    return []
  }

  static func scanned(_ op: FieldFilter.Operator, _ operand: Value, in index: [Entry]) -> [Entry] {
    let key = IndexKeyEncoder.encode(operand)
    switch op {
    case .equal: return scan(index, from: key, to: endOfPrefix(key))
    case .lessThan: return scan(index, from: IndexBounds.rangeStart(of: operand.kind), to: key)
    case .lessThanOrEqual:
      return scan(index, from: IndexBounds.rangeStart(of: operand.kind), to: endOfPrefix(key))
    case .greaterThan: return scan(index, from: endOfPrefix(key), to: IndexBounds.end(of: operand.kind))
    default: return scan(index, from: key, to: IndexBounds.end(of: operand.kind))
    }
  }

  @Test("Equality and ranges over index keys find exactly the matching documents")
  func ranges() {
    var source = RandomValues(seed: 91)
    let field = FieldPath(field: "f")
    for round in 0..<20 {
      let index = Self.index(seed: UInt64(round))
      for _ in 0..<15 {
        let operand = source.below(2) == 0 ? source.pick(index).value : source.value(depth: 1)
        if operand == .null || operand.isNaN { continue }
        for op in [
          FieldFilter.Operator.equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
        ] {
          let filter = FieldFilter(field, op, operand)
          let matching = index.filter { filter.matches($0.value) }
          #expect(Self.scanned(op, operand, in: index).map(\.key) == matching.map(\.key), "\(filter)")
        }
      }
    }
  }

  @Test("Index keys are in the order of a query's results, forwards and in reverse")
  func order() throws {
    let index = Self.index(seed: 92)
    for direction in [StructuredQuery.Direction.ascending, .descending] {
      let query = try NormalizedQuery(
        Query(
          parent: ParentName(rootOf: DatabaseName(project: "p")),
          StructuredQuery(orderBy: [.init(FieldPath(field: "f"), direction)])))
      let scanned = direction == .ascending ? index : index.reversed()
      for (a, b) in zip(scanned, scanned.dropFirst()) where a.name.database == b.name.database {
        #expect(query.compare(a.name, ["f": a.value], b.name, ["f": b.value]) != .descending)
      }
    }
  }

  @Test("A composite key with mixed directions sorts as the query does")
  func composite() throws {
    var source = RandomValues(seed: 93)
    let query = try NormalizedQuery(
      Query(
        parent: ParentName(rootOf: DatabaseName(project: "p")),
        StructuredQuery(
          orderBy: [.init(FieldPath(field: "a")), .init(FieldPath(field: "b"), .descending)])))
    func key(_ a: Value, _ b: Value, _ name: DocumentName) -> [UInt8] {
      var encoder = IndexKeyEncoder()
      encoder.append(a)
      encoder.append(b, .descending)
      encoder.append(name.path, .descending)
      return encoder.bytes
    }
    for _ in 0..<8000 {
      // Few distinct values, so that every part of the key decides some comparisons.
      let values = [1, 1.0, "a", .null, ["x": 1], [1]] as [Value]
      let (a1, a2, b1, b2) = (
        source.pick(values), source.pick(values), source.pick(values), source.pick(values)
      )
      let (n1, n2) = (source.documentName(), source.documentName())
      guard n1.database == n2.database else { continue }
      let expected = query.compare(n1, ["a": a1, "b": b1], n2, ["a": a2, "b": b2])
      #expect(ComparisonOrder.compare(bytes: key(a1, b1, n1), key(a2, b2, n2)) == expected)
    }
  }

  @Test("The documents below a path are one range of keys")
  func subtrees() {
    var source = RandomValues(seed: 94)
    func key(_ path: ResourcePath) -> [UInt8] {
      var encoder = IndexKeyEncoder()
      for segment in path.segments { encoder.append(segment: segment) }
      return encoder.bytes
    }
    let paths = (0..<300).map { _ in source.documentName().path }
    for parent in paths.prefix(40) {
      let prefix = key(parent)
      for path in paths {
        #expect(key(path).starts(with: prefix) == path.hasPrefix(parent), "\(path) \(parent)")
      }
    }
  }
}
