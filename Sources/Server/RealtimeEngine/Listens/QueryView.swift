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
  private let range: QueryRange
  /// The children in the window.
  private(set) var content: Node
  /// With the limit reached, the place of the child that a better one pushes out.
  private var edge: SortKey?

  /// - Parameters:
  ///   - node: the location's value.
  ///   - index: its children in the query's order; only a query with a limit needs it.
  init(_ query: QuerySpec, on node: Node, index: OrderedIndex?) {
    self.query = query
    range = QueryRange(query)
    content = .empty
    look(at: node, index)
  }

  /// Takes the window anew.
  private mutating func look(at node: Node, _ index: OrderedIndex?) {
    if query.limit == nil {
      content = node.window(query)
    } else {
      (content, edge) = (index ?? OrderedIndex(of: node, by: query.ordering)).window(query)
    }
  }

  /// Follows a replacement of the whole location; nil if the window stays the same.
  mutating func replace(by now: Node, index: OrderedIndex?) -> RealtimePush.Body? {
    let before = content
    look(at: now, index)
    return before == content ? nil : .set(content)
  }

  /// Follows changes below the location, and tells what changed in the window, relative to the location.
  ///
  /// - Parameters:
  ///   - now: the location's value after the changes.
  ///   - index: its children then, in the query's order.
  ///   - moved: the children that changed, each once.
  ///   - changes: the changes, relative to the location.
  mutating func follow(
    to now: Node, index: OrderedIndex?, moved: [MovedChild], changes: [(path: Path, value: Node)]
  ) -> [(path: Path, value: Node)] {
    let before = content
    if query.showsAll {
      look(at: now, index)
    } else {
      guard moved.contains(where: { isInside($0.from) || isInside($0.to) }) else { return [] }
      move(index, moved)
    }
    var leaving: [(path: Path, value: Node)] = []
    var entering: [(path: Path, value: Node)] = []
    var staying: Set<ChildKey> = []
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

  /// Whether a place lies in the range, and not behind the edge; what stood there was, or is, in the window.
  private func isInside(_ place: SortKey?) -> Bool {
    guard let place, range.contains(place) else { return false }
    guard let edge else { return true }
    return isReversed ? edge <= place : place <= edge
  }

  /// Whether the window begins at the end of the order.
  private var isReversed: Bool {
    if case .last = query.limit { true } else { false }
  }

  /// Moves the window by the children that changed.
  private mutating func move(_ index: OrderedIndex?, _ moved: [MovedChild]) {
    for child in moved {
      content = content.settingChild(child.key, to: isInside(child.to) ? child.now : .empty)
    }
    guard let limit = query.limit?.count, let index else { return }
    if let edge, content.childCount < limit {
      fill(index, behind: edge, limit)
    } else if content.childCount >= limit {
      cut(index, limit)
    }
  }

  /// Takes in what comes behind the edge, until the limit is reached.
  private mutating func fill(_ index: OrderedIndex, behind edge: SortKey, _ limit: Int) {
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

/// A child that changed, and where it stood and stands in an order.
struct MovedChild {
  let key: ChildKey
  let now: Node
  let from: SortKey?
  let to: SortKey?

  init(_ key: ChildKey, from before: Node, to now: Node, in ordering: Ordering) {
    self.key = key
    self.now = now
    from = before.isEmpty ? nil : SortKey(of: key, before, in: ordering)
    to = now.isEmpty ? nil : SortKey(of: key, now, in: ordering)
  }
}
