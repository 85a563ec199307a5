// A location on which filtered queries are listened to: its value, followed through every write, and for each query those
// who listen to it.

import RealtimeModel

/// A location with filtered queries.
struct QueryLocation {
  private var location: OrderedLocation
  private var listeners: [QuerySpec: [Listener]] = [:]

  init(node: Node) { location = OrderedLocation(node) }

  var isEmpty: Bool { listeners.isEmpty }

  /// Adds a listener and gives the window it is to be told.
  ///
  /// - Parameter prepared: the location as somebody has looked at it already.
  mutating func add(_ listener: Listener, _ prepared: OrderedLocation?) -> Node {
    listeners[listener.query, default: []].add(listener)
    return location.keep(listener.query, prepared)
  }

  mutating func remove(_ listener: Listener) {
    let query = listener.query
    listeners[query]?.remove(listener)
    guard listeners[query]?.isEmpty == true else { return }
    listeners[query] = nil
    location.forget(query)
  }

  /// Follows a replacement of the location or of what lies above it.
  mutating func replace(by now: Node, _ tell: (Listener, RealtimePush.Body) -> Void) {
    let listeners = listeners
    location.replace(by: now) { query, body in
      for listener in listeners[query] ?? [] { tell(listener, body) }
    }
  }

  /// Follows changes below the location, given relative to it.
  mutating func follow(_ changes: [(path: Path, value: Node)], _ tell: (Listener, RealtimePush.Body) -> Void)
  {
    var now = location.node
    for change in changes where !change.path.isPriority { now = now.setting(change.path, to: change.value) }
    for change in changes where change.path.isPriority { now = now.setting(change.path, to: change.value) }
    var keys: [Key] = []
    for key in changes.compactMap(\.path.first) where !key.isPriority && keys.last != key { keys.append(key) }
    let listeners = listeners
    location.follow(to: now, keys: keys, changes: changes) { query, body in
      for listener in listeners[query] ?? [] { tell(listener, body) }
    }
  }
}
