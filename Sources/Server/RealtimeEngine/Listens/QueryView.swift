// Maintains the window of one filtered query (the children that it selects), shared by its listeners, and computes how
// a write changes it.
//
// Example: `limitToFirst(2)` by key on {a, b, c} has the window {a, b} and the boundary b. When a is removed,
// one push removes a and adds c.
//
// Invariants
//   1. A listener that applies the pushes in order has `content` after each push. Each change of the window
//      is a single push, so clients never see an intermediate window.
//   2. `content` contains the children in the query's range up to `limitBoundary`, or all children in the
//      range if `limitBoundary` is nil. A changed child therefore costs O(log n), however wide the window is.

import RealtimeModel

/// The window of a filtered query on a location.
struct QueryView: Sendable {
  let query: QuerySpec
  private let range: QueryRange
  /// The children in the window.
  private(set) var content: Node
  /// The sort key of the last child in the window; nil if the window has fewer children than the limit.
  private var limitBoundary: SortKey?

  /// - Parameters:
  ///   - node: the location's value.
  ///   - index: its children in the query's order; required only for a query with a limit.
  init(_ query: QuerySpec, on node: Node, index: OrderedIndex?) {
    self.query = query
    range = QueryRange(query)
    content = .empty
    rebuild(at: node, index)
  }

  /// Computes the window from the location's value.
  private mutating func rebuild(at node: Node, _ index: OrderedIndex?) {
    if query.limit == nil {
      content = node.window(query)
    } else {
      (content, limitBoundary) = (index ?? OrderedIndex(of: node, by: query.ordering)).window(query)
    }
  }

  /// Applies a replacement of the location's value. Returns nil if the window does not change.
  mutating func replace(by newValue: Node, index: OrderedIndex?) -> RealtimePush.Body? {
    let before = content
    rebuild(at: newValue, index)
    return before == content ? nil : .set(content)
  }

  /// Applies changes below the location. Returns the changes of the window, relative to the location.
  ///
  /// - Parameters:
  ///   - newValue: the location's value after the changes.
  ///   - index: its children in the query's order, after the changes.
  ///   - movedChildren: the changed children, each once.
  ///   - changes: the changes, relative to the location.
  mutating func apply(
    to newValue: Node, index: OrderedIndex?, movedChildren: [MovedChild], changes: [(path: Path, value: Node)]
  ) -> [(path: Path, value: Node)] {
    let before = content
    if query.showsAll {
      rebuild(at: newValue, index)
    } else {
      guard movedChildren.contains(where: { isInWindow($0.oldSortKey) || isInWindow($0.newSortKey) }) else {
        return []
      }
      updateWindow(index, movedChildren)
      precondition(
        query.limit.map { content.childCount <= $0.count } ?? true,
        "invariant: a window has at most as many children as its limit")
      assert(
        newValue.childCount > 32 || content.childKeys == newValue.window(query).childKeys,
        "invariant: a window contains the children within its bounds")
    }
    var leaving: [(path: Path, value: Node)] = []
    var entering: [(path: Path, value: Node)] = []
    var staying: Set<ChildKey> = []
    content.forEachChangedChild(from: before) { key, newValue, old in
      if newValue.isEmpty {
        leaving.append((Path(keys: [key]), .empty))
      } else if old.isEmpty {
        entering.append((Path(keys: [key]), newValue))
      } else {
        staying.insert(key)
      }
    }
    let inner = changes.filter { $0.path.first.map { staying.contains($0) } ?? false }
    return leaving + entering + inner
  }

  /// Whether a sort key is in the range and not after the boundary.
  private func isInWindow(_ sortKey: SortKey?) -> Bool {
    guard let sortKey, range.contains(sortKey) else { return false }
    guard let limitBoundary else { return true }
    return isReversed ? limitBoundary <= sortKey : sortKey <= limitBoundary
  }

  /// Whether the window starts at the end of the order.
  private var isReversed: Bool {
    if case .last = query.limit { true } else { false }
  }

  /// Updates the window for changed children.
  private mutating func updateWindow(_ index: OrderedIndex?, _ movedChildren: [MovedChild]) {
    for child in movedChildren {
      content = content.settingChild(child.key, to: isInWindow(child.newSortKey) ? child.newValue : .empty)
    }
    guard let limit = query.limit?.count, let index else { return }
    if let limitBoundary, content.childCount < limit {
      refill(index, after: limitBoundary, limit)
    } else if content.childCount >= limit {
      trim(index, limit)
    }
  }

  /// Adds the children after the boundary until the limit is reached.
  private mutating func refill(_ index: OrderedIndex, after boundary: SortKey, _ limit: Int) {
    limitBoundary = nil
    index.forEach(in: query, from: boundary, reverse: isReversed) { sortKey, child in
      // The scan starts at the boundary. If a child is there, the window contains it already.
      if sortKey == boundary { return true }
      content = content.settingChild(sortKey.key, to: child)
      guard content.childCount < limit else {
        limitBoundary = sortKey
        return false
      }
      return true
    }
  }

  /// Removes children beyond the limit, from the end of the window, and sets the boundary.
  private mutating func trim(_ index: OrderedIndex, _ limit: Int) {
    let end = limitBoundary
    limitBoundary = nil
    index.forEach(in: query, from: end, reverse: !isReversed) { sortKey, _ in
      guard content.childCount > limit else {
        limitBoundary = sortKey
        return false
      }
      content = content.settingChild(sortKey.key, to: .empty)
      return true
    }
  }
}

/// A changed child with its sort keys before and after the change.
struct MovedChild {
  let key: ChildKey
  let newValue: Node
  let oldSortKey: SortKey?
  let newSortKey: SortKey?

  init(_ key: ChildKey, from before: Node, to newValue: Node, in ordering: Ordering) {
    self.key = key
    self.newValue = newValue
    oldSortKey = before.isEmpty ? nil : SortKey(of: key, before, in: ordering)
    newSortKey = newValue.isEmpty ? nil : SortKey(of: key, newValue, in: ordering)
  }
}
