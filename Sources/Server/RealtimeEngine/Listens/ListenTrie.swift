// Listens by path: a write visits those above it and those below it, and no others.

import RealtimeModel

/// A location in the trie of listens.
///
/// Touched by the fan-out stage only.
final class ListenTrie {
  /// The location above, which holds this one; nil at the root.
  unowned let parent: ListenTrie?
  private let key: ChildKey?
  private(set) var children: [ChildKey: ListenTrie] = [:]
  private(set) var listeners: [Listener] = []
  var queries: QueryLocation?
  /// The push that told the location's value last, for the next listener that starts before anything changes.
  weak var valuePush: RealtimePush?
  /// The same for filtered listens that are told all children, by their tags.
  var tagged = TaggedValues()

  /// Makes a root.
  convenience init() { self.init(nil, nil) }

  private init(_ key: ChildKey?, _ parent: ListenTrie?) {
    self.key = key
    self.parent = parent
  }

  var isEmpty: Bool { children.isEmpty && listeners.isEmpty && queries == nil }

  /// Forgets what told a value that has changed.
  func forgetValue() {
    valuePush = nil
    tagged.removeAll()
  }

  /// The location of a path, made if need be.
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

  /// Adds a listener with a query of its own to this location, and gives the window it is to be told.
  ///
  /// - Parameters:
  ///   - node: the location's value, or the part of it that the listener needs.
  ///   - prepared: the location as somebody has looked at it already.
  ///   - tell: told what others see that they did not see before.
  func add(
    _ listener: Listener, on node: Node, _ prepared: PreparedListen,
    _ tell: (Listener, RealtimePush.Body) -> Void
  ) -> Node {
    listener.location = self
    if queries == nil { queries = QueryLocation(node: node, isPart: prepared.isPart) }
    return queries?.add(listener, on: node, prepared, tell) ?? .empty
  }

  /// The location of a path, if somebody listens there.
  func existing(at path: Path) -> ListenTrie? {
    var location = self
    for key in path.keys {
      guard let next = location.children[key] else { return nil }
      location = next
    }
    return location
  }

  /// Removes a listener of this location, and locations on which nothing is left.
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
