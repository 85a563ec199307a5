// The write index: finds the pending writes at, above and below a location.
//
// Invariant: the index lists a write at exactly the paths that it replaces.

import RealtimeModel

/// The pending writes by the paths that they replace.
struct WriteIndex {
  /// One change of a write.
  struct Entry {
    let id: Int
    /// The position of the change in the write.
    let position: Int
  }

  /// The writes that replace one path. The values are the positions of the changes in their writes.
  struct PathWrites {
    var visible = PendingQueue<Int>()
    var hidden = PendingQueue<Int>()

    var isEmpty: Bool { visible.isEmpty && hidden.isEmpty }
  }

  /// The visible writes at a location and above it, compared with a removed write.
  struct Cover {
    /// The path nearest to the root that a write replaces; nil if no write covers the location.
    var top: Path?
    /// Whether a write above the location is older than the removed one.
    var isOlderAbove = false
    /// Whether a write at the location or above is newer than the removed one.
    var isNewer = false
  }

  private var tree = PathTree<PathWrites>()

  mutating func add(_ record: WriteRecord) {
    for position in 0..<record.changeCount {
      tree.update(record.replacement(at: position).path) { subtree in
        var pathWrites = subtree.value ?? PathWrites()
        // Removes the value from the tree first, so that the queues are not copied when they change.
        subtree.value = nil
        if record.isVisible {
          pathWrites.visible.append(record.id, position)
        } else {
          pathWrites.hidden.append(record.id, position)
        }
        subtree.value = pathWrites
      }
    }
  }

  mutating func remove(_ record: WriteRecord) {
    for position in 0..<record.changeCount {
      tree.update(record.replacement(at: position).path) { subtree in
        guard var pathWrites = subtree.value else { return }
        subtree.value = nil
        _ = record.isVisible ? pathWrites.visible.remove(record.id) : pathWrites.hidden.remove(record.id)
        subtree.value = pathWrites.isEmpty ? nil : pathWrites
      }
    }
  }

  /// The visible writes that cover a location, compared with a write.
  func cover(of path: Path, for id: Int) -> Cover {
    var cover = Cover()
    for (pathWrites, depth) in tree.values(on: path) {
      guard let first = pathWrites.visible.firstID, let last = pathWrites.visible.lastID else { continue }
      if cover.top == nil { cover.top = Path(keys: Array(path.keys[..<depth])) }
      if depth < path.count, first < id { cover.isOlderAbove = true }
      if last > id { cover.isNewer = true }
    }
    return cover
  }

  /// The visible writes at a location and below, in their order.
  func visibleEntries(below path: Path) -> [Entry] {
    var entries: [Entry] = []
    tree.subtree(path).forEachUnordered { pathWrites in
      pathWrites.visible.forEach { id, position in entries.append(Entry(id: id, position: position)) }
    }
    return sorted(entries)
  }

  /// The writes that determine a location's value, including hidden writes, in their order. Writes that a
  /// newer write replaces completely are omitted.
  func entries(for path: Path, excluding excluded: Set<Int>) -> [Entry] {
    var base: Entry?
    for (pathWrites, _) in tree.values(on: path) {
      for queue in [pathWrites.visible, pathWrites.hidden] {
        queue.forEachIDReversed { id in
          guard !excluded.contains(id) else { return true }
          if id > base?.id ?? .min, let position = queue[id] { base = Entry(id: id, position: position) }
          return false
        }
      }
    }
    var entries = base.map { [$0] } ?? []
    let oldest = base?.id ?? .min
    for child in tree.subtree(path).children.values {
      child.forEachUnordered { pathWrites in
        for queue in [pathWrites.visible, pathWrites.hidden] {
          queue.forEach { id, position in
            if id >= oldest, !excluded.contains(id) { entries.append(Entry(id: id, position: position)) }
          }
        }
      }
    }
    return sorted(entries)
  }

  private func sorted(_ entries: [Entry]) -> [Entry] {
    entries.sorted { ($0.id, $0.position) < ($1.id, $1.position) }
  }
}
