// A location's value, its children in the orders that somebody asked for, and the windows of queries on it: one index for
// each order and one window for each query, however many want them, each brought up to date in O(log n) by a changed child.
// A window that a change does not touch costs a few comparisons.

import RealtimeModel

/// A location as queries see it.
struct OrderedLocation: Sendable {
  /// The children in one order, and the windows in it.
  private struct Order: Sendable {
    var index: OrderedIndex
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

  /// How many orders are kept.
  var orderCount: Int { orders.count }

  /// The children in an order, if that is kept.
  func index(by ordering: Ordering) -> OrderedIndex? { orders[ordering]?.index }

  /// The window of a query, if that is kept.
  func view(of query: QuerySpec) -> QueryView? {
    guard let order = orders[query.ordering], let position = order.positions[query] else { return nil }
    return order.views[position]
  }

  /// Has the children kept in an order.
  ///
  /// - Parameter prepared: the same location, as somebody may have looked at it already.
  mutating func keep(_ ordering: Ordering, _ prepared: OrderedLocation? = nil) {
    guard orders[ordering] == nil else { return }
    orders[ordering] = Order(index: prepared?.index(by: ordering) ?? OrderedIndex(of: node, by: ordering))
  }

  /// Has the window of a query kept, and gives it.
  mutating func keep(_ query: QuerySpec, _ prepared: OrderedLocation? = nil) -> Node {
    keep(query.ordering, prepared)
    if let known = view(of: query) { return known.content }
    guard let index = index(by: query.ordering) else { return .empty }
    let view = prepared?.view(of: query) ?? QueryView(query, index: index)
    orders[query.ordering]?.add(view)
    return view.content
  }

  /// Forgets the window of a query, and the order if no other needs it.
  mutating func forget(_ query: QuerySpec) {
    orders[query.ordering]?.remove(query)
    if orders[query.ordering]?.views.isEmpty == true { orders[query.ordering] = nil }
  }

  /// The same with no more than one query needs.
  func part(for query: QuerySpec) -> OrderedLocation {
    var part = OrderedLocation(node)
    guard let index = index(by: query.ordering) else { return part }
    part.orders[query.ordering] = Order(index: index)
    if let view = view(of: query) { part.orders[query.ordering]?.add(view) }
    return part
  }

  /// Follows a replacement of the location, and tells which windows changed.
  mutating func replace(by now: Node, _ tell: (QuerySpec, RealtimePush.Body) -> Void) {
    node = now
    for ordering in Array(orders.keys) {
      let index = OrderedIndex(of: now, by: ordering)
      orders[ordering]?.index = index
      for position in 0..<(orders[ordering]?.views.count ?? 0) {
        guard let query = orders[ordering]?.views[position].query,
          let body = orders[ordering]?.views[position].replace(index: index)
        else { continue }
        tell(query, body)
      }
    }
  }

  /// Follows changes below the location, and tells what changed in which windows.
  ///
  /// - Parameters:
  ///   - now: the value after the changes.
  ///   - keys: the children that changed, each once.
  ///   - changes: the changes, relative to the location.
  mutating func follow(
    to now: Node, keys: some Collection<Key>, changes: [(path: Path, value: Node)],
    _ tell: (QuerySpec, RealtimePush.Body) -> Void
  ) {
    let before = node
    // Where there were no children, or are none now, there is no window to be changed bit by bit.
    if before.isEmpty || before.isLeaf || now.isEmpty || now.isLeaf { return replace(by: now, tell) }
    node = now
    if keys.isEmpty { return }
    for ordering in Array(orders.keys) {
      guard var order = orders.removeValue(forKey: ordering) else { continue }
      let moved = keys.map { MovedChild($0, from: before.child($0), to: now.child($0), in: ordering) }
      order.index.update(to: now, changed: keys)
      for position in order.views.indices {
        let told = order.views[position].follow(index: order.index, moved: moved, changes: changes)
        if !told.isEmpty { tell(order.views[position].query, .merge(told)) }
      }
      orders[ordering] = order
    }
  }
}
