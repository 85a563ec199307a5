// Computes and applies range merges. They replace the ranges of a peer's value that differ from this node.

extension Node {
  /// The range merges that turn a peer's value into this node.
  ///
  /// - Parameter hash: the compound hash of the peer's value.
  /// - Returns: nil if sending the complete value is cheaper or necessary. An empty list means that all ranges are
  ///   equal. Even then, the values may differ in a priority that the peer's hash does not cover.
  public func rangeMerges(against hash: CompoundHash) -> [RangeMerge]? {
    var visited = 0
    return rangeMerges(against: hash, visited: &visited)
  }

  /// Computes the same as ``rangeMerges(against:)``, and counts the visited nodes.
  ///
  /// - Parameter visited: incremented by the number of nodes visited to extract the ranges, for tests of the cost.
  func rangeMerges(against hash: CompoundHash, visited: inout Int) -> [RangeMerge]? {
    let differs = differingRanges(hash)
    var merges: [RangeMerge] = []
    var size = 0
    var i = 0
    while i < differs.count {
      guard differs[i] else {
        i += 1
        continue
      }
      let start = i == 0 ? nil : hash.paths[i - 1]
      while i < differs.count, differs[i] { i += 1 }
      let end = i - 1 < hash.paths.count ? hash.paths[i - 1] : nil
      var slice = IntervalSlice(start: start, end: end)
      let updates = slice.extract(self)
      visited += slice.visited
      guard slice.isComplete else { return nil }
      size += updates.estimatedSize
      guard isWorthwhile(size) else { return nil }
      merges.append(RangeMerge(start: start, end: end, updates: updates))
    }
    if !merges.isEmpty {
      var path = Path.root
      var unhashed: [RangeMerge] = []
      addUnhashedPriorities(&unhashed, apartFrom: merges, at: &path)
      for merge in unhashed { size += 2 * (merge.end?.keyBytes ?? 0) + 40 }
      merges = (merges + unhashed).sorted { a, b in
        guard let first = a.start else { return b.start != nil }
        return b.start.map { first < $0 } ?? false
      }
    }
    return isWorthwhile(size) ? merges : nil
  }

  /// Whether sending `size` bytes in ranges costs less than sending the complete value.
  private func isWorthwhile(_ size: Int) -> Bool { size * 10 <= estimatedSize * 9 + 1_000 }

  /// Adds merges that remove priorities which the peer's hash does not cover. Mobile clients do not hash the priority
  /// of an object if none of its keys sorts after `.priority`. Therefore the peer may have a priority where this node
  /// has none. Each added merge has an interval that contains only that priority.
  private func addUnhashedPriorities(
    _ unhashed: inout [RangeMerge], apartFrom merges: [RangeMerge], at path: inout Path
  ) {
    guard case .children = content else { return }
    let priorityPath = path.child(.priority)
    if priority == nil, !merges.replacesValue(at: priorityPath),
      !isPriorityHashed(apartFrom: merges, at: path)
    {
      var start = path
      forEachChildReversed(from: .priority) { key, child in
        start = child.lastPath(from: path.child(key))
        return false
      }
      unhashed.append(RangeMerge(start: start, end: priorityPath, updates: .empty))
    }
    forEachChild { key, child in
      path.keys.append(key)
      child.addUnhashedPriorities(&unhashed, apartFrom: merges, at: &path)
      path.keys.removeLast()
      return true
    }
  }

  /// Whether the peer certainly hashed a priority here, because it has a child that sorts after `.priority`.
  private func isPriorityHashed(apartFrom merges: [RangeMerge], at path: Path) -> Bool {
    var isHashed = false
    forEachChild(from: .priority) { key, child in
      isHashed = !merges.replacesValue(at: child.firstLeaf(from: path.child(key)))
      return !isHashed
    }
    return isHashed
  }

  private func firstLeaf(from path: Path) -> Path {
    var found = path
    forEachChild { key, child in
      found = child.firstLeaf(from: path.child(key))
      return false
    }
    return found
  }

  /// The greatest possible path at or below this node.
  private func lastPath(from path: Path) -> Path {
    var found = path.child(.priority)
    forEachChildReversed { key, child in
      if .priority < key { found = child.lastPath(from: path.child(key)) }
      return false
    }
    return found
  }

  /// Returns for each range of a peer's hash whether this value differs in it.
  private func differingRanges(_ hash: CompoundHash) -> [Bool] {
    var differs = [Bool](repeating: true, count: hash.hashes.count)
    differs[hash.paths.count] = false
    var current = 0
    var rangeText = RangeText()
    walkRanges(
      &rangeText,
      willAdd: { rangeText in
        // The peer's range ends before this leaf, at a leaf that this value does not have. Therefore the range differs.
        while current < hash.paths.count, hash.paths[current] < rangeText.path {
          current += 1
          rangeText.discard()
        }
      },
      { rangeText in
        guard current < hash.paths.count else {
          differs[current] = true
          return false
        }
        if rangeText.lastLeaf == hash.paths[current] {
          differs[current] = !TextOrder.equal(rangeText.endRange(), hash.hashes[current])
          current += 1
        }
        return true
      })
    return differs
  }

  /// The value with one interval replaced.
  public func applying(_ merge: RangeMerge) -> Node {
    var path = Path.root
    return replaced(by: merge.updates, from: merge.start, to: merge.end, at: &path)
  }

  /// Returns this node after the merge. `path` is its location.
  private func replaced(by updates: Node, from start: Path?, to end: Path?, at path: inout Path) -> Node {
    let isAfterStart = start.map { $0 < path } ?? true
    let startsHere = start.map { path.contains($0) } ?? false
    let endsHere = end.map { path.contains($0) } ?? false
    if let end, end < path { return self }
    if isAfterStart, !endsHere { return updates }
    if isAfterStart, updates.isLeaf { return updates }
    // The leaf at the end is inside the interval, its descendants are not.
    if isAfterStart, end == path { return isLeaf ? .empty : self }
    guard startsHere || endsHere else { return self }
    var result = self
    var keys = Set(childKeys)
    keys.formUnion(updates.childKeys)
    for key in keys {
      path.keys.append(key)
      let now = child(key).replaced(by: updates.child(key), from: start, to: end, at: &path)
      path.keys.removeLast()
      result = result.settingChild(key, to: now)
    }
    // The protocol treats a priority as a child, even of a leaf. An interval that starts at a leaf therefore contains
    // its priority.
    guard priority != nil || updates.priority != nil else { return result }
    path.keys.append(.priority)
    let before = priority.map { Node.leaf($0.leafValue) } ?? .empty
    let given = updates.priority.map { Node.leaf($0.leafValue) } ?? .empty
    let now = before.replaced(by: given, from: start, to: end, at: &path)
    path.keys.removeLast()
    return result.with(priority: now.leafValue.flatMap { try? Priority($0) })
  }
}

/// Extracts the part of a value inside one interval. It does not visit nodes outside of the interval. Therefore the
/// total cost of all intervals is proportional to their contents and the paths to their ends.
private struct IntervalSlice {
  private let start: Path?
  private let end: Path?
  private var path = Path.root
  /// False if the interval contains an object's priority but none of its children. A node cannot represent this.
  private(set) var isComplete = true
  /// The number of nodes visited.
  private(set) var visited = 0

  init(start: Path?, end: Path?) {
    self.start = start
    self.end = end
  }

  private func isInside(_ path: Path) -> Bool {
    (start.map { $0 < path } ?? true) && (end.map { path < $0 || path == $0 } ?? true)
  }

  /// The part of a node inside the interval.
  mutating func extract(_ node: Node) -> Node {
    visited += 1
    switch node.content {
    case .empty: return .empty
    case .leaf:
      if isInside(path) { return node }
      // At the start of the interval a leaf's value is outside, but its priority is inside. Only a complete leaf can
      // carry the priority, so the leaf is included.
      return start == path && node.priority != nil ? node : .empty
    case .children:
      // The node lies completely after the start and before the end.
      if start.map({ $0 < path }) ?? true, end.map({ path < $0 && !path.contains($0) }) ?? true {
        return node
      }
      if let start, path < start, !path.contains(start) { return .empty }
      if let end, end < path { return .empty }
      var inside: [(ChildKey, Node)] = []
      node.forEachChild(from: keyBelow(start)) { key, child in
        path.keys.append(key)
        defer { path.keys.removeLast() }
        if let end, end < path { return false }
        inside.append((key, extract(child)))
        return true
      }
      guard let priority = node.priority, isInside(path.child(.priority)) else { return .object(inside) }
      let result = Node.object(inside, priority: priority)
      if result.isEmpty { isComplete = false }
      return result
    }
  }

  /// The child key that leads from the current location to an end of the interval. It is nil if the end is not below
  /// the location.
  private func keyBelow(_ bound: Path?) -> ChildKey? {
    guard let bound, path.count < bound.count, path.contains(bound) else { return nil }
    return bound.keys[path.count]
  }
}

extension [RangeMerge] {
  /// Whether one of these merges, which are sorted, replaces the value at a path.
  fileprivate func replacesValue(at path: Path) -> Bool {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].start.map({ $0 < path }) ?? true { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return false }
    return self[low - 1].end.map { path < $0 || path == $0 } ?? true
  }
}
