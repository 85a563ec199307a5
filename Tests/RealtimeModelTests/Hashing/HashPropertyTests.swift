// Tests properties of hashes. Equal values must have equal hashes, however they were built. Different values must have
// different hashes.

import RandomModels
import Testing

@testable import RealtimeModel

@Suite("Properties of hashes", .timeLimit(.minutes(10)))
struct HashPropertyTests {
  /// The leaves and priorities of a value with their paths.
  private func leaves(_ node: Node, at path: Path = .root) -> [(Path, Node)] {
    guard case .children = node.content else { return node.isEmpty ? [] : [(path, node)] }
    var found: [(Path, Node)] = []
    node.forEachChild { key, child in
      found += leaves(child, at: path.child(key))
      return true
    }
    if let priority = node.priority { found.append((path.child(.priority), .leaf(priority.leafValue))) }
    return found
  }

  @Test(
    "A value built leaf by leaf in any order has the same hash as the original value", arguments: 0..<10)
  func buildOrder(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed) &+ 300)
    for _ in 0..<100 {
      let node = random.node(depth: 3)
      var parts = leaves(node)
      parts.shuffle(using: &random.random)
      // A priority needs a value.
      let ordered = parts.filter { !$0.0.isPriority } + parts.filter(\.0.isPriority)
      var built = ordered.reduce(Node.empty) { $0.setting($1.0, to: $1.1) }
      #expect(built == node)
      #expect(built.hash == node.hash)
      #expect(CompoundHash(of: built) == CompoundHash(of: node))
      // Changes the value, then restores it.
      let path = random.path()
      let before = built.descendant(path)
      guard !path.isRoot, !before.isEmpty, path.parent.map({ built.descendant($0).childCount > 1 }) ?? false
      else {
        continue
      }
      built = built.setting(path, to: .empty)
      #expect(built.hash != node.hash)
      #expect(built.setting(path, to: before).hash == node.hash)
    }
  }

  /// Whether the node contains an object whose children all have a priority, by visiting all of them.
  private func isFullyPrioritizedSomewhere(_ node: Node) -> Bool {
    guard case .children = node.content else { return false }
    var (all, found) = (true, false)
    node.forEachChild { _, child in
      all = all && child.priority != nil
      found = found || isFullyPrioritizedSomewhere(child)
      return true
    }
    return all || found
  }

  @Test(
    "The standard hash and the iOS client's variant differ only if all children of an object have a priority",
    arguments: 0..<10
  )
  func variants(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed) &+ 500)
    var node = Node.empty
    for _ in 0..<400 {
      var path = random.path()
      var value = random.node()
      if random.below(2) == 0 {
        path = path.child(.priority)
        value = random.below(4) == 0 ? .empty : .leaf(.int(Int64(random.below(4))))
      }
      node = node.setting(path, to: value)
      #expect(node.containsFullyPrioritizedObject == isFullyPrioritizedSomewhere(node))
      if !node.containsFullyPrioritizedObject { #expect(node.keyOrderedHash == node.hash) }
    }
  }

  @Test("Two hashes are equal if and only if the values are equal", arguments: 0..<6)
  func collisions(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed) &+ 400)
    let nodes = (0..<250).map { _ in random.node(depth: 2) }
    let hashes = nodes.map { (simple: $0.hash, compound: CompoundHash(of: $0)) }
    for index in nodes.indices {
      for other in index..<nodes.count {
        let areEqual = nodes[index] == nodes[other]
        // An expectation for each pair would take longer than the comparison.
        if areEqual == (hashes[index].simple == hashes[other].simple),
          areEqual == (hashes[index].compound == hashes[other].compound)
        {
          continue
        }
        Issue.record("\(nodes[index]) \(nodes[other])")
      }
    }
  }
}
