// The sibling order: finds a child's predecessor in a view's order without sorting all children for every
// event.
//
// Invariant: if `index` is not nil, it contains the children of the node of the last update.

import RealtimeModel

/// The order of the children of a view.
struct SiblingOrder {
  let ordering: Ordering
  private var index: OrderedIndex?

  init(ordering: Ordering) {
    self.ordering = ordering
  }

  /// Applies changes that led to a new value of the view.
  mutating func apply(_ changes: [(key: ChildKey, change: ChildChange)], to node: Node) {
    guard index != nil, !changes.isEmpty else { return }
    // For many changes, a new index is cheaper.
    guard changes.count <= 16 + node.childCount / 16 else {
      index = nil
      return
    }
    index?.update(to: node, changed: changes.map(\.key))
  }

  /// The key before a child in the order of `node`, the value of the last update.
  mutating func predecessor(of key: ChildKey, _ child: Node, in node: Node) -> ChildKey? {
    if index?.node.childCount != node.childCount { index = OrderedIndex(of: node, by: ordering) }
    var found: ChildKey?
    let sortKey = SortKey(of: key, child, in: ordering)
    index?.forEach(in: QuerySpec(ordering: ordering), from: sortKey, reverse: true) { other, _ in
      guard other.key != key else { return true }
      found = other.key
      return false
    }
    return found
  }
}
