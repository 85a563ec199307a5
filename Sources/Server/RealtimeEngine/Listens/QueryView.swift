// The window of one filtered query, shared by everyone who listens to it, and what changes in it with a write.
//
// Invariants
//   1. What listeners were told, applied in order, is `content` at every step; a change of the window is one message, so
//      that no window in between is ever seen.
//   2. `content` is what lies in the query's range up to `edge`, or all of the range where there is no edge. So a changed
//      child costs O(log n), however wide the window is.

import RealtimeModel

/// The window of a filtered query on a location.
struct QueryView: Sendable {
  let query: QuerySpec
  /// The children in the window.
  private(set) var content: Node
  /// With the limit reached, the place of the child that a better one pushes out.
  private var edge: OrderingPlace?

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
  ///   - keys: the children that changed, each once.
  ///   - changes: the changes, relative to the location.
  mutating func follow(
    index: OrderedIndex, keys: some Sequence<Key>, changes: [(path: Path, value: Node)]
  ) -> [(path: Path, value: Node)] {
    let before = content
    if query.showsAll {
      look(at: index)
    } else {
      guard keys.contains(where: { mayMoveWindow($0, index) }) else { return [] }
      move(index, keys)
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
    return !child.isEmpty && isInside(OrderingPlace(of: key, child, in: query.ordering))
  }

  /// Whether a place lies in the range, and not behind the edge.
  private func isInside(_ place: OrderingPlace) -> Bool {
    guard query.contains(place) else { return false }
    guard let edge else { return true }
    return isReversed ? edge <= place : place <= edge
  }

  /// Whether the window begins at the end of the order.
  private var isReversed: Bool {
    if case .last = query.limit { true } else { false }
  }

  /// Moves the window by the children that changed.
  private mutating func move(_ index: OrderedIndex, _ keys: some Sequence<Key>) {
    for key in keys {
      let child = index.node.child(key)
      let isShown = !child.isEmpty && isInside(OrderingPlace(of: key, child, in: query.ordering))
      content = content.settingChild(key, to: isShown ? child : .empty)
    }
    guard let limit = query.limit?.count else { return }
    if let edge, content.childCount < limit {
      fill(index, behind: edge, limit)
    } else if content.childCount >= limit {
      cut(index, limit)
    }
  }

  /// Takes in what comes behind the edge, until the limit is reached.
  private mutating func fill(_ index: OrderedIndex, behind edge: OrderingPlace, _ limit: Int) {
    self.edge = nil
    index.forEach(in: query, from: edge, reverse: isReversed) { place, child in
      // What stood at the edge may still stand there, inside the window.
      if place == edge { return true }
      content = content.settingChild(place.key, to: child)
      guard content.childCount < limit else {
        self.edge = place
        return false
      }
      return true
    }
  }

  /// Drops what is more than the limit, from the far end, and finds the edge.
  private mutating func cut(_ index: OrderedIndex, _ limit: Int) {
    let end = edge
    edge = nil
    index.forEach(in: query, from: end, reverse: !isReversed) { place, _ in
      guard content.childCount > limit else {
        edge = place
        return false
      }
      content = content.settingChild(place.key, to: .empty)
      return true
    }
  }
}
