// The window of one filtered query, shared by everyone who listens to it, and what changes in it with a write.
//
// Invariant: what listeners were told, applied in order, is `content` at every step; a change of the window is one
// message, so that no window in between is ever seen.

import RealtimeModel

/// A filtered query on a location.
struct QueryView {
  let query: QuerySpec
  /// The children in the window.
  private(set) var content: Node
  /// With the limit reached, the place of the child that a better one pushes out.
  private var edge: OrderingPlace?
  var listeners: [Listener] = []

  init(_ query: QuerySpec, index: OrderedIndex) {
    self.query = query
    content = .empty
    look(at: index)
  }

  /// Takes the window anew.
  private mutating func look(at index: OrderedIndex) {
    if query.showsAll { content = index.node } else { (content, edge) = index.window(query) }
  }

  /// Follows a replacement of the whole location; nil if the window stays the same.
  mutating func replace(index: OrderedIndex) -> RealtimePush.Body? {
    let before = content
    look(at: index)
    return before == content ? nil : .set(content)
  }

  /// Follows changes below the location, and tells what changed in the window, relative to the location.
  ///
  /// - Parameters:
  ///   - index: the location's children after the changes.
  ///   - keys: the children that changed.
  ///   - changes: the changes, relative to the location.
  mutating func follow(
    index: OrderedIndex, keys: [Key], changes: [(path: Path, value: Node)]
  ) -> [(path: Path, value: Node)] {
    let before = content
    if query.showsAll {
      look(at: index)
    } else if query.limit == nil {
      for key in keys {
        let child = index.node.child(key)
        let isInside = !child.isEmpty && query.contains(OrderingPlace(of: key, child, in: query.ordering))
        content = content.settingChild(key, to: isInside ? child : .empty)
      }
    } else {
      guard keys.contains(where: { mayMoveWindow($0, index) }) else { return [] }
      look(at: index)
    }
    var leaving: [(path: Path, value: Node)] = []
    var entering: [(path: Path, value: Node)] = []
    var staying: Set<Key> = []
    content.forEachChangedChild(from: before) { key, now, old in
      if now.isEmpty {
        leaving.append((Path(keys: [key]), .empty))
      } else if old.isEmpty {
        entering.append((Path(keys: [key]), now))
      } else {
        staying.insert(key)
      }
    }
    let inner = changes.filter { $0.path.first.map { staying.contains($0) } ?? false }
    return leaving + entering + inner
  }

  /// Whether a changed child was in the window, or is now where it would be in it.
  private func mayMoveWindow(_ key: Key, _ index: OrderedIndex) -> Bool {
    if !content.child(key).isEmpty { return true }
    let child = index.node.child(key)
    guard !child.isEmpty else { return false }
    let place = OrderingPlace(of: key, child, in: query.ordering)
    guard query.contains(place) else { return false }
    guard let edge else { return true }
    if case .last = query.limit { return edge < place }
    return place < edge
  }
}
