// An ordered map with value semantics: a B+ tree whose nodes are copied on write. Making a copy is O(1), and
// the copy does not change when the original does. The in-memory engine, the uncommitted rows of a sequencer
// and the index of recent writes use it.
//
// Invariants
//   1. Leaves contain keys in ascending order; all leaves have the same depth.
//   2. An inner node has one more child than separators; keys of child i < separators[i] <= keys of child i + 1.
//   3. A node reachable from two maps is copied before it is changed.
// Empty nodes are unlinked. Underfull nodes are not merged, because removed keys are usually written again soon.

/// A map from keys to values, ordered by key.
package struct OrderedMap<Value> {
  /// A node: a leaf if it has no children.
  final class Node {
    var keys: [Key]
    var values: [Value]
    var children: [Node]

    init(keys: [Key], values: [Value], children: [Node]) {
      self.keys = keys
      self.values = values
      self.children = children
    }

    var isLeaf: Bool { children.isEmpty }

    func copy() -> Node { Node(keys: keys, values: values, children: children) }

    /// The index of the first key that is not below `key`.
    func lowerBound(_ key: UnsafeRawBufferPointer) -> Int {
      var low = 0
      var high = keys.count
      while low < high {
        let middle = (low + high) / 2
        if keys[middle].withUnsafeBytes({ compareBytes($0, key) }) < 0 {
          low = middle + 1
        } else {
          high = middle
        }
      }
      return low
    }

    /// The index of the child that may contain `key`.
    func childIndex(_ key: UnsafeRawBufferPointer) -> Int {
      var low = 0
      var high = keys.count
      while low < high {
        let middle = (low + high) / 2
        if keys[middle].withUnsafeBytes({ compareBytes($0, key) }) <= 0 {
          low = middle + 1
        } else {
          high = middle
        }
      }
      return low
    }

    func containsKey(_ key: UnsafeRawBufferPointer, at index: Int) -> Bool {
      index < keys.count && keys[index].withUnsafeBytes { compareBytes($0, key) == 0 }
    }
  }

  /// The maximum number of keys of a node.
  static var maximumKeys: Int { 48 }

  var root: Node
  /// The number of keys.
  package private(set) var count: Int

  /// Makes an empty map.
  package init() {
    root = Node(keys: [], values: [], children: [])
    count = 0
  }

  /// Whether the map has no key.
  package var isEmpty: Bool { count == 0 }

  /// The value of a key.
  package subscript(_ key: Key) -> Value? { key.withUnsafeBytes { value(of: $0) } }

  /// The value of a key given as bytes.
  package func value(of key: UnsafeRawBufferPointer) -> Value? {
    var node = root
    while !node.isLeaf { node = node.children[node.childIndex(key)] }
    let index = node.lowerBound(key)
    return node.containsKey(key, at: index) ? node.values[index] : nil
  }

  /// Sets the value of a key.
  /// - Returns: the old value.
  @discardableResult
  package mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
    let (old, split) = Self.insert(value, key, into: &root)
    if let split {
      root = Node(keys: [split.separator], values: [], children: [root, split.right])
    }
    if old == nil { count += 1 }
    return old
  }

  /// Removes a key if its value meets a condition.
  /// - Returns: the removed value.
  @discardableResult
  @inline(__always)
  package mutating func removeValue(
    forKey key: Key, where condition: (Value) -> Bool = { _ in true }
  ) -> Value? {
    let removed = key.withUnsafeBytes { Self.remove($0, from: &root, where: condition) }
    guard removed != nil else { return nil }
    count -= 1
    while root.children.count == 1 { root = root.children[0] }
    return removed
  }

  /// A map of the keys whose values meet a condition. The cost is linear, without a comparison of keys.
  package func filtered(_ isIncluded: (Value) -> Bool) -> OrderedMap {
    var (keys, values): ([Key], [Value]) = ([], [])
    root.append(to: &keys, &values, where: isIncluded)
    guard !keys.isEmpty else { return OrderedMap() }
    var nodes = Self.groups(of: keys.count).map { group in
      (
        first: keys[group.lowerBound],
        node: Node(keys: Array(keys[group]), values: Array(values[group]), children: [])
      )
    }
    while nodes.count > 1 {
      nodes = Self.groups(of: nodes.count).map { group in
        let children = nodes[group]
        return (
          first: nodes[group.lowerBound].first,
          node: Node(keys: children.dropFirst().map(\.first), values: [], children: children.map(\.node))
        )
      }
    }
    var map = OrderedMap()
    map.root = nodes[0].node
    map.count = keys.count
    return map
  }

  /// Divides a number of elements into groups of similar size that leave room in a node.
  private static func groups(of count: Int) -> [Range<Int>] {
    let target = maximumKeys * 2 / 3
    let number = (count + target - 1) / target
    return (0..<number).map { (count * $0 / number)..<(count * ($0 + 1) / number) }
  }

  private struct Split {
    var separator: Key
    var right: Node
  }

  private static func insert(_ value: Value, _ key: Key, into node: inout Node) -> (Value?, Split?) {
    if !isKnownUniquelyReferenced(&node) { node = node.copy() }
    if node.isLeaf {
      let index = key.withUnsafeBytes { node.lowerBound($0) }
      if key.withUnsafeBytes({ node.containsKey($0, at: index) }) {
        let old = node.values[index]
        node.values[index] = value
        return (old, nil)
      }
      assert(
        index == node.keys.count || compareKeys(key, node.keys[index]) < 0,
        "invariant: a leaf contains keys in ascending order")
      assert(
        index == 0 || compareKeys(node.keys[index - 1], key) < 0,
        "invariant: a leaf contains keys in ascending order")
      node.keys.insert(key, at: index)
      node.values.insert(value, at: index)
      return (nil, splitLeaf(node, insertedAt: index))
    }
    let index = key.withUnsafeBytes { node.childIndex($0) }
    let (old, split) = insert(value, key, into: &node.children[index])
    guard let split else { return (old, nil) }
    node.keys.insert(split.separator, at: index)
    node.children.insert(split.right, at: index + 1)
    return (old, splitInner(node))
  }

  /// Splits a leaf that is too large: in the middle, or near its end when keys are added in ascending order.
  private static func splitLeaf(_ node: Node, insertedAt index: Int) -> Split? {
    guard node.keys.count > maximumKeys else { return nil }
    let middle = index == node.keys.count - 1 ? node.keys.count - 2 : node.keys.count / 2
    let right = Node(keys: Array(node.keys[middle...]), values: Array(node.values[middle...]), children: [])
    node.keys.removeSubrange(middle...)
    node.values.removeSubrange(middle...)
    return Split(separator: right.keys[0], right: right)
  }

  private static func splitInner(_ node: Node) -> Split? {
    guard node.keys.count > maximumKeys else { return nil }
    let middle = node.keys.count / 2
    let separator = node.keys[middle]
    let right = Node(
      keys: Array(node.keys[(middle + 1)...]), values: [], children: Array(node.children[(middle + 1)...]))
    node.keys.removeSubrange(middle...)
    node.children.removeSubrange((middle + 1)...)
    return Split(separator: separator, right: right)
  }

  private static func remove(
    _ key: UnsafeRawBufferPointer, from node: inout Node, where condition: (Value) -> Bool
  ) -> Value? {
    if !isKnownUniquelyReferenced(&node) { node = node.copy() }
    if node.isLeaf {
      let index = node.lowerBound(key)
      guard node.containsKey(key, at: index), condition(node.values[index]) else { return nil }
      node.keys.remove(at: index)
      return node.values.remove(at: index)
    }
    let index = node.childIndex(key)
    let removed = remove(key, from: &node.children[index], where: condition)
    if removed != nil, node.children.count > 1, node.children[index].isEmptyTree {
      node.children.remove(at: index)
      node.keys.remove(at: max(index - 1, 0))
    }
    return removed
  }
}

extension OrderedMap.Node {
  /// Appends the keys and values below this node whose values meet a condition, in order.
  fileprivate func append(
    to keys: inout [Key], _ values: inout [Value], where isIncluded: (Value) -> Bool
  ) {
    for child in children { child.append(to: &keys, &values, where: isIncluded) }
    for index in self.values.indices where isIncluded(self.values[index]) {
      keys.append(self.keys[index])
      values.append(self.values[index])
    }
  }

  /// Whether no key remains below this node, so that its parent can unlink it.
  fileprivate var isEmptyTree: Bool {
    isLeaf ? keys.isEmpty : children.count == 1 && children[0].isEmptyTree
  }
}

// SAFETY: nodes reachable from more than one map are never mutated (invariant 3), and a map is a value.
extension OrderedMap: @unchecked Sendable where Value: Sendable {}
