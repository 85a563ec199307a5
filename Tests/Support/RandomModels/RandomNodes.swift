// Generates random nodes, paths and queries of the Realtime Database. Their keys use a small alphabet, so that random
// operations often access the same locations.

package import RealtimeModel

/// Generates random values, paths and queries of the Realtime Database.
package struct RandomNodes {
  package var random: SeededGenerator

  package init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  package static let keys = [
    "a", "b", "c", "1", "2", "10", "01", "-3", "-N1", "é", "e\u{301}", "\u{1F600}", "\u{FF5E}", "zz",
    "4294967296",
  ]

  package mutating func below(_ bound: Int) -> Int { random.below(bound) }

  package mutating func key() -> String { RandomNodes.keys[below(RandomNodes.keys.count)] }

  package mutating func path(_ maximum: Int = 3) -> Path {
    Path(keys: (0..<below(maximum + 1)).map { _ in ChildKey(key()) })
  }

  package mutating func leaf() -> LeafValue {
    switch below(9) {
    case 0: .bool(true)
    case 1: .bool(false)
    case 2, 3, 4: .int(Int64(below(5)))
    case 5: .double(Double(below(4)) + 0.5)
    case 6: .double(1e300)
    default: .string(key())
    }
  }

  package mutating func priority() -> Priority? {
    switch below(6) {
    case 0: .number(Double(below(3)))
    case 1: .string(key())
    default: nil
    }
  }

  package mutating func node(depth: Int = 2) -> Node {
    switch below(6) {
    case 0: .empty
    case 1, 2: .leaf(leaf(), priority: priority())
    default:
      depth == 0
        ? .leaf(leaf(), priority: priority())
        : .object((0..<below(5)).map { _ in (ChildKey(key()), node(depth: depth - 1)) }, priority: priority())
    }
  }

  package mutating func ordering() -> Ordering {
    switch below(5) {
    case 0: .priority
    case 1: .key
    case 2: .value
    case 3: .child(Path(key()))
    default: .child(Path(keys: [ChildKey(key()), ChildKey(key())]))
    }
  }

  package mutating func bound(_ ordering: Ordering) -> QuerySpec.Bound {
    let key = below(3) == 0 ? (below(2) == 0 ? ChildKey.minimum : ChildKey.maximum) : ChildKey(self.key())
    if ordering == .key { return .init(.string(self.key()), isInclusive: below(2) == 0) }
    let value = below(6) == 0 ? nil : leaf()
    return .init(value, key: below(2) == 0 ? key : nil, isInclusive: below(2) == 0)
  }

  package mutating func query() -> QuerySpec {
    var query = QuerySpec(ordering: ordering())
    if below(2) == 0 { query.start = bound(query.ordering) }
    if below(2) == 0 { query.end = bound(query.ordering) }
    if query.start != nil, below(5) == 0 { query.end = query.start }
    switch below(4) {
    case 0: query.limit = .first(1 + below(4))
    case 1: query.limit = .last(1 + below(4))
    default: break
    }
    return query
  }
}
