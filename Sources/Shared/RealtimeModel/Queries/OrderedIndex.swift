// The children of a location in an order, kept up to date as the location changes: a window of k children costs
// O(k + log n), a changed child O(log n).

/// A location's value with its children in an order.
public struct OrderedIndex: Sendable {
  /// What the children are ordered by.
  public let ordering: Ordering
  /// The location's value.
  public private(set) var node: Node
  /// The children's places; nil as long as the order is that of their keys, which the node itself has.
  private var places: PersistentMap<OrderingPlace, Bool>?

  /// Orders the children of a value. O(n log n), or O(1) where the order is that of the keys.
  public init(of node: Node, by ordering: Ordering) {
    self.ordering = ordering
    self.node = node
    build()
  }

  private mutating func build() {
    guard !node.isKeyOrder(ordering) else {
      places = nil
      return
    }
    places = PersistentMap(
      sorted: node.sortedChildren(by: ordering).map {
        (OrderingPlace(of: $0.key, $0.node, in: ordering), true)
      })
  }

  /// Follows a change of the value in which only these children changed.
  public mutating func update(to now: Node, changed keys: some Sequence<Key>) {
    let before = node
    node = now
    guard var places else {
      if !now.isKeyOrder(ordering) { build() }
      return
    }
    for key in keys {
      let (old, new) = (before.child(key), now.child(key))
      let from = old.isEmpty ? nil : OrderingPlace(of: key, old, in: ordering)
      let to = new.isEmpty ? nil : OrderingPlace(of: key, new, in: ordering)
      if from == to { continue }
      if let from { places = places.removing(from).map }
      if let to { places = places.setting(to, to: true).map }
    }
    self.places = places
  }

  /// Visits the children of a query's range in order, from its first or from its last, until `visit` returns false.
  ///
  /// - Parameter from: a place inside the range from which to begin instead, itself included.
  public func forEach(
    in query: QuerySpec, from: OrderingPlace? = nil, reverse: Bool, _ visit: (OrderingPlace, Node) -> Bool
  ) {
    let range = QueryRange(query)
    func inspect(_ place: OrderingPlace, _ child: Node) -> Bool {
      if reverse {
        if !range.isBeforeEnd(place) { return true }
        return range.isAfterStart(place) && visit(place, child)
      }
      if !range.isAfterStart(place) { return true }
      return range.isBeforeEnd(place) && visit(place, child)
    }
    if let places {
      func step(_ place: OrderingPlace, _: Bool) -> Bool { inspect(place, node.child(place.key)) }
      if reverse {
        places.forEachReversed(from: from ?? query.endPlace, step)
      } else {
        places.forEach(from: from ?? query.startPlace, step)
      }
    } else {
      // All places have the same value here, null: a bound on another value lies wholly before or after all of them.
      func step(_ key: Key, _ child: Node) -> Bool { inspect(OrderingPlace(value: .null, key: key), child) }
      if reverse {
        let end = (from ?? query.endPlace).flatMap { $0.value == .null ? $0.key : nil }
        node.forEachChildReversed(from: end, step)
      } else {
        let start = (from ?? query.startPlace).flatMap { $0.value == .null ? $0.key : nil }
        node.forEachChild(from: start, step)
      }
    }
  }

  /// The children a query shows, and the place of the one that a better one would push out.
  ///
  /// - Returns: the window as a value without priority, and for a query whose limit is reached the place of the child
  ///   farthest from the side the limit counts from.
  public func window(_ query: QuerySpec) -> (content: Node, edge: OrderingPlace?) {
    var entries: [(Key, Node)] = []
    var edge: OrderingPlace?
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
    var entries: [(Key, Node)] = []
    forEachChild { key, child in
      if range.contains(OrderingPlace(of: key, child, in: query.ordering)) { entries.append((key, child)) }
      return true
    }
    return .object(entries)
  }
}
