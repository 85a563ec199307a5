// Reads a node: its children in key order, and the values at paths below it.

extension Node {
  /// The child with a key; empty if there is none.
  public func child(_ key: ChildKey) -> Node { children?[key] ?? .empty }

  /// The value at a relative path. A path that ends in `.priority` gives the priority as a leaf.
  public func descendant(_ path: Path) -> Node {
    var node = self
    for key in path.keys {
      if key.isPriority { return node.priority.map { Node.leaf($0.leafValue) } ?? .empty }
      guard let children = node.children else { return .empty }
      node = children[key] ?? .empty
    }
    return node
  }

  /// Visits the children in ascending key order until `visit` returns false.
  ///
  /// - Parameter start: the visit begins with the first key that is equal or greater; nil for all children.
  /// - Returns: false if `visit` ended the iteration.
  @discardableResult
  public func forEachChild(from start: ChildKey? = nil, _ visit: (ChildKey, Node) throws -> Bool) rethrows
    -> Bool
  {
    guard let children else { return true }
    return try children.forEach(from: start, visit)
  }

  /// Visits the children in descending key order until `visit` returns false.
  @discardableResult
  public func forEachChildReversed(
    from end: ChildKey? = nil, _ visit: (ChildKey, Node) throws -> Bool
  ) rethrows -> Bool {
    guard let children else { return true }
    return try children.forEachReversed(from: end, visit)
  }

  /// The children's keys in key order.
  public var childKeys: [ChildKey] {
    var keys: [ChildKey] = []
    keys.reserveCapacity(childCount)
    forEachChild { key, _ in
      keys.append(key)
      return true
    }
    return keys
  }

  /// Visits every leaf and every priority of an object, with its path relative to this node.
  ///
  /// The priority of a leaf is part of the leaf. The priority of an object is visited before its children, at a path
  /// that ends in `.priority`.
  public func forEachLeaf(_ visit: (Path, Node) throws -> Void) rethrows {
    var path = Path.root
    try visitLeaves(&path, visit)
  }

  private func visitLeaves(_ path: inout Path, _ visit: (Path, Node) throws -> Void) rethrows {
    switch content {
    case .empty: return
    case .leaf: try visit(path, self)
    case .children:
      if let priority {
        path.keys.append(.priority)
        try visit(path, .leaf(priority.leafValue))
        path.keys.removeLast()
      }
      try forEachChild { key, child in
        path.keys.append(key)
        defer { path.keys.removeLast() }
        try child.visitLeaves(&path, visit)
        return true
      }
    }
  }

  /// Whether two values share their storage. True only if they are equal. O(1).
  public func isIdentical(to other: Node) -> Bool {
    switch (storage, other.storage) {
    case (.empty, .empty): true
    case (.leaf(let a), .leaf(let b)): a == b
    case (.prioritizedLeaf(let a), .prioritizedLeaf(let b)): a === b
    case (.object(let a), .object(let b)): a === b
    default: false
    }
  }

  /// The length of the array that this object becomes in plain JSON; nil if it stays an object.
  ///
  /// It becomes an array if every key is a canonical index, and the highest index is below twice the number of children.
  public var arrayLength: Int? {
    guard let children, let last = children.last?.key.arrayIndex, last < 2 * children.count else {
      return nil
    }
    // Integer keys are in numeric order, so the last is the highest.
    let all = children.forEach { key, _ in key.arrayIndex != nil }
    return all ? last + 1 : nil
  }

  /// Visits, in key order, the children that differ between an earlier value and this one. A missing child is empty.
  /// The cost is proportional to the difference if the two values share structure.
  ///
  /// A leaf has no children. The priorities of the two nodes are not compared.
  public func forEachChangedChild(
    from before: Node, _ visit: (ChildKey, _ now: Node, _ before: Node) throws -> Void
  ) rethrows {
    try (children ?? Children()).forEachDifference(from: before.children ?? Children()) { key, now, old in
      if let now, let old, now == old { return true }
      try visit(key, now ?? .empty, old ?? .empty)
      return true
    }
  }
}
