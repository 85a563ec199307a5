// The children of a location in an order, kept up to date as the location changes: a window of k children costs
// O(k + log n), a changed child O(log n).
//
// Children without a value in the order (without a priority, or without the descendant) come first, by their keys. As long
// as that is all of them the node itself has them in order; the others are kept apart, so that the first of them, and the
// last that goes, cost no more than any.

/// A location's value with its children in an order.
public struct OrderedIndex: Sendable {
  /// What the children are ordered by.
  public let ordering: Ordering
  /// The location's value.
  public private(set) var node: Node
  /// The children without a value in the order; nil as long as those are all.
  private(set) var plain: Children?
  /// The places of the others.
  private(set) var places = PersistentMap<SortKey, Bool>()

  /// Orders the children of a value. O(n), and O(m log m) for those that have a value in the order; O(1) where the order
  /// is known to be that of the keys.
  public init(of node: Node, by ordering: Ordering) {
    self.ordering = ordering
    self.node = node
    if node.isKeyOrder(ordering) { return }
    var plain: [Children.Entry] = []
    var others: [SortKey] = []
    node.forEachChild { key, child in
      let place = SortKey(of: key, child, in: ordering)
      if place.value == .null { plain.append((key, child)) } else { others.append(place) }
      return true
    }
    if others.isEmpty { return }
    others.sort()
    self.plain = Children(sorted: plain)
    places = PersistentMap(sorted: others.map { ($0, true) })
  }

  /// Follows a change of the value in which only these children changed.
  public mutating func update(to now: Node, changed keys: some Sequence<ChildKey>) {
    let before = node
    node = now
    if ordering == .key { return }
    let known = plain
    var plain = known ?? now.children ?? Children()
    for key in keys {
      let (old, new) = (before.child(key), now.child(key))
      let from = old.isEmpty ? nil : SortKey(of: key, old, in: ordering)
      let to = new.isEmpty ? nil : SortKey(of: key, new, in: ordering)
      if to?.value != .null {
        plain = plain.removing(key).map
      } else if known != nil {
        plain = plain.setting(key, to: new).map
      }
      if from == to { continue }
      if let from, from.value != .null { places = places.removing(from).map }
      if let to, to.value != .null { places = places.setting(to, to: true).map }
    }
    self.plain = places.isEmpty ? nil : plain
  }

  /// Visits the children of a query's range in order, from its first or from its last, until `visit` returns false.
  ///
  /// - Parameter from: a place inside the range from which to begin instead, itself included.
  public func forEach(
    in query: QuerySpec, from: SortKey? = nil, reverse: Bool, _ visit: (SortKey, Node) -> Bool
  ) {
    let range = QueryRange(query)
    func inspect(_ place: SortKey, _ child: Node) -> Bool {
      if reverse {
        if !range.isBeforeEnd(place) { return true }
        return range.isAfterStart(place) && visit(place, child)
      }
      if !range.isAfterStart(place) { return true }
      return range.isBeforeEnd(place) && visit(place, child)
    }
    func step(_ place: SortKey, _: Bool) -> Bool { inspect(place, node.child(place.key)) }
    func stepPlain(_ key: ChildKey, _ child: Node) -> Bool {
      inspect(SortKey(value: .null, key: key), child)
    }
    let plain = plain ?? node.children ?? Children()
    let bound = from ?? (reverse ? query.endSortKey : query.startSortKey)
    let plainBound = bound.flatMap { $0.value == .null ? $0.key : nil }
    if reverse {
      // Whatever has a value stands behind a bound without one.
      if plainBound == nil, !places.forEachReversed(from: bound, step) { return }
      plain.forEachReversed(from: plainBound, stepPlain)
    } else {
      if bound == nil || plainBound != nil, !plain.forEach(from: plainBound, stepPlain) { return }
      places.forEach(from: bound, step)
    }
  }

  /// The children a query shows, and the place of the one that a better one would push out.
  ///
  /// - Returns: the window as a value without priority, and for a query whose limit is reached the place of the child
  ///   farthest from the side the limit counts from.
  public func window(_ query: QuerySpec) -> (content: Node, edge: SortKey?) {
    var entries: [(ChildKey, Node)] = []
    var edge: SortKey?
    let limit = query.limit?.count ?? .max
    var reverse = false
    if case .last = query.limit { reverse = true }
    forEach(in: query, reverse: reverse) { place, child in
      entries.append((place.key, child))
      edge = place
      return entries.count < limit
    }
    return (.object(entries), entries.count < limit ? nil : edge)
  }
}

extension Node {
  /// What a query on this location shows: all of it for the default query, else an object of the children in the
  /// query's window, without the location's own priority. A leaf has no children to show.
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
