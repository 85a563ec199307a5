// Tests ordered indexes, which keep the children of a location in an order. An updated index must equal a new index of
// the same value, and share most of its storage with the index before the update. In these tests, a child has a value
// if it has a priority, or the descendant by which the index orders.

import RandomModels
import Testing

@testable import RealtimeModel

@Suite("Ordered indexes", .timeLimit(.minutes(10)))
struct OrderedIndexTests {
  private func list(_ count: Int) -> Node {
    .object((0..<count).map { (ChildKey("k\($0)"), Node.object([("v", .leaf(.int(Int64($0))))])) })
  }

  /// Returns the number of entries outside of the storage that two maps share.
  private func differences(_ a: Children, _ b: Children) -> Int {
    var count = 0
    a.forEachDifference(from: b) { _, _, _ in
      count += 1
      return true
    }
    return count
  }

  @Test(
    "Adding the first and removing the last child with a value copies only a small part of the index",
    arguments: [Ordering.priority, .child("rank")])
  func firstAndLastValue(ordering: Ordering) throws {
    var node = list(20_000)
    var index = OrderedIndex(of: node, by: ordering)
    #expect(index.unvalued == nil && index.sortKeys.isEmpty)
    for (count, key) in (["k7777", "k3"] as [ChildKey]).enumerated() {
      let path = Path(keys: [key]).appending(ordering == .priority ? ".priority" : "rank")
      node = node.setting(path, to: .leaf(.int(Int64(count))))
      index.update(to: node, changed: [key])
      #expect(index.sortKeys.count == count + 1)
      let unvalued = try #require(index.unvalued)
      #expect(unvalued.count == 20_000 - count - 1)
      #expect(differences(unvalued, try #require(node.children)) < 200)
    }
    let last = QuerySpec(ordering: ordering, limit: .last(3))
    #expect(index.window(last).content.childKeys == ["k3", "k7777", "k9999"].sorted())
    for key in ["k3", "k7777"] as [ChildKey] {
      node = node.settingChild(key, to: .empty)
      index.update(to: node, changed: [key])
    }
    #expect(index.unvalued == nil && index.sortKeys.isEmpty)
    #expect(index.window(last).content == node.window(last))
  }

  @Test(
    "An updated index equals a new one while some children have a value and others have none",
    arguments: 0..<12)
  func mixedChildren(seed: Int) {
    var random = RandomNodes(seed: UInt64(5_000 + seed))
    let ordering: Ordering = seed % 2 == 0 ? .priority : .child("x")
    var node = Node.empty
    var index = OrderedIndex(of: node, by: ordering)
    for _ in 0..<150 {
      var keys: [ChildKey] = []
      for _ in 0..<(1 + random.below(3)) {
        let key = ChildKey("k\(random.below(25))")
        let rank: Int64? = random.below(3) == 0 ? Int64(random.below(4)) : nil
        var child = Node.object([("y", .leaf(.int(1)))])
        if let rank {
          child = child.setting("x", to: .leaf(.int(rank))).with(priority: .number(Double(rank)))
        }
        node = node.settingChild(key, to: random.below(3) == 0 ? .empty : child)
        keys.append(key)
      }
      index.update(to: node, changed: keys)
      var query = random.query()
      query.ordering = ordering
      let new = OrderedIndex(of: node, by: ordering)
      #expect(index.window(query).content == new.window(query).content)
      #expect(index.window(query).edge == new.window(query).edge)
      for reverse in [false, true] {
        var order: [ChildKey] = []
        index.forEach(in: QuerySpec(ordering: ordering), reverse: reverse) { sortKey, child in
          #expect(child == node.child(sortKey.key))
          order.append(sortKey.key)
          return true
        }
        let sorted = node.sortedChildren(by: ordering).map(\.key)
        #expect(order == (reverse ? sorted.reversed() : sorted))
      }
    }
  }

  @Test("A bound on a value excludes the children without a value")
  func bound() {
    let node = list(5_000).setting("k9/.priority", to: .leaf(.int(1)))
    let index = OrderedIndex(of: node, by: .priority)
    var query = QuerySpec(ordering: .priority, start: .init(.int(0)), limit: .first(5))
    #expect(index.window(query).content.childKeys == ["k9"])
    query = QuerySpec(ordering: .priority, end: .init(nil), limit: .last(2))
    #expect(index.window(query).content.childKeys == ["k998", "k999"])
  }
}
