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
  private(set) var places: [Key: SortKey] = [:]
  /// With the limit reached, the sort key of the last child in query order: the next to leave.
  private(set) var limitBoundary: SortKey?

  /// - Parameter places: the complete window, as rows give it.
  init(_ query: QuerySpec, _ places: [SortKey]) {
    self.query = query
    range = QueryRange(query)
    for place in places { self.places[place.key] = place }
    findBoundary()
    checkBounds()
  }

  private var limit: Int { query.limit?.count ?? .max }

  /// Whether children beyond the boundary may fill free positions.
  var isShort: Bool { limitBoundary != nil && places.count < limit }

  /// Whether a sort key lies in the window.
  func isInside(_ place: SortKey) -> Bool {
    guard range.contains(place) else { return false }
    return limitBoundary.map { !isAfter(place, $0) } ?? true
  }

  /// Moves a child to its current sort key, or removes it; returns false if nothing changed.
  mutating func move(_ key: Key, to place: SortKey?, _ undo: inout Undo) -> Bool {
    let place = place.flatMap { isInside($0) ? $0 : nil }
    guard places[key] != place else { return false }
    set(key, to: place, &undo)
    return true
  }

  /// Removes the children beyond the limit, and updates the boundary.
  ///
  /// - Returns: the removed children.
  mutating func trim(_ undo: inout Undo) -> [Key] {
    let excess = places.count - limit
    guard excess >= 0 else { return [] }
    var removed: [SortKey] = []
    if excess == 1 {
      removed = last.map { [$0] } ?? []
    } else if excess > 1 {
      removed = Array(places.values.sorted { isAfter($0, $1) }.prefix(excess))
    }
    for place in removed { set(place.key, to: nil, &undo) }
    findBoundary()
    checkBounds()
    return removed.map(\.key)
  }

  /// Replaces the window by the current one, as rows give it.
  ///
  /// - Returns: the new children.
  mutating func fill(_ now: [SortKey], _ undo: inout Undo) -> [Key] {
    var added: [Key] = []
    for place in now where places[place.key] != place {
      if places[place.key] == nil { added.append(place.key) }
      set(place.key, to: place, &undo)
    }
    limitBoundary = nil
    findBoundary()
    checkBounds()
    return added
  }

  private mutating func set(_ key: Key, to place: SortKey?, _ undo: inout Undo) {
    undo.places.append((key, places[key]))
    places[key] = place
  }

  private mutating func findBoundary() { if places.count >= limit { limitBoundary = last } }

  private func checkBounds() {
    precondition(places.count <= limit, "invariant: a window holds no more children than its limit")
    assert(places.values.allSatisfy { isInside($0) }, "a window's children lie in its range")
  }

  /// The last child in query order.
  private var last: SortKey? {
    if case .last = query.limit { places.values.min() } else { places.values.max() }
  }

  private func isAfter(_ place: SortKey, _ other: SortKey) -> Bool {
    if case .last = query.limit { place < other } else { other < place }
  }

  // MARK: Undo

  /// The state of a window before changes.
  struct Undo {
    fileprivate var places: [(key: Key, place: SortKey?)] = []
    fileprivate let limitBoundary: SortKey?

    init(_ window: RowWindow) { limitBoundary = window.limitBoundary }
  }

  /// Rolls back changes.
  mutating func rollBack(_ undo: Undo) {
    for (key, place) in undo.places.reversed() { places[key] = place }
    limitBoundary = undo.limitBoundary
  }
}
