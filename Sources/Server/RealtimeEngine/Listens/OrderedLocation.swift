// A location's value, its children in the orders that somebody asked for, and the windows of queries on it: one index for
// each order and one window for each query, however many want them, each brought up to date in O(log n) by a changed child.

import RealtimeModel

/// A location as queries see it.
struct OrderedLocation: Sendable {
  private(set) var node: Node
  private(set) var indexes: [Ordering: OrderedIndex] = [:]
  private(set) var views: [QuerySpec: QueryView] = [:]

  init(_ node: Node) { self.node = node }

  /// Has the children kept in an order.
  ///
  /// - Parameter prepared: the same location, as somebody may have looked at it already.
  mutating func keep(_ ordering: Ordering, _ prepared: OrderedLocation? = nil) {
    guard indexes[ordering] == nil else { return }
    indexes[ordering] = prepared?.indexes[ordering] ?? OrderedIndex(of: node, by: ordering)
  }

  /// Has the window of a query kept, and gives it.
  mutating func keep(_ query: QuerySpec, _ prepared: OrderedLocation? = nil) -> Node {
    keep(query.ordering, prepared)
    guard let index = indexes[query.ordering] else { return .empty }
    if let known = views[query] { return known.content }
    let view = prepared?.views[query] ?? QueryView(query, index: index)
    views[query] = view
    return view.content
  }

  /// Forgets the window of a query, and the order if no other needs it.
  mutating func forget(_ query: QuerySpec) {
    views[query] = nil
    if !views.keys.contains(where: { $0.ordering == query.ordering }) { indexes[query.ordering] = nil }
  }

  /// The same with no more than one query needs.
  func part(for query: QuerySpec) -> OrderedLocation {
    var part = OrderedLocation(node)
    part.indexes[query.ordering] = indexes[query.ordering]
    part.views[query] = views[query]
    return part
  }

  /// Follows a replacement of the location, and tells which windows changed.
  mutating func replace(by now: Node, _ tell: (QuerySpec, RealtimePush.Body) -> Void) {
    node = now
    for ordering in Array(indexes.keys) { indexes[ordering] = OrderedIndex(of: now, by: ordering) }
    for query in Array(views.keys) {
      guard let index = indexes[query.ordering], let body = views[query]?.replace(index: index) else {
        continue
      }
      tell(query, body)
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
    for ordering in Array(indexes.keys) { indexes[ordering]?.update(to: now, changed: keys) }
    for query in Array(views.keys) {
      guard let index = indexes[query.ordering],
        let told = views[query]?.follow(index: index, keys: keys, changes: changes), !told.isEmpty
      else { continue }
      tell(query, .merge(told))
    }
  }
}
