// Tests the sort orders of a location and the windows (results) of its queries while children change.
// Incremental updates must equal a computation from scratch, and a client that applies the reported changes
// must have the same windows.

import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Incremental orders and windows", .timeLimit(.minutes(10)))
struct OrderedLocationTests {
  /// A random value for a child. There are only a few different values, so that the keys decide the order of many children.
  private static func child(_ generator: inout RandomNodes) -> Node {
    let priority: Priority? = generator.below(6) == 0 ? .number(Double(generator.below(3))) : nil
    switch generator.below(5) {
    case 0: return .empty
    case 1: return Node.object([("x", .leaf(.int(Int64(generator.below(4)))))], priority: priority)
    default: return .leaf(.int(Int64(generator.below(12))), priority: priority)
    }
  }

  private static func query(_ generator: inout RandomNodes) -> QuerySpec {
    let orderings: [Ordering] = [.value, .key, .priority, .child("x")]
    var query = QuerySpec(ordering: orderings[generator.below(4)])
    func bound() -> QuerySpec.Bound {
      let key = "k\(generator.below(30))"
      let isInclusive = generator.below(2) == 0
      if query.ordering == .key { return .init(.string(key), isInclusive: isInclusive) }
      let value: LeafValue? = generator.below(5) == 0 ? nil : .int(Int64(generator.below(12)))
      return .init(value, key: generator.below(2) == 0 ? ChildKey(key) : nil, isInclusive: isInclusive)
    }
    if generator.below(3) == 0 { query.start = bound() }
    if generator.below(3) == 0 { query.end = bound() }
    switch generator.below(5) {
    case 0: break
    case 1, 2: query.limit = .first(1 + generator.below(8))
    default: query.limit = .last(1 + generator.below(8))
    }
    return query
  }

  @Test("Windows of every kind of query follow changes of one child and of many children", arguments: 0..<16)
  func property(seed: Int) {
    var generator = RandomNodes(seed: UInt64(30_000 + seed))
    var node = Node.object(
      (0..<(2 + generator.below(30))).map { (ChildKey("k\($0)"), .leaf(.int(Int64($0 % 7)))) })
    var location = OrderedLocation(node)
    let queries = Set((0..<12).map { _ in Self.query(&generator) })
    var clientWindows: [QuerySpec: Node] = [:]
    for query in queries { clientWindows[query] = location.ensureView(of: query) }
    for step in 0..<80 {
      var changes: [ChildKey: Node] = [:]
      for _ in 0..<(1 + generator.below(generator.below(4) == 0 ? 20 : 2)) {
        changes[ChildKey("k\(generator.below(30))")] = Self.child(&generator)
      }
      for (key, child) in changes { node = node.settingChild(key, to: child) }
      location.apply(
        to: node, keys: changes.keys, changes: changes.map { (Path(keys: [$0.key]), $0.value) }
      ) { query, body in
        switch body {
        case .set(let value): clientWindows[query] = value
        case .merge(let received):
          clientWindows[query] = received.reduce(clientWindows[query] ?? .empty) {
            $0.setting($1.path, to: $1.value)
          }
        default: Issue.record("seed \(seed): received something else")
        }
      }
      for query in queries {
        let expected = node.window(query)
        #expect(location.view(of: query)?.content == expected, "seed \(seed), step \(step): \(query)")
        #expect(clientWindows[query] == expected, "seed \(seed), step \(step): received of \(query)")
      }
    }
  }
}
