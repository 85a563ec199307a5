// A path tree: a tree with values at some of its paths, for instance pending writes, sync points or queued
// transactions.
//
// Invariant: no branch is empty; a branch that loses its last value is pruned.

import RealtimeModel

/// A tree of values by path.
struct PathTree<Value> {
  /// The value at this location; nil for none.
  var value: Value?

  private(set) var children: [ChildKey: PathTree] = [:]

  /// Makes a tree with an optional value at its root.
  init(_ value: Value? = nil) {
    self.value = value
  }

  var isEmpty: Bool { value == nil && children.isEmpty }

  /// The children in key order, so that every traversal is deterministic.
  var sortedChildren: [(key: ChildKey, tree: PathTree)] {
    children.count > 1
      ? children.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
      : children.map { ($0.key, $0.value) }
  }

  /// The subtree at a path.
  func subtree(_ path: Path) -> PathTree {
    var tree = self
    for key in path.keys {
      guard let child = tree.children[key] else { return PathTree() }
      tree = child
    }
    return tree
  }

  /// The value at exactly this path.
  subscript(path: Path) -> Value? {
    get { subtree(path).value }
    set { update(path.keys[...]) { $0.value = newValue } }
  }

  /// Replaces everything at a path and below.
  mutating func replaceSubtree(_ path: Path, with tree: PathTree) {
    update(path.keys[...]) { $0 = tree }
  }

  /// Changes the tree at a path in place, and removes branches that become empty.
  mutating func update(_ path: Path, _ change: (inout PathTree) -> Void) {
    update(path.keys[...], change)
  }

  private mutating func update(_ keys: ArraySlice<ChildKey>, _ change: (inout PathTree) -> Void) {
    guard let key = keys.first else { return change(&self) }
    children[key, default: PathTree()].update(keys.dropFirst(), change)
    if children[key]?.isEmpty == true { children[key] = nil }
  }

  /// The value nearest to the root on the way to a path, with the remaining path below that value.
  func rootmostValue(on path: Path) -> (value: Value, rest: Path)? {
    var tree = self
    var depth = 0
    while true {
      if let value = tree.value { return (value, Path(keys: Array(path.keys[depth...]))) }
      guard depth < path.count, let child = tree.children[path.keys[depth]] else { return nil }
      tree = child
      depth += 1
    }
  }

  /// Every value from the root down to a path, the path itself included.
  func values(on path: Path) -> [(value: Value, depth: Int)] {
    var found: [(value: Value, depth: Int)] = []
    var tree = self
    var depth = 0
    while true {
      if let value = tree.value { found.append((value, depth)) }
      guard depth < path.count, let child = tree.children[path.keys[depth]] else { return found }
      tree = child
      depth += 1
    }
  }

  /// Visits every value in any order.
  func forEachUnordered(_ visit: (Value) -> Void) {
    if let value { visit(value) }
    for child in children.values { child.forEachUnordered(visit) }
  }

  /// Whether every value satisfies a condition. The search ends at the first value that does not.
  func allSatisfy(_ condition: (Value) -> Bool) -> Bool {
    if let value, !condition(value) { return false }
    return children.values.allSatisfy { $0.allSatisfy(condition) }
  }

  /// Visits the paths of the values without a value above them, in key order.
  ///
  /// - Parameter path: the path of this tree.
  func forEachRootmost(at path: Path, _ visit: (Path) -> Void) {
    if value != nil { return visit(path) }
    for (key, child) in sortedChildren { child.forEachRootmost(at: path.child(key), visit) }
  }

  /// Visits every value, parents before children, children in key order.
  func forEach(_ visit: (Path, Value) -> Void) {
    forEach(at: .root, visit)
  }

  private func forEach(at path: Path, _ visit: (Path, Value) -> Void) {
    if let value { visit(path, value) }
    for (key, child) in sortedChildren { child.forEach(at: path.child(key), visit) }
  }
}
