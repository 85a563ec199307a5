// Represents a location with filtered listens: its value, which every write updates, and for each query its listeners
// and its window (the children that it selects).

import RealtimeModel

/// A location with filtered listens.
struct QueryLocation {
  private var location: OrderedLocation
  private var listeners: [QuerySpec: [Listener]] = [:]
  /// Whether the value contains only the children that some window shows (see `RowWindowHandler`).
  private(set) var isPartial: Bool

  init(node: Node, isPartial: Bool) {
    location = OrderedLocation(node)
    self.isPartial = isPartial
  }

  var isEmpty: Bool { listeners.isEmpty }

  /// Adds a listener and returns its window.
  ///
  /// - Parameters:
  ///   - node: the location's value, or the children that the listener needs.
  ///   - prepared: results computed in the background.
  ///   - notify: called with the changes of other listeners' windows.
  mutating func add(
    _ listener: Listener, on node: Node, _ prepared: PreparedListen,
    _ notify: (Listener, RealtimePush.Body) -> Void
  ) -> Node {
    if isPartial, prepared.isPartial {
      location.insertVisible(node)
    } else if isPartial {
      // The existing windows may lack children that a batch could not read: a window's order no longer has rows, or a
      // child is too large (see `RowWindowHandler`). The complete value adds them.
      replace(by: node, notify)
    }
    listeners[listener.query, default: []].add(listener)
    return location.ensureView(of: listener.query, prepared.location)
  }

  mutating func remove(_ listener: Listener) {
    let query = listener.query
    listeners[query]?.remove(listener)
    guard listeners[query]?.isEmpty == true else { return }
    listeners[query] = nil
    let content = isPartial ? location.view(of: query)?.content : nil
    location.removeView(of: query)
    if let content { location.removeInvisible(content) }
  }

  /// Replaces the value of the location, or of one of its ancestors.
  mutating func replace(by newValue: Node, _ notify: (Listener, RealtimePush.Body) -> Void) {
    let listeners = listeners
    isPartial = false
    location.replace(by: newValue) { query, body in
      for listener in listeners[query] ?? [] { notify(listener, body) }
    }
  }

  /// Applies changes below the location, which are relative to it.
  mutating func apply(_ changes: [(path: Path, value: Node)], _ notify: (Listener, RealtimePush.Body) -> Void)
  {
    if changes.isEmpty { return }
    var newValue = location.node
    for change in changes where !change.path.isPriority {
      newValue = newValue.setting(change.path, to: change.value)
    }
    for change in changes where change.path.isPriority {
      newValue = newValue.setting(change.path, to: change.value)
    }
    var keys: [ChildKey] = []
    for key in changes.compactMap(\.path.first) where !key.isPriority && keys.last != key { keys.append(key) }
    let listeners = listeners
    location.apply(to: newValue, keys: keys, changes: changes) { query, body in
      for listener in listeners[query] ?? [] { notify(listener, body) }
    }
  }
}
