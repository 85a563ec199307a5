// Holds the window of one filtered query on a location that is not in memory: the keys and sort keys of its
// children, not their values.

import RealtimeModel

/// The window of a filtered query, updated child by child.
///
/// Invariant: it holds the children in the query's range up to `limitBoundary`, or all children in the range
/// without one. It holds fewer only while ``isShort`` is true, which means that children beyond the boundary
/// have to be read.
struct RowWindow {
  let query: QuerySpec
  private let range: QueryRange
  /// The shown children and their sort keys.
  private(set) var sortKeys: [ChildKey: SortKey] = [:]
  /// With the limit reached, the sort key of the last child in query order: the next to leave.
  private(set) var limitBoundary: SortKey?

  /// - Parameter sortKeys: the complete window, as rows give it.
  init(_ query: QuerySpec, _ sortKeys: [SortKey]) {
    self.query = query
    range = QueryRange(query)
    for sortKey in sortKeys { self.sortKeys[sortKey.key] = sortKey }
    findBoundary()
    assert(hasValidBounds, "the rows of a window lie in its range and limit")
  }

  private var limit: Int { query.limit?.count ?? .max }

  /// Whether children beyond the boundary may fill free positions.
  var isShort: Bool { limitBoundary != nil && sortKeys.count < limit }

  /// Whether a sort key lies in the window.
  func isInside(_ sortKey: SortKey) -> Bool {
    guard range.contains(sortKey) else { return false }
    return limitBoundary.map { !isAfter(sortKey, $0) } ?? true
  }

  /// Moves a child to its current sort key, or removes it; returns false if nothing changed.
  mutating func move(_ key: ChildKey, to sortKey: SortKey?, _ undo: inout Undo) -> Bool {
    let sortKey = sortKey.flatMap { isInside($0) ? $0 : nil }
    guard sortKeys[key] != sortKey else { return false }
    set(key, to: sortKey, &undo)
    return true
  }

  /// Removes the children beyond the limit, and updates the boundary.
  ///
  /// - Returns: the removed children.
  mutating func trim(_ undo: inout Undo) -> [ChildKey] {
    let excess = sortKeys.count - limit
    guard excess >= 0 else { return [] }
    var removed: [SortKey] = []
    if excess == 1 {
      removed = last.map { [$0] } ?? []
    } else if excess > 1 {
      removed = Array(sortKeys.values.sorted { isAfter($0, $1) }.prefix(excess))
    }
    for sortKey in removed { set(sortKey.key, to: nil, &undo) }
    findBoundary()
    precondition(sortKeys.count <= limit, "invariant: a window holds no more children than its limit")
    return removed.map(\.key)
  }

  /// Replaces the window by the current one, as rows give it.
  ///
  /// - Returns: the new children.
  mutating func fill(_ now: [SortKey], _ undo: inout Undo) -> [ChildKey] {
    var added: [ChildKey] = []
    for sortKey in now where sortKeys[sortKey.key] != sortKey {
      if sortKeys[sortKey.key] == nil { added.append(sortKey.key) }
      set(sortKey.key, to: sortKey, &undo)
    }
    limitBoundary = nil
    findBoundary()
    assert(hasValidBounds, "the rows of a window lie in its range and limit")
    return added
  }

  private mutating func set(_ key: ChildKey, to sortKey: SortKey?, _ undo: inout Undo) {
    undo.sortKeys.append((key, sortKeys[key]))
    sortKeys[key] = sortKey
  }

  private mutating func findBoundary() { if sortKeys.count >= limit { limitBoundary = last } }

  private var hasValidBounds: Bool { sortKeys.count <= limit && sortKeys.values.allSatisfy { isInside($0) } }

  /// The last child in query order.
  private var last: SortKey? {
    if case .last = query.limit { sortKeys.values.min() } else { sortKeys.values.max() }
  }

  private func isAfter(_ sortKey: SortKey, _ other: SortKey) -> Bool {
    if case .last = query.limit { sortKey < other } else { other < sortKey }
  }

  // MARK: Undo

  /// The state of a window before changes.
  struct Undo {
    fileprivate var sortKeys: [(key: ChildKey, sortKey: SortKey?)] = []
    fileprivate let limitBoundary: SortKey?

    init(_ window: RowWindow) { limitBoundary = window.limitBoundary }
  }

  /// Rolls back changes.
  mutating func rollBack(_ undo: Undo) {
    for (key, sortKey) in undo.sortKeys.reversed() { sortKeys[key] = sortKey }
    limitBoundary = undo.limitBoundary
  }
}
