// A location's value, its children in the orders that somebody asked for, and the windows of queries on it: one index for
// each order and one window for each query, however many want them, each brought up to date in O(log n) by a changed child.
// A window that a change does not touch costs a few comparisons.

import RealtimeModel

/// A location as queries see it.
struct OrderedLocation: Sendable {
  /// The children in one order, and the windows in it.
  private struct Order: Sendable {
    /// Where a window has a limit: without one, what is in a window says nothing of the other children.
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

  /// In how many orders the children are kept.
  var orderCount: Int { orders.values.count { $0.index != nil } }

  /// The children in an order, if they are kept in it.
  func index(by ordering: Ordering) -> OrderedIndex? { orders[ordering].flatMap(\.index) }

  /// The window of a query, if that is kept.
  func view(of query: QuerySpec) -> QueryView? {
    guard let order = orders[query.ordering], let position = order.positions[query] else { return nil }
    return order.views[position]
  }

  /// Has the children kept in an order.
  ///
  /// - Parameter prepared: the same location, as somebody may have looked at it already.
  mutating func keep(_ ordering: Ordering, _ prepared: OrderedLocation? = nil) {
    guard index(by: ordering) == nil else { return }
    orders[ordering, default: Order()].index =
      prepared?.index(by: ordering) ?? OrderedIndex(of: node, by: ordering)
  }

  /// Has the window of a query kept, and gives it.
  mutating func keep(_ query: QuerySpec, _ prepared: OrderedLocation? = nil) -> Node {
    if let known = view(of: query) { return known.content }
    if query.limit != nil { keep(query.ordering, prepared) }
    let view =
      prepared?.view(of: query) ?? QueryView(query, on: node, index: index(by: query.ordering))
    orders[query.ordering, default: Order()].add(view)
    return view.content
  }

  /// Forgets the window of a query, and the order if no other needs it.
  mutating func forget(_ query: QuerySpec) {
    orders[query.ordering]?.remove(query)
    guard let views = orders[query.ordering]?.views else { return }
    if views.isEmpty {
      orders[query.ordering] = nil
    } else if query.limit != nil, !views.contains(where: { $0.query.limit != nil }) {
      orders[query.ordering]?.index = nil
    }
  }

  /// The same with no more than one query needs.
  func part(for query: QuerySpec) -> OrderedLocation {
    var part = OrderedLocation(node)
    guard let order = orders[query.ordering] else { return part }
    part.orders[query.ordering] = Order(index: order.index)
    if let view = view(of: query) { part.orders[query.ordering]?.add(view) }
    return part
  }

  /// Takes in children that a window to come shows: those that stand show the same as before.
  mutating func show(_ children: Node) {
    var now = node
    var keys: [ChildKey] = []
    children.forEachChild { key, child in
      guard node.child(key).isEmpty else { return true }
      now = now.settingChild(key, to: child)
      keys.append(key)
      return true
    }
    follow(to: now, keys: keys, changes: []) { _, _ in }
  }

  /// Drops those of some children that no window shows any more.
  mutating func hide(_ children: Node) {
    var now = node
    var keys: [ChildKey] = []
    children.forEachChild { key, _ in
      for order in orders.values where order.views.contains(where: { !$0.content.child(key).isEmpty }) {
        return true
      }
      now = now.settingChild(key, to: .empty)
      keys.append(key)
      return true
    }
    follow(to: now, keys: keys, changes: []) { _, _ in }
  }

  /// Follows a replacement of the location, and tells which windows changed.
  mutating func replace(by now: Node, _ tell: (QuerySpec, RealtimePush.Body) -> Void) {
    node = now
    for ordering in Array(orders.keys) {
      let index = index(by: ordering) == nil ? nil : OrderedIndex(of: now, by: ordering)
      orders[ordering]?.index = index
      for position in 0..<(orders[ordering]?.views.count ?? 0) {
        guard let query = orders[ordering]?.views[position].query,
          let body = orders[ordering]?.views[position].replace(by: now, index: index)
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
    to now: Node, keys: some Collection<ChildKey>, changes: [(path: Path, value: Node)],
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
      order.index?.update(to: now, changed: keys)
      for position in order.views.indices {
        let told = order.views[position].follow(
          to: now, index: order.index, moved: moved, changes: changes)
        if !told.isEmpty { tell(order.views[position].query, .merge(told)) }
      }
      orders[ordering] = order
    }
  }
}
