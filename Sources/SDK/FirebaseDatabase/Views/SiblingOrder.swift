// The order of siblings: finds a child's predecessor in a view's order without sorting all children for every event.
//
// Invariant: if `places` is set, it has the sort key of every child of the node of the last update.

import RealtimeModel

/// The children of a view in its order.
struct SiblingOrder {
  let ordering: Ordering
  private var places: [SortKey]?

  init(ordering: Ordering) {
    self.ordering = ordering
  }

  /// Follows changes that led to a new value of the view.
  mutating func follow(_ changes: [(key: ChildKey, change: ChildChange)]) {
    guard places != nil else { return }
    // A long list of changes is cheaper to sort at once, when somebody asks.
    guard changes.count <= 16 else {
      places = nil
      return
    }
    for (key, change) in changes {
      switch change {
      case .added(let node): insert(SortKey(of: key, node, in: ordering))
      case .removed(let node): remove(SortKey(of: key, node, in: ordering))
      case .changed(let node, let old):
        remove(SortKey(of: key, old, in: ordering))
        insert(SortKey(of: key, node, in: ordering))
      }
    }
  }

  /// Forgets the order, after a change that was not followed.
  mutating func reset() {
    places = nil
  }

  /// The key before a child, in the value that was followed last.
  mutating func predecessor(of key: ChildKey, _ child: Node, in node: Node) -> ChildKey? {
    if ordering == .key { return keyBefore(key, in: node) }
    if places?.count != node.childCount {
      places = node.sortedChildren(by: ordering).map { SortKey(of: $0.key, $0.node, in: ordering) }
    }
    let index = position(of: SortKey(of: key, child, in: ordering))
    return index > 0 ? places?[index - 1].key : nil
  }

  private func keyBefore(_ key: ChildKey, in node: Node) -> ChildKey? {
    var found: ChildKey?
    node.forEachChildReversed(from: key) { other, _ in
      guard other < key else { return true }
      found = other
      return false
    }
    return found
  }

  private mutating func insert(_ place: SortKey) {
    let index = position(of: place)
    places?.insert(place, at: index)
  }

  private mutating func remove(_ place: SortKey) {
    let index = position(of: place)
    if let count = places?.count, index < count, places?[index] == place { places?.remove(at: index) }
  }

  /// How many places come before one.
  private func position(of place: SortKey) -> Int {
    guard let places else { return 0 }
    var low = 0
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if places[middle] < place { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
