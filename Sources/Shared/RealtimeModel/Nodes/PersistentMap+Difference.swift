// Finds the difference of two versions of a map. It skips the parts that both share, so that the cost is proportional to
// the difference.

extension PersistentMap {
  /// Visits the entries that may differ, in ascending order, until `visit` returns false. These are the entries whose
  /// key is in only one map, and all entries outside of shared parts. An entry of the second kind may have equal values
  /// in both maps.
  ///
  /// - Returns: false if `visit` ended the iteration.
  @discardableResult
  func forEachDifference(
    from before: PersistentMap, _ visit: (_ key: K, _ now: V?, _ before: V?) throws -> Bool
  ) rethrows -> Bool {
    var a = DifferenceCursor(root)
    var b = DifferenceCursor(before.root)
    while true {
      switch (a.top, b.top) {
      case (nil, nil): return true
      case (.tree(let x)?, .tree(let y)?):
        if x.isIdentical(to: y) {
          a.pop()
          b.pop()
        } else {
          let (xCount, yCount) = (x.count, y.count)
          if xCount >= yCount { a.expand() }
          if yCount >= xCount { b.expand() }
        }
      case (.tree?, _): a.expand()
      case (_, .tree?): b.expand()
      case (.rest(let x, let i)?, .rest(let y, let j)?):
        let (mine, theirs) = (x.entries[i], y.entries[j])
        let order = mine.key.order(against: theirs.key)
        if order == 0 {
          guard try visit(mine.key, mine.value, theirs.value) else { return false }
          a.advance()
          b.advance()
        } else if order < 0 {
          guard try visit(mine.key, mine.value, nil) else { return false }
          a.advance()
        } else {
          guard try visit(theirs.key, nil, theirs.value) else { return false }
          b.advance()
        }
      case (.rest(let x, let i)?, nil):
        guard try visit(x.entries[i].key, x.entries[i].value, nil) else { return false }
        a.advance()
      case (nil, .rest(let y, let j)?):
        guard try visit(y.entries[j].key, nil, y.entries[j].value) else { return false }
        b.advance()
      }
    }
  }

  /// The unvisited parts of one map, as a stack with the next part on top.
  private struct DifferenceCursor {
    enum Part {
      /// A complete subtree.
      case tree(Tree)
      /// The entries of a leaf from an index on.
      case rest(Leaf, Int)
    }

    private var parts: [Part] = []

    init(_ root: Tree?) {
      if let root { parts.append(.tree(root)) }
    }

    var top: Part? { parts.last }

    mutating func pop() { parts.removeLast() }

    /// Replaces the tree on top of the stack by its parts.
    mutating func expand() {
      guard case .tree(let tree)? = parts.popLast() else { return }
      switch tree {
      case .leaf(let leaf): parts.append(.rest(leaf, 0))
      case .branch(let branch): for part in branch.trees.reversed() { parts.append(.tree(part)) }
      }
    }

    mutating func advance() {
      guard case .rest(let leaf, let position)? = parts.popLast() else { return }
      if position + 1 < leaf.entries.count { parts.append(.rest(leaf, position + 1)) }
    }
  }
}

extension PersistentMap.Tree {
  func isIdentical(to other: Map.Tree) -> Bool {
    switch (self, other) {
    case (.leaf(let a), .leaf(let b)): a === b
    case (.branch(let a), .branch(let b)): a === b
    default: false
    }
  }
}
