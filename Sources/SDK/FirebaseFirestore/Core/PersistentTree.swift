// A persistent tree: an ordered collection whose copies share their contents. It is a weight-balanced binary
// tree of immutable nodes.
//
// A change makes new nodes on one path from the root and shares all others. So each change takes O(log n)
// time and memory. The weights are those of Hirai and Yamamoto (2011): 3 for the balance, 2 for the choice of
// the rotation.
//
// Invariant: the elements are in the order of the comparison that inserted them, and no two elements are
// equal in that order. No subtree has more than three times the weight of its sibling. The weight is the
// number of elements plus one.

import FirestoreModel

/// A sorted collection with shared structure. The caller passes a comparison of the same order to every call.
struct PersistentTree<Element: Sendable>: Sendable {
  private final class Node: Sendable {
    let element: Element
    let left: Node?
    let right: Node?
    let count: Int

    init(_ left: Node?, _ element: Element, _ right: Node?) {
      self.left = left
      self.element = element
      self.right = right
      count = PersistentTree.count(left) + 1 + PersistentTree.count(right)
    }
  }

  private var root: Node?

  init() {}

  /// Makes a tree of sorted elements without duplicates.
  init(sorted elements: [Element]) { root = PersistentTree.build(elements[...]) }

  private static func build(_ elements: ArraySlice<Element>) -> Node? {
    guard !elements.isEmpty else { return nil }
    let middle = elements.startIndex + elements.count / 2
    return Node(build(elements[..<middle]), elements[middle], build(elements[(middle + 1)...]))
  }

  private static func count(_ node: Node?) -> Int { node?.count ?? 0 }

  var count: Int { PersistentTree.count(root) }
  var isEmpty: Bool { root == nil }
  var first: Element? { outermost(\.left) }
  var last: Element? { outermost(\.right) }

  private func outermost(_ side: KeyPath<Node, Node?>) -> Element? {
    var node = root
    while let next = node?[keyPath: side] { node = next }
    return node?.element
  }

  /// Whether two trees share the same root, so that their contents are equal.
  func isIdentical(to other: PersistentTree) -> Bool { root === other.root }

  /// Finds the element for which a comparison returns `same`. The comparison orders an element relative to
  /// the wanted element.
  func find(_ compare: (Element) -> ComparisonOrder) -> (index: Int, element: Element)? {
    var node = root
    var index = 0
    while let current = node {
      switch compare(current.element) {
      case .same: return (index + PersistentTree.count(current.left), current.element)
      case .descending: node = current.left
      case .ascending:
        index += PersistentTree.count(current.left) + 1
        node = current.right
      }
    }
    return nil
  }

  /// All elements in order.
  var elements: [Element] {
    var result: [Element] = []
    result.reserveCapacity(count)
    var path: [Node] = []
    var node = root
    while true {
      while let current = node {
        path.append(current)
        node = current.left
      }
      guard let current = path.popLast() else { return result }
      result.append(current.element)
      node = current.right
    }
  }

  // MARK: Changing

  /// Inserts an element. It replaces an element that is equal in the order.
  mutating func insert(_ element: Element, by compare: (Element, Element) -> ComparisonOrder) {
    root = PersistentTree.insert(element, into: root, compare)
  }

  private static func insert(
    _ element: Element, into node: Node?, _ compare: (Element, Element) -> ComparisonOrder
  ) -> Node {
    guard let node else { return Node(nil, element, nil) }
    switch compare(node.element, element) {
    case .same: return Node(node.left, element, node.right)
    case .descending: return balanced(insert(element, into: node.left, compare), node.element, node.right)
    case .ascending: return balanced(node.left, node.element, insert(element, into: node.right, compare))
    }
  }

  /// Removes the element for which a comparison returns `same`.
  mutating func remove(_ compare: (Element) -> ComparisonOrder) {
    guard find(compare) != nil else { return }
    root = PersistentTree.remove(from: root, compare)
  }

  private static func remove(from node: Node?, _ compare: (Element) -> ComparisonOrder) -> Node? {
    guard let node else { return nil }
    switch compare(node.element) {
    case .descending: return balanced(remove(from: node.left, compare), node.element, node.right)
    case .ascending: return balanced(node.left, node.element, remove(from: node.right, compare))
    case .same:
      guard let right = node.right else { return node.left }
      guard node.left != nil else { return right }
      let (next, rest) = removeFirst(from: right)
      return balanced(node.left, next, rest)
    }
  }

  private static func removeFirst(from node: Node) -> (Element, Node?) {
    guard let left = node.left else { return (node.element, node.right) }
    let (first, rest) = removeFirst(from: left)
    return (first, balanced(rest, node.element, node.right))
  }

  // MARK: Balance

  private static func isTooHeavy(_ a: Node?, comparedTo b: Node?) -> Bool {
    count(a) + 1 > 3 * (count(b) + 1)
  }

  /// Makes a node from two subtrees, one of which may have changed by one element, and balances it.
  private static func balanced(_ left: Node?, _ element: Element, _ right: Node?) -> Node {
    if let right, isTooHeavy(right, comparedTo: left) {
      guard let inner = right.left, count(inner) + 1 >= 2 * (count(right.right) + 1) else {
        return Node(Node(left, element, right.left), right.element, right.right)
      }
      return Node(
        Node(left, element, inner.left), inner.element, Node(inner.right, right.element, right.right))
    }
    if let left, isTooHeavy(left, comparedTo: right) {
      guard let inner = left.right, count(inner) + 1 >= 2 * (count(left.left) + 1) else {
        return Node(left.left, left.element, Node(left.right, element, right))
      }
      return Node(
        Node(left.left, left.element, inner.left), inner.element, Node(inner.right, element, right))
    }
    return Node(left, element, right)
  }
}
