// An ordered index of a location's children, updated as the location changes. Reading a query's window (its result) of
// k children costs O(k + log n), updating one child O(log n).
//
// Children without a value in the ordering (no priority, or no such descendant) come first, by their keys. While no
// child has a value, no other storage is needed, because the node itself has its children in key order. Children with a
// value are in a separate map. Therefore adding the first such child, or removing the last, costs no more than any other
// change.

/// A location's value with its children in an ordering.
public struct OrderedIndex: Sendable {
  /// The ordering of the children.
  public let ordering: Ordering
  /// The location's value.
  public private(set) var node: Node
  /// The children without a value in the ordering; nil while no child has a value, because `node` then contains them.
  private(set) var unvalued: Children?
  /// The sort keys of the children with a value in the ordering.
  private(set) var sortKeys = PersistentMap<SortKey, Bool>()

  /// Indexes the children of a value: O(n), plus O(m log m) for the m children with a value in the ordering. O(1) if
  /// the ordering is known to equal key order.
  public init(of node: Node, by ordering: Ordering) {
    self.ordering = ordering
    self.node = node
    if node.isKeyOrder(ordering) { return }
    var unvalued: [Children.Entry] = []
    var others: [SortKey] = []
    node.forEachChild { key, child in
      let sortKey = SortKey(of: key, child, in: ordering)
      if sortKey.value == .null { unvalued.append((key, child)) } else { others.append(sortKey) }
      return true
    }
    if others.isEmpty { return }
    others.sort()
    self.unvalued = Children(sorted: unvalued)
    sortKeys = PersistentMap(sorted: others.map { ($0, true) })
  }

  /// Updates the index for a new value of the location, in which only the children with these keys changed.
  public mutating func update(to now: Node, changed keys: some Sequence<ChildKey>) {
    let before = node
    node = now
    if ordering == .key { return }
    let previous = unvalued
    var unvalued = previous ?? now.children ?? Children()
    for key in keys {
      let (old, new) = (before.child(key), now.child(key))
      let from = old.isEmpty ? nil : SortKey(of: key, old, in: ordering)
      let to = new.isEmpty ? nil : SortKey(of: key, new, in: ordering)
      if to?.value != .null {
        unvalued = unvalued.removing(key).map
      } else if previous != nil {
        unvalued = unvalued.setting(key, to: new).map
      }
      if from == to { continue }
      if let from, from.value != .null { sortKeys = sortKeys.removing(from).map }
      if let to, to.value != .null { sortKeys = sortKeys.setting(to, to: true).map }
    }
    self.unvalued = sortKeys.isEmpty ? nil : unvalued
  }

  /// Visits the children in a query's range, in order or in reverse order, until `visit` returns false.
  ///
  /// - Parameter from: a sort key inside the range. The visit begins at it instead of at the end of the range.
  public func forEach(
    in query: QuerySpec, from: SortKey? = nil, reverse: Bool, _ visit: (SortKey, Node) -> Bool
  ) {
    let range = QueryRange(query)
    func inspect(_ sortKey: SortKey, _ child: Node) -> Bool {
      if reverse {
        if !range.isBeforeEnd(sortKey) { return true }
        return range.isAfterStart(sortKey) && visit(sortKey, child)
      }
      if !range.isAfterStart(sortKey) { return true }
      return range.isBeforeEnd(sortKey) && visit(sortKey, child)
    }
    func step(_ sortKey: SortKey, _: Bool) -> Bool { inspect(sortKey, node.child(sortKey.key)) }
    func stepUnvalued(_ key: ChildKey, _ child: Node) -> Bool {
      inspect(SortKey(value: .null, key: key), child)
    }
    let unvalued = unvalued ?? node.children ?? Children()
    let bound = from ?? (reverse ? query.endSortKey : query.startSortKey)
    let unvaluedBound = bound.flatMap { $0.value == .null ? $0.key : nil }
    if reverse {
      // Skips the children with a value if the bound has none, because they sort after such a bound.
      if unvaluedBound == nil, !sortKeys.forEachReversed(from: bound, step) { return }
      unvalued.forEachReversed(from: unvaluedBound, stepUnvalued)
    } else {
      if bound == nil || unvaluedBound != nil, !unvalued.forEach(from: unvaluedBound, stepUnvalued) { return }
      sortKeys.forEach(from: bound, step)
    }
  }

  /// The children in a query's window, and the window's edge.
  ///
  /// - Returns: the window as a value without priority, and its edge. If the limit is reached, the edge is the sort key
  ///   of the last child that the limit admits. That child leaves the window when another enters. Otherwise the edge is
  ///   nil.
  public func window(_ query: QuerySpec) -> (content: Node, edge: SortKey?) {
    var entries: [(ChildKey, Node)] = []
    var edge: SortKey?
    let limit = query.limit?.count ?? .max
    var reverse = false
    if case .last = query.limit { reverse = true }
    forEach(in: query, reverse: reverse) { sortKey, child in
      entries.append((sortKey.key, child))
      edge = sortKey
      return entries.count < limit
    }
    precondition(entries.count <= max(limit, 1), "invariant: a window holds at most its limit")
    precondition(edge.map(query.contains) ?? true, "invariant: the edge of a window is inside the bounds")
    return (.object(entries), entries.count < limit ? nil : edge)
  }
}

extension Node {
  /// The result of a query on this location. A query without bounds and limit gives the location's value. Other queries
  /// give an object of the selected children, without the location's priority. A leaf has no children.
  public func window(_ query: QuerySpec) -> Node {
    if query.showsAll { return self }
    if isKeyOrder(query.ordering) || query.limit != nil {
      return OrderedIndex(of: self, by: query.ordering).window(query).content
    }
    let range = QueryRange(query)
    var entries: [(ChildKey, Node)] = []
    forEachChild { key, child in
      if range.contains(SortKey(of: key, child, in: query.ordering)) { entries.append((key, child)) }
      return true
    }
    return .object(entries)
  }
}
