// A location on which filtered queries are listened to: its value, followed through every write, and for each query those
// who listen to it.

import RealtimeModel

/// A location with filtered queries.
struct QueryLocation {
  private var location: OrderedLocation
  private var listeners: [QuerySpec: [Listener]] = [:]
  /// Whether the value has only the children that somebody sees.
  private(set) var isPart: Bool

  init(node: Node, isPart: Bool) {
    location = OrderedLocation(node)
    self.isPart = isPart
  }

  var isEmpty: Bool { listeners.isEmpty }

  /// Adds a listener and gives the window it is to be told.
  ///
  /// - Parameters:
  ///   - node: the location's value, or the part of it that the listener needs.
  ///   - prepared: the location as somebody has looked at it already.
  ///   - tell: told what others see that they did not see before.
  mutating func add(
    _ listener: Listener, on node: Node, _ prepared: PreparedListen,
    _ tell: (Listener, RealtimePush.Body) -> Void
  ) -> Node {
    if isPart, prepared.isPart {
      location.show(node)
    } else if isPart {
      // Windows may have lacked children, once rows no longer told.
      replace(by: node, tell)
    }
    listeners[listener.query, default: []].add(listener)
    return location.keep(listener.query, prepared.location)
  }

  mutating func remove(_ listener: Listener) {
    let query = listener.query
    listeners[query]?.remove(listener)
    guard listeners[query]?.isEmpty == true else { return }
    listeners[query] = nil
    let seen = isPart ? location.view(of: query)?.content : nil
    location.forget(query)
    if let seen { location.hide(seen) }
  }

  /// Follows a replacement of the location or of what lies above it.
  mutating func replace(by now: Node, _ tell: (Listener, RealtimePush.Body) -> Void) {
    let listeners = listeners
    isPart = false
    location.replace(by: now) { query, body in
      for listener in listeners[query] ?? [] { tell(listener, body) }
    }
  }

  /// Follows changes below the location, given relative to it.
  mutating func follow(_ changes: [(path: Path, value: Node)], _ tell: (Listener, RealtimePush.Body) -> Void)
  {
    if changes.isEmpty { return }
    var now = location.node
    for change in changes where !change.path.isPriority { now = now.setting(change.path, to: change.value) }
    for change in changes where change.path.isPriority { now = now.setting(change.path, to: change.value) }
    var keys: [ChildKey] = []
    for key in changes.compactMap(\.path.first) where !key.isPriority && keys.last != key { keys.append(key) }
    let listeners = listeners
    location.follow(to: now, keys: keys, changes: changes) { query, body in
      for listener in listeners[query] ?? [] { tell(listener, body) }
    }
  }
}
