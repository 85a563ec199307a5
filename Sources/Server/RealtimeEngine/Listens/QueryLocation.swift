// A location on which filtered queries are listened to: its value, followed through every write, with one index for each
// order and one window for each query.

import RealtimeModel

/// A location with filtered queries.
struct QueryLocation {
  private let path: Path
  private var node: Node
  private var indexes: [Ordering: OrderedIndex] = [:]
  private(set) var views: [QuerySpec: QueryView] = [:]

  init(path: Path, node: Node) {
    self.path = path
    self.node = node
  }

  /// Adds a listener and gives the window it is to be told.
  ///
  /// - Parameter prepared: the children in the order of its query, if somebody has ordered them already.
  mutating func add(_ listener: Listener, _ prepared: OrderedIndex?) -> Node {
    let query = listener.query
    let index = indexes[query.ordering] ?? prepared ?? OrderedIndex(of: node, by: query.ordering)
    indexes[query.ordering] = index
    var view = views[query] ?? QueryView(query, index: index)
    view.listeners.append(listener)
    views[query] = view
    return view.content
  }

  mutating func remove(_ listener: Listener) {
    views[listener.query]?.listeners.removeAll { $0 === listener }
    if views[listener.query]?.listeners.isEmpty == true { views[listener.query] = nil }
    if !views.keys.contains(where: { $0.ordering == listener.query.ordering }) {
      indexes[listener.query.ordering] = nil
    }
  }

  /// Follows a replacement of the location or of what lies above it.
  mutating func replace(by now: Node, _ tell: (Listener, RealtimePush.Body) -> Void) {
    node = now
    for ordering in indexes.keys { indexes[ordering] = OrderedIndex(of: now, by: ordering) }
    for query in views.keys {
      guard let index = indexes[query.ordering], let body = views[query]?.replace(index: index) else {
        continue
      }
      for listener in views[query]?.listeners ?? [] { tell(listener, body) }
    }
  }

  /// Follows changes below the location, given relative to it.
  mutating func follow(_ changes: [(path: Path, value: Node)], _ tell: (Listener, RealtimePush.Body) -> Void)
  {
    let before = node
    var now = node
    for change in changes where !change.path.isPriority { now = now.setting(change.path, to: change.value) }
    for change in changes where change.path.isPriority { now = now.setting(change.path, to: change.value) }
    // Where there were no children, or are none now, there is no window to be changed bit by bit.
    if before.isEmpty || before.isLeaf || now.isEmpty || now.isLeaf {
      return replace(by: now, tell)
    }
    node = now
    var keys: [Key] = []
    for key in changes.compactMap(\.path.first) where !key.isPriority && keys.last != key { keys.append(key) }
    if keys.isEmpty { return }
    for ordering in indexes.keys { indexes[ordering]?.update(to: now, changed: keys) }
    for query in views.keys {
      guard let index = indexes[query.ordering],
        let told = views[query]?.follow(index: index, keys: keys, changes: changes), !told.isEmpty
      else { continue }
      for listener in views[query]?.listeners ?? [] { tell(listener, .merge(told)) }
    }
  }
}
