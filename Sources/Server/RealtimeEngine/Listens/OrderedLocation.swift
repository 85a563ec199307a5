// Keeps a location's value, its children sorted in the orders of its queries, and the windows of these
// queries. A window contains the children that a filtered query shows.
//
// There is one index for each order and one window for each query, shared by all their listeners. Each
// changed child costs O(log n) for each index and each window that it affects. A window that it does not
// affect costs a few comparisons.

import RealtimeModel

/// A location with the windows of its queries.
struct OrderedLocation: Sendable {
  /// The children in one order, and the windows in this order.
  private struct Order: Sendable {
    /// The sorted children; nil if no window in this order has a limit. Without a limit, whether a window
    /// shows a child does not depend on other children.
    var index: OrderedIndex?
    var views: [QueryView] = []
    var positions: [QuerySpec: Int] = [:]

    mutating func add(_ view: QueryView) {
      positions[view.query] = views.count
      views.append(view)
    }

    mutating func remove(_ query: QuerySpec) {
      guard let position = positions.removeValue(forKey: query) else { return }
      let last = views.removeLast()
      guard position < views.count else { return }
      views[position] = last
      positions[last.query] = position
    }
  }

  private(set) var node: Node
  private var orders: [Ordering: Order] = [:]

  init(_ node: Node) { self.node = node }

  /// The number of orders in which the children are kept.
  var orderCount: Int { orders.values.count { $0.index != nil } }

  /// The children in an order; nil if they are not kept in this order.
  func index(by ordering: Ordering) -> OrderedIndex? { orders[ordering].flatMap(\.index) }

  /// The window of a query; nil if this window is not kept.
  func view(of query: QuerySpec) -> QueryView? {
    guard let order = orders[query.ordering], let position = order.positions[query] else { return nil }
    return order.views[position]
  }

  /// Keeps the children in an order.
  ///
  /// - Parameter prepared: the same location, as prepared in the background.
  mutating func ensureIndex(by ordering: Ordering, _ prepared: OrderedLocation? = nil) {
    guard index(by: ordering) == nil else { return }
    orders[ordering, default: Order()].index =
      prepared?.index(by: ordering) ?? OrderedIndex(of: node, by: ordering)
  }

  /// Keeps the window of a query, and returns it.
  mutating func ensureView(of query: QuerySpec, _ prepared: OrderedLocation? = nil) -> Node {
    if let known = view(of: query) { return known.content }
    if query.limit != nil { ensureIndex(by: query.ordering, prepared) }
    let view =
      prepared?.view(of: query) ?? QueryView(query, on: node, index: index(by: query.ordering))
    orders[query.ordering, default: Order()].add(view)
    return view.content
  }

  /// Removes the window of a query, and its order if no other window needs it.
  mutating func removeView(of query: QuerySpec) {
    orders[query.ordering]?.remove(query)
    guard let views = orders[query.ordering]?.views else { return }
    if views.isEmpty {
      orders[query.ordering] = nil
    } else if query.limit != nil, !views.contains(where: { $0.query.limit != nil }) {
      orders[query.ordering]?.index = nil
    }
  }

  /// The location with only the order and the window of one query.
  func restricted(to query: QuerySpec) -> OrderedLocation {
    var result = OrderedLocation(node)
    guard let order = orders[query.ordering] else { return result }
    result.orders[query.ordering] = Order(index: order.index)
    if let view = view(of: query) { result.orders[query.ordering]?.add(view) }
    return result
  }

  /// Adds the children of a window that is about to be added. Existing windows do not change.
  mutating func insertVisible(_ children: Node) {
    var newValue = node
    var keys: [ChildKey] = []
    children.forEachChild { key, child in
      guard node.child(key).isEmpty else { return true }
      newValue = newValue.settingChild(key, to: child)
      keys.append(key)
      return true
    }
    apply(to: newValue, keys: keys, changes: []) { _, _ in }
  }

  /// Removes the given children, except for those that a window shows.
  mutating func removeInvisible(_ children: Node) {
    var newValue = node
    var keys: [ChildKey] = []
    children.forEachChild { key, _ in
      for order in orders.values where order.views.contains(where: { !$0.content.child(key).isEmpty }) {
        return true
      }
      newValue = newValue.settingChild(key, to: .empty)
      keys.append(key)
      return true
    }
    apply(to: newValue, keys: keys, changes: []) { _, _ in }
  }

  /// Replaces the location's value, and reports the changed windows.
  mutating func replace(by newValue: Node, _ notify: (QuerySpec, RealtimePush.Body) -> Void) {
    node = newValue
    for ordering in Array(orders.keys) {
      let index = index(by: ordering) == nil ? nil : OrderedIndex(of: newValue, by: ordering)
      orders[ordering]?.index = index
      for position in 0..<(orders[ordering]?.views.count ?? 0) {
        guard let query = orders[ordering]?.views[position].query,
          let body = orders[ordering]?.views[position].replace(by: newValue, index: index)
        else { continue }
        notify(query, body)
      }
    }
  }

  /// Applies changes below the location, and reports the changes of each window.
  ///
  /// - Parameters:
  ///   - newValue: the value after the changes.
  ///   - keys: the changed children, each once.
  ///   - changes: the changes, relative to the location.
  mutating func apply(
    to newValue: Node, keys: some Collection<ChildKey>, changes: [(path: Path, value: Node)],
    _ notify: (QuerySpec, RealtimePush.Body) -> Void
  ) {
    let before = node
    // If the location has no children before or after the changes, each window is replaced.
    if before.isEmpty || before.isLeaf || newValue.isEmpty || newValue.isLeaf {
      return replace(by: newValue, notify)
    }
    node = newValue
    if keys.isEmpty { return }
    for ordering in Array(orders.keys) {
      guard var order = orders.removeValue(forKey: ordering) else { continue }
      let movedChildren = keys.map {
        MovedChild($0, from: before.child($0), to: newValue.child($0), in: ordering)
      }
      order.index?.update(to: newValue, changed: keys)
      for position in order.views.indices {
        let changesInWindow = order.views[position].apply(
          to: newValue, index: order.index, movedChildren: movedChildren, changes: changes)
        if !changesInWindow.isEmpty { notify(order.views[position].query, .merge(changesInWindow)) }
      }
      orders[ordering] = order
    }
  }
}
