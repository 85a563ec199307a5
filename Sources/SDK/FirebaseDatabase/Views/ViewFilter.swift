// The view filter: applies changes to a cached value, removes data outside the query's window, and records
// every difference that observers see.

import RealtimeModel

/// Provides the child that enters a full window when another child leaves it.
protocol CompleteChildSource {
  /// The complete value of a child, which may be outside the window.
  func completeChild(_ key: ChildKey) -> Node?

  /// The complete value of the location, from which the window can be filled again.
  var completeNode: Node? { get }
}

/// A source without children, for server caches: only the server can fill their windows again.
struct NoChildSource: CompleteChildSource {
  func completeChild(_ key: ChildKey) -> Node? { nil }
  var completeNode: Node? { nil }
}

/// Applies a query's order, and its window if it has one.
struct ViewFilter {
  let query: QuerySpec

  /// Whether the filter can exclude children.
  var filtersNodes: Bool { !query.showsAll }

  /// The filter with the same order but without a window.
  var unfiltered: ViewFilter { ViewFilter(query: QuerySpec(ordering: query.ordering)) }

  private func sortKey(_ key: ChildKey, _ node: Node) -> SortKey {
    SortKey(of: key, node, in: query.ordering)
  }

  /// Whether a child is within the bounds.
  private func isInBounds(_ key: ChildKey, _ child: Node) -> Bool {
    !child.isEmpty && ((query.start == nil && query.end == nil) || query.contains(sortKey(key, child)))
  }

  /// Replaces the complete value.
  func replacing(_ old: Node, with new: Node, _ changes: inout ChangeAccumulator) -> Node {
    let filtered = filtersNodes ? new.window(query) : new
    filtered.forEachChangedChild(from: old) { key, now, before in
      if now.isEmpty {
        changes.add(key, .removed(before))
      } else if before.isEmpty {
        changes.add(key, .added(now))
      } else {
        changes.add(key, .changed(now, from: before))
      }
    }
    return filtered
  }

  /// Replaces the priority. A filtered view has no priority.
  func replacingPriority(of node: Node, with priority: Node) -> Node {
    filtersNodes || node.isEmpty ? node : node.setting(Path(keys: [.priority]), to: priority)
  }

  /// Replaces one child.
  func replacing(
    _ key: ChildKey, in node: Node, with child: Node, from source: some CompleteChildSource,
    _ changes: inout ChangeAccumulator
  ) -> Node {
    let new = isInBounds(key, child) ? child : .empty
    let old = node.child(key)
    if old == new { return node }
    if let limit = query.limit, node.childCount >= limit.count {
      return replacingInFullWindow(key, in: node, with: new, limit: limit, from: source, &changes)
    }
    if new.isEmpty {
      changes.add(key, .removed(old))
    } else if old.isEmpty {
      changes.add(key, .added(new))
    } else {
      changes.add(key, .changed(new, from: old))
    }
    return node.settingChild(key, to: new)
  }

  /// Replaces one child of a window that has reached its limit.
  private func replacingInFullWindow(
    _ key: ChildKey, in node: Node, with new: Node, limit: QuerySpec.Limit,
    from source: some CompleteChildSource,
    _ changes: inout ChangeAccumulator
  ) -> Node {
    let isFromStart = if case .first = limit { true } else { false }
    func isBefore(_ a: SortKey, _ b: SortKey) -> Bool { isFromStart ? a < b : b < a }
    var boundary: (key: ChildKey, node: Node, sortKey: SortKey)?
    node.forEachChild { other, child in
      let candidate = sortKey(other, child)
      if boundary == nil || isBefore(boundary?.sortKey ?? candidate, candidate) {
        boundary = (other, child, candidate)
      }
      return true
    }
    guard let boundary else { return node }
    let old = node.child(key)
    if old.isEmpty {
      guard !new.isEmpty, isBefore(sortKey(key, new), boundary.sortKey) else { return node }
      changes.add(boundary.key, .removed(boundary.node))
      changes.add(key, .added(new))
      return node.settingChild(key, to: new).settingChild(boundary.key, to: .empty)
    }
    let next = nextChild(
      after: boundary.sortKey, outside: node, except: key, from: source, isBefore: isBefore)
    if !new.isEmpty, next.map({ isBefore(sortKey(key, new), $0.sortKey) }) ?? true {
      changes.add(key, .changed(new, from: old))
      return node.settingChild(key, to: new)
    }
    changes.add(key, .removed(old))
    let rest = node.settingChild(key, to: .empty)
    guard let next else { return rest }
    changes.add(next.key, .added(next.node))
    return rest.settingChild(next.key, to: next.node)
  }

  /// The nearest known child outside the window.
  private func nextChild(
    after boundary: SortKey, outside window: Node, except excluded: ChildKey,
    from source: some CompleteChildSource, isBefore: (SortKey, SortKey) -> Bool
  ) -> (key: ChildKey, node: Node, sortKey: SortKey)? {
    var best: (key: ChildKey, node: Node, sortKey: SortKey)?
    source.completeNode?.forEachChild { key, child in
      guard key != excluded, window.child(key).isEmpty else { return true }
      let candidate = sortKey(key, child)
      guard isBefore(boundary, candidate), best.map({ isBefore(candidate, $0.sortKey) }) ?? true else {
        return true
      }
      best = (key, child, candidate)
      return true
    }
    return best.flatMap { query.contains($0.sortKey) ? $0 : nil }
  }
}
