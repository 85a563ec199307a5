// The orderings of an object's children: by priority, by key, by value, or by a descendant. Keys break ties.

/// The ordering of a location's children.
public enum Ordering: Sendable, Hashable {
  /// By priority: the default order.
  case priority
  /// By key.
  case key
  /// By the child's own value.
  case value
  /// By the value at this path relative to the child.
  case child(Path)

  /// Parses an ordering from the wire: `.priority`, `.key`, `.value`, or a child path.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` for a bad path.
  public init(wire text: String) throws(RealtimeError) {
    switch text {
    case ".priority", "": self = .priority
    case ".key": self = .key
    case ".value": self = .value
    default:
      let path = try Path(validating: text)
      guard !path.isRoot else { throw .invalidPath }
      self = .child(path)
    }
  }

  /// The ordering on the wire.
  public var wireText: String {
    switch self {
    case .priority: ".priority"
    case .key: ".key"
    case .value: ".value"
    case .child(let path): path.description
    }
  }

  /// The value by which a child is ordered. Children with equal values are ordered by key.
  public func value(of child: Node) -> OrderingValue {
    switch self {
    case .priority: child.priority.map { .leaf($0.leafValue) } ?? .null
    case .key: .null
    case .value: OrderingValue(child)
    case .child(let path): OrderingValue(child.descendant(path))
    }
  }
}

/// A value in an ordering: null, then leaves (false, true, numbers, strings), then objects. All objects are equal.
public enum OrderingValue: Sendable, Hashable, Comparable {
  /// No value.
  case null
  /// A leaf.
  case leaf(LeafValue)
  /// An object.
  case object

  /// The value of a node in an ordering.
  public init(_ node: Node) {
    switch node.content {
    case .empty: self = .null
    case .leaf(let value): self = .leaf(value)
    case .children: self = .object
    }
  }

  /// The order of values.
  public static func < (a: OrderingValue, b: OrderingValue) -> Bool { a.order(against: b) < 0 }
}

extension OrderingValue: TotallyOrdered {
  func order(against other: OrderingValue) -> Int {
    switch (self, other) {
    case (.leaf(let x), .leaf(let y)): x.order(against: y)
    default: rank - other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null: 0
    case .leaf: 1
    case .object: 2
    }
  }
}

/// The sort key of a child: the value by which it is ordered, then its key.
public struct SortKey: Sendable, Hashable, Comparable {
  /// The value by which the child is ordered.
  public var value: OrderingValue
  /// The child's key.
  public var key: ChildKey

  /// Creates a sort key.
  public init(value: OrderingValue, key: ChildKey) {
    self.value = value
    self.key = key
  }

  /// The sort key of a child.
  public init(of key: ChildKey, _ child: Node, in ordering: Ordering) {
    self.init(value: ordering.value(of: child), key: key)
  }

  /// By value, then by key.
  public static func < (a: SortKey, b: SortKey) -> Bool { a.order(against: b) < 0 }
}

extension SortKey: TotallyOrdered {
  func order(against other: SortKey) -> Int {
    let order = value.order(against: other.value)
    return order != 0 ? order : key.order(against: other.key)
  }
}

extension Node {
  /// The children in an ordering. O(n) if it is key order, else O(n log n).
  public func sortedChildren(by ordering: Ordering) -> [(key: ChildKey, node: Node)] {
    var entries: [(key: ChildKey, node: Node)] = []
    entries.reserveCapacity(childCount)
    forEachChild { key, node in
      entries.append((key, node))
      return true
    }
    if isKeyOrder(ordering) { return entries }
    let orderingValues = entries.map { ordering.value(of: $0.node) }
    // Keys break ties, and the entries are in key order.
    return entries.indices.sorted { a, b in
      let order = orderingValues[a].order(against: orderingValues[b])
      return order != 0 ? order < 0 : a < b
    }.map { entries[$0] }
  }

  /// Whether an ordering of the children equals key order.
  public func isKeyOrder(_ ordering: Ordering) -> Bool {
    switch ordering {
    case .key: return true
    case .priority:
      guard case .object(let object) = storage else { return true }
      return object.prioritizedCount == 0
    case .value, .child: return false
    }
  }
}
