// Tests nodes against the naive tree with random programs. After every step the node must equal the tree.

import RandomModels
import RealtimeModel
import Testing

@Suite("Nodes compared with a naive tree", .timeLimit(.minutes(10)))
struct NodeDifferentialTests {
  @Test("Random writes give the same value as the naive tree", arguments: 0..<20)
  func writes(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    var node = Node.empty
    var naive = NaiveTree()
    for _ in 0..<300 {
      var path = random.path()
      var value = random.node()
      if random.below(6) == 0 {
        path = path.child(.priority)
        value = random.below(3) == 0 ? .empty : .leaf(.int(Int64(random.below(4))))
      } else if random.below(3) == 0 {
        value = .empty
      }
      let before = node
      node = node.setting(path, to: value)
      naive.set(path.keys.map(\.text), value)
      #expect(NaiveTree(node).text == naive.text)
      #expect(node == rebuilt(node))
      #expect(node.hash == rebuilt(node).hash)
      #expect(node.estimatedSize == rebuilt(node).estimatedSize)
      var changed: [ChildKey] = []
      node.forEachChangedChild(from: before) { key, now, old in
        changed.append(key)
        #expect(now == node.child(key) && old == before.child(key) && now != old)
      }
      let all = Set(node.childKeys + before.childKeys).filter { node.child($0) != before.child($0) }
      #expect(changed == all.sorted())
    }
  }

  /// Returns an equal value that shares no storage with the node.
  private func rebuilt(_ node: Node) -> Node {
    guard case .children = node.content else { return node }
    var children: [(ChildKey, Node)] = []
    node.forEachChildReversed { key, child in
      children.append((key, rebuilt(child)))
      return true
    }
    return .object(children, priority: node.priority)
  }

  @Test("Queries give the same children as a filter over a full sort", arguments: 0..<20)
  func windows(seed: Int) {
    var random = RandomNodes(seed: UInt64(1_000 + seed))
    for _ in 0..<40 {
      var children: [(ChildKey, Node)] = []
      for _ in 0..<random.below(14) { children.append((ChildKey(random.key()), random.node())) }
      let node = Node.object(children)
      let naive = NaiveTree(node)
      for _ in 0..<12 {
        let query = random.query()
        let expected = naive.window(query)
        if query.showsAll { continue }
        #expect(
          node.window(query).childKeys.map(\.text) == expected.map { ChildKey($0) }.sorted().map(\.text))
        let index = OrderedIndex(of: node, by: query.ordering)
        #expect(index.window(query).content == node.window(query))
        #expect(
          node.sortedChildren(by: query.ordering).map(\.key.text)
            == naive.window(.init(ordering: query.ordering)))
      }
    }
  }

  @Test("An updated index equals a new index", arguments: 0..<10)
  func index(seed: Int) {
    var random = RandomNodes(seed: UInt64(2_000 + seed))
    var node = Node.empty
    let ordering = random.ordering()
    var index = OrderedIndex(of: node, by: ordering)
    for i in 0..<200 {
      let key = ChildKey(i % 3 == 0 ? random.key() : "k\(random.below(60))")
      node = node.settingChild(key, to: random.node())
      index.update(to: node, changed: [key])
      var query = random.query()
      query.ordering = ordering
      if case .key = ordering { query.start = nil; query.end = nil }
      #expect(index.window(query).content == OrderedIndex(of: node, by: ordering).window(query).content)
    }
  }

  @Test("Wide nodes keep their order through thousands of changes", arguments: 0..<4)
  func wideNodes(seed: Int) {
    var random = RandomNodes(seed: UInt64(3_000 + seed))
    var node = Node.empty
    var keys: Set<Int> = []
    var versions: [(Node, Int)] = []
    for i in 0..<3_000 {
      let key = random.below(seed == 0 ? 300 : 2_000)
      if random.below(3) == 0 {
        node = node.settingChild(ChildKey("\(key)"), to: .empty)
        keys.remove(key)
      } else {
        node = node.settingChild(ChildKey("\(key)"), to: .leaf(.int(Int64(i))))
        keys.insert(key)
      }
      if i % 1_000 == 0 { versions.append((node, keys.count)) }
    }
    #expect(node.childKeys.map(\.text) == keys.sorted().map { "\($0)" })
    for key in keys { #expect(!node.child(ChildKey("\(key)")).isEmpty) }
    for (old, count) in versions { #expect(old.childCount == count) }
    for key in keys { node = node.settingChild(ChildKey("\(key)"), to: .empty) }
    #expect(node.isEmpty)
  }

  @Test("Changing one of 100,000 children shares the storage of the others")
  func sharing() {
    let node = Node.object((0..<100_000).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    let changed = node.settingChild("k5", to: .leaf(.int(-1)))
    var visited = 0
    changed.forEachChangedChild(from: node) { key, _, _ in
      visited += 1
      #expect(key == "k5")
    }
    #expect(visited == 1)
    #expect(changed != node)
    #expect(changed.settingChild("k5", to: .leaf(.int(5))) == node)
  }
}
