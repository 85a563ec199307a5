// Visits the entries of a persistent map in ascending or descending order, from a bound.

extension PersistentMap {
  /// Visits entries in ascending order from the first not before `start`, until `visit` returns false.
  ///
  /// - Returns: false if `visit` ended the iteration.
  @discardableResult
  func forEach(from start: K? = nil, _ visit: (K, V) throws -> Bool) rethrows -> Bool {
    guard let root else { return true }
    return try root.forEach(from: start, visit)
  }

  /// Visits entries in descending order from the last not after `end`, until `visit` returns false.
  ///
  /// - Returns: false if `visit` ended the iteration.
  @discardableResult
  func forEachReversed(from end: K? = nil, _ visit: (K, V) throws -> Bool) rethrows -> Bool {
    guard let root else { return true }
    return try root.forEachReversed(from: end, visit)
  }

  /// The first entry.
  var first: Entry? {
    var found: Entry?
    forEach { key, value in
      found = (key, value)
      return false
    }
    return found
  }

  /// The last entry.
  var last: Entry? {
    var found: Entry?
    forEachReversed { key, value in
      found = (key, value)
      return false
    }
    return found
  }

  /// The number of entries before a key.
  func rank(of key: K) -> Int {
    guard var tree = root else { return 0 }
    var before = 0
    while true {
      switch tree {
      case .leaf(let leaf): return before + PersistentMap.find(key, in: leaf.entries).0
      case .branch(let branch):
        let position = branch.position(of: key)
        for i in 0..<position { before += branch.trees[i].count }
        tree = branch.trees[position]
      }
    }
  }
}

extension PersistentMap.Tree {
  func forEach(from start: K?, _ visit: (K, V) throws -> Bool) rethrows -> Bool {
    switch self {
    case .leaf(let leaf):
      var position = start.map { Map.find($0, in: leaf.entries).0 } ?? 0
      while position < leaf.entries.count {
        guard try visit(leaf.entries[position].key, leaf.entries[position].value) else { return false }
        position += 1
      }
      return true
    case .branch(let branch):
      let first = start.map { branch.position(of: $0) } ?? 0
      for position in first..<branch.trees.count {
        guard try branch.trees[position].forEach(from: position == first ? start : nil, visit) else {
          return false
        }
      }
      return true
    }
  }

  func forEachReversed(from end: K?, _ visit: (K, V) throws -> Bool) rethrows -> Bool {
    switch self {
    case .leaf(let leaf):
      var position = leaf.entries.count - 1
      if let end {
        let (found, exact) = Map.find(end, in: leaf.entries)
        position = exact ? found : found - 1
      }
      while position >= 0 {
        guard try visit(leaf.entries[position].key, leaf.entries[position].value) else { return false }
        position -= 1
      }
      return true
    case .branch(let branch):
      let last = end.map { branch.position(of: $0) } ?? branch.trees.count - 1
      for position in stride(from: last, through: 0, by: -1) {
        guard try branch.trees[position].forEachReversed(from: position == last ? end : nil, visit) else {
          return false
        }
      }
      return true
    }
  }
}
