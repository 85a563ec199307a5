// An interval tree of key ranges: finds the ranges that contain a key or overlap a range.
//
// It is a search tree over the ranges' starts. Each node stores the maximum end in its subtree. The tree is a
// treap: pseudorandom priorities keep it balanced.
//
// Invariants
// 1. Nodes are ordered by start, then id; ids are unique.
// 2. A node's priority is at least that of its children, so the expected depth is logarithmic.
// 3. `maximumEnd` is the maximum end in the node's subtree. Therefore a search costs the logarithm of the
//    number of ranges, plus the results.

import OrderedStore

/// Key ranges, each with a payload.
struct IntervalTree<Payload> {
  private struct Node {
    var range: KeyRange
    var id: UInt64
    var payload: Payload
    var priority: UInt64
    var left = noNode
    var right = noNode
    var maximumEnd: End
  }

  /// The exclusive end of a range; nil for a range without an end.
  private typealias End = Key?

  private static var noNode: Int { -1 }

  private var nodes: [Node?] = []
  private var free: [Int] = []
  private var root = noNode
  private var nextID: UInt64 = 1

  /// The number of ranges.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Adds a range and returns its id, by which it can be removed.
  mutating func insert(_ range: KeyRange, _ payload: Payload) -> UInt64 {
    let id = nextID
    nextID += 1
    let node = Node(
      range: range, id: id, payload: payload, priority: Self.priority(id), maximumEnd: range.end)
    let index: Int
    if let spare = free.popLast() {
      nodes[spare] = node
      index = spare
    } else {
      nodes.append(node)
      index = nodes.count - 1
    }
    root = insert(index, into: root)
    count += 1
    return id
  }

  /// Removes a range by its id and start.
  mutating func remove(_ id: UInt64, startingAt start: Key) {
    let before = count
    root = remove(id, start, from: root)
    precondition(count == before - 1, "invariant: only inserted ranges are removed")
  }

  /// Visits the ranges that contain a key, until `body` returns false. Returns false if `body` did.
  @discardableResult
  func visit(containing key: Key, _ body: (Payload) -> Bool) -> Bool { visit(root, containing: key, body) }

  /// Visits the ranges that overlap `range`, until `body` returns false. Returns false if `body` did.
  @discardableResult
  func visit(overlapping range: KeyRange, _ body: (Payload) -> Bool) -> Bool {
    visit(root, overlapping: range, body)
  }

  // MARK: The tree

  private func node(_ index: Int) -> Node? { index == Self.noNode ? nil : nodes[index] }

  private func visit(_ index: Int, containing key: Key, _ body: (Payload) -> Bool) -> Bool {
    guard let node = node(index), Self.isBelow(key, node.maximumEnd) else { return true }
    guard visit(node.left, containing: key, body) else { return false }
    guard compareKeys(node.range.start, key) <= 0 else { return true }
    if Self.isBelow(key, node.range.end), !body(node.payload) { return false }
    return visit(node.right, containing: key, body)
  }

  private func visit(_ index: Int, overlapping range: KeyRange, _ body: (Payload) -> Bool) -> Bool {
    guard let node = node(index), Self.isBelow(range.start, node.maximumEnd) else { return true }
    guard visit(node.left, overlapping: range, body) else { return false }
    guard Self.isBelow(node.range.start, range.end) else { return true }
    if Self.isBelow(range.start, node.range.end), !body(node.payload) { return false }
    return visit(node.right, overlapping: range, body)
  }

  private mutating func insert(_ new: Int, into index: Int) -> Int {
    guard let node = node(index), let added = self.node(new) else { return new }
    if added.priority > node.priority {
      let (left, right) = split(index, at: added.range.start, added.id)
      nodes[new]?.left = left
      nodes[new]?.right = right
      update(new)
      return new
    }
    if Self.precedes(added.range.start, added.id, node) {
      let left = insert(new, into: node.left)
      nodes[index]?.left = left
    } else {
      let right = insert(new, into: node.right)
      nodes[index]?.right = right
    }
    update(index)
    return index
  }

  /// Splits a subtree into the nodes before and after a position, given by start and id.
  private mutating func split(_ index: Int, at start: Key, _ id: UInt64) -> (Int, Int) {
    guard let node = node(index) else { return (Self.noNode, Self.noNode) }
    if Self.precedes(start, id, node) {
      let (left, rest) = split(node.left, at: start, id)
      nodes[index]?.left = rest
      update(index)
      return (left, index)
    }
    let (rest, right) = split(node.right, at: start, id)
    nodes[index]?.right = rest
    update(index)
    return (index, right)
  }

  private mutating func remove(_ id: UInt64, _ start: Key, from index: Int) -> Int {
    guard let node = node(index) else { return Self.noNode }
    if node.id == id {
      nodes[index] = nil
      free.append(index)
      count -= 1
      return join(node.left, node.right)
    }
    if Self.precedes(start, id, node) {
      let left = remove(id, start, from: node.left)
      nodes[index]?.left = left
    } else {
      let right = remove(id, start, from: node.right)
      nodes[index]?.right = right
    }
    update(index)
    return index
  }

  /// Joins two trees; every node of the first precedes every node of the second.
  private mutating func join(_ left: Int, _ right: Int) -> Int {
    guard let first = node(left) else { return right }
    guard let second = node(right) else { return left }
    if first.priority >= second.priority {
      let joined = join(first.right, right)
      nodes[left]?.right = joined
      update(left)
      return left
    }
    let joined = join(left, second.left)
    nodes[right]?.left = joined
    update(right)
    return right
  }

  private mutating func update(_ index: Int) {
    guard let node = node(index) else { return }
    var maximumEnd = node.range.end
    if let left = self.node(node.left) { maximumEnd = Self.later(maximumEnd, left.maximumEnd) }
    if let right = self.node(node.right) { maximumEnd = Self.later(maximumEnd, right.maximumEnd) }
    nodes[index]?.maximumEnd = maximumEnd
  }

  private static func precedes(_ start: Key, _ id: UInt64, _ node: Node) -> Bool {
    let order = compareKeys(start, node.range.start)
    return order == 0 ? id < node.id : order < 0
  }

  private static func isBelow(_ key: Key, _ end: End) -> Bool {
    guard let end else { return true }
    return compareKeys(key, end) < 0
  }

  private static func later(_ a: End, _ b: End) -> End {
    guard let a, let b else { return nil }
    return compareKeys(a, b) >= 0 ? a : b
  }

  /// Derives a pseudorandom priority from a sequential id (the last step of SplitMix64). Clients cannot
  /// choose ids, so they cannot unbalance the tree.
  private static func priority(_ id: UInt64) -> UInt64 {
    var z = id &* 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
