// Listens by path: a write visits those above it and those below it, and no others.

import RealtimeModel

/// A location in the trie of listens.
///
/// Touched by the fan-out stage only.
final class ListenTrie {
  var children: [Key: ListenTrie] = [:]
  var listeners: [Listener] = []
  var queries: QueryLocation?
  /// The push that told the location's value last, for the next listener that starts before anything changes.
  weak var valuePush: RealtimePush?
  /// The same for filtered listens that are told all children, by their tags.
  var tagged = TaggedValues()

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
        let next = ListenTrie()
        location.children[key] = next
        location = next
      }
    }
    return location
  }

  /// Removes a listener, and locations on which nothing is left.
  func remove(_ listener: Listener) { _ = remove(listener, at: listener.name.path.keys[...]) }

  private func remove(_ listener: Listener, at keys: ArraySlice<Key>) -> Bool {
    if let key = keys.first {
      if let child = children[key], child.remove(listener, at: keys.dropFirst()) { children[key] = nil }
    } else if listener.name.tag == nil && listener.query.showsAll {
      listeners.removeAll { $0 === listener }
    } else {
      queries?.remove(listener)
      if queries?.isEmpty == true { queries = nil }
    }
    return isEmpty
  }
}
