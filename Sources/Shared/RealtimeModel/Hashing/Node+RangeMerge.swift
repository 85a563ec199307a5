// Applying a range merge: what lies inside the interval is replaced by what the merge holds.

extension Node {
  /// The value with one interval replaced.
  public func applying(_ merge: RangeMerge) -> Node {
    var path = Path.root
    return replaced(by: merge.updates, from: merge.start, to: merge.end, at: &path)
  }

  /// The part of a merge at `path`, which is where this node lies.
  private func replaced(by updates: Node, from start: Path?, to end: Path?, at path: inout Path) -> Node {
    let startsAfter = start.map { path < $0 || path == $0 } ?? false
    let endsBefore = end.map { $0 < path } ?? false
    if endsBefore { return self }
    let startLiesInside = start.map { path.contains($0) } ?? false
    let endLiesInside = end.map { path.contains($0) } ?? false
    // The whole location lies behind the start and before the end.
    if !startsAfter, !endLiesInside { return updates }
    if !startLiesInside, startsAfter { return self }
    // From here on an edge lies at this location or below it. A leaf at the end's own path is inside, descendants are not.
    if case .leaf = updates.content, !startsAfter { return updates }
    var result = self
    if isLeaf {
      if !startsAfter { result = .empty } else if updates.isEmpty { return self }
    }
    var keys = Set(childKeys)
    keys.formUnion(updates.childKeys)
    for key in keys.sorted() {
      path.keys.append(key)
      let now = child(key).replaced(by: updates.child(key), from: start, to: end, at: &path)
      path.keys.removeLast()
      result = result.settingChild(key, to: now)
    }
    path.keys.append(.priority)
    let priorityIsInside = (start.map { $0 < path } ?? true) && (end.map { path < $0 || path == $0 } ?? true)
    path.keys.removeLast()
    if updates.priority != nil { return result.with(priority: updates.priority) }
    return priorityIsInside ? result.with(priority: nil) : result
  }
}
