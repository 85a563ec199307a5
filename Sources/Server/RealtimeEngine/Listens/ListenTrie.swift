// Stores listens by path in the fan-out stage (the task that sends pushes to clients), so that a write visits only the
// listens above and below it.

import RealtimeModel

/// A location in the trie of listens.
///
/// Used by the fan-out stage only.
final class ListenTrie {
  /// The parent, which retains this location; nil for the root.
  unowned let parent: ListenTrie?
  private let key: ChildKey?
  private(set) var children: [ChildKey: ListenTrie] = [:]
  private(set) var listeners: [Listener] = []
  var queries: QueryLocation?
  /// The last push of the location's value. The next listener receives the same push if the value has not
  /// changed.
  weak var valuePush: RealtimePush?
  /// The last pushes of the location's value to filtered listens that receive all children, by tag.
  var tagged = TaggedValues()

  /// Creates a root.
  convenience init() { self.init(nil, nil) }

  private init(_ key: ChildKey?, _ parent: ListenTrie?) {
    self.key = key
    self.parent = parent
  }

  var isEmpty: Bool { children.isEmpty && listeners.isEmpty && queries == nil }

  /// Drops the shared pushes of a value that has changed.
  func invalidateValue() {
    valuePush = nil
    tagged.removeAll()
  }

  /// Returns the location of a path, and creates it if necessary.
  func location(at path: Path) -> ListenTrie {
    var location = self
    for key in path.keys {
      if let next = location.children[key] {
        location = next
      } else {
        let next = ListenTrie(key, location)
        location.children[key] = next
        location = next
      }
    }
    return location
  }

  /// Adds a default listener to this location.
  func add(_ listener: Listener) {
    listener.location = self
    listeners.add(listener)
  }

  /// Adds a filtered listener to this location, and returns its window.
  ///
  /// - Parameters:
  ///   - node: the location's value, or the children that the listener needs.
  ///   - prepared: results computed in the background.
  ///   - notify: called with the changes of other listeners' windows.
  func add(
    _ listener: Listener, on node: Node, _ prepared: PreparedListen,
    _ notify: (Listener, RealtimePush.Body) -> Void
  ) -> Node {
    listener.location = self
    if queries == nil { queries = QueryLocation(node: node, isPartial: prepared.isPartial) }
    return queries?.add(listener, on: node, prepared, notify) ?? .empty
  }

  /// The location of a path; nil if there are no listeners at or below the path.
  func existing(at path: Path) -> ListenTrie? {
    var location = self
    for key in path.keys {
      guard let next = location.children[key] else { return nil }
      location = next
    }
    return location
  }

  /// Removes a listener of this location. Then removes the locations that have no listeners any more.
  func remove(_ listener: Listener) {
    listener.location = nil
    if listener.isDefault {
      listeners.remove(listener)
    } else {
      queries?.remove(listener)
      if queries?.isEmpty == true { queries = nil }
    }
    var location = self
    while location.isEmpty, let parent = location.parent, let key = location.key {
      parent.children[key] = nil
      location = parent
    }
  }
}
