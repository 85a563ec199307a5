// Holds the window of one filtered query (the children that it shows) on a location that is not in memory. It
// has only the keys and sort keys of the children, not their values.

import RealtimeModel

/// The window of a filtered query. `RowWindowHandler` updates it for each changed child.
///
/// Invariant: the window holds the children in the query's range up to `limitBoundary`, or all children in
/// the range if `limitBoundary` is nil. While ``isShort`` is true, children beyond the boundary may belong to
/// the window too, and have to be read from rows.
struct RowWindow {
  let query: QuerySpec
  private let range: QueryRange
  /// The keys of the children in the window, with their sort keys.
  private(set) var sortKeys: [ChildKey: SortKey] = [:]
  /// The sort key of the last child in query order, once the limit is reached. That child leaves the window
  /// first.
  private(set) var limitBoundary: SortKey?

  /// - Parameter sortKeys: the sort keys of all children in the window, as read from rows.
  init(_ query: QuerySpec, _ sortKeys: [SortKey]) {
    self.query = query
    range = QueryRange(query)
    for sortKey in sortKeys { self.sortKeys[sortKey.key] = sortKey }
    findBoundary()
    assert(hasValidBounds, "the rows of a window lie in its range and limit")
  }

  private var limit: Int { query.limit?.count ?? .max }

  /// Whether the window has fewer children than its limit and children beyond the boundary may fill it.
  var isShort: Bool { limitBoundary != nil && sortKeys.count < limit }

  /// Whether a sort key lies in the window.
  func isInside(_ sortKey: SortKey) -> Bool {
    guard range.contains(sortKey) else { return false }
    return limitBoundary.map { !isAfter(sortKey, $0) } ?? true
  }

  /// Moves a child to its current sort key, or removes it if that is nil or outside the window. Returns false
  /// if nothing changed.
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

  /// Adds the missing children, given the current window as read from rows.
  ///
  /// - Returns: the added children.
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
