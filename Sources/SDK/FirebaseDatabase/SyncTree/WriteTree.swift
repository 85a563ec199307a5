// The write tree: all unacknowledged writes, in their order.
//
// The cost of adding or removing a write depends on its changes and on the pending writes below them, not on
// the number of other writes. Removing a write that newer writes cover does not change the overlay. Otherwise
// the overlay is computed again only for the location that the write replaced.
//
// Invariant: `visible` is the overlay of the visible records in their order.

import RealtimeModel

/// The writes that wait for their acknowledgement.
struct WriteTree {
  private var queue = PendingQueue<WriteRecord>()
  private var index = WriteIndex()
  private var hiddenCount = 0
  private var visible = WriteOverlay()
  /// Counts the changes that were applied to an overlay, so that tests can check the cost.
  let cost = StepCounter()

  /// The writes in their order.
  var records: [WriteRecord] { queue.values }

  /// The location of a write.
  func path(of id: Int) -> Path? { queue[id]?.path }

  /// The pending write with an identifier.
  func record(_ id: Int) -> WriteRecord? { queue[id] }

  /// Adds a write that was made after all others.
  mutating func add(_ record: WriteRecord) {
    queue.append(record.id, record)
    index.add(record)
    guard record.isVisible else {
      hiddenCount += 1
      return
    }
    for (path, node) in record.replacements {
      visible.write(node, at: path)
      cost.steps += 1
    }
  }

  /// Removes a write.
  ///
  /// - Returns: the write, and whether observers may see a difference; nil if the tree does not contain the
  ///   write.
  mutating func remove(_ id: Int) -> (record: WriteRecord, mayBeSeen: Bool)? {
    guard let record = queue.remove(id) else { return nil }
    index.remove(record)
    guard record.isVisible else {
      hiddenCount -= 1
      return (record, false)
    }
    for (path, _) in record.replacements { removeFromOverlay(path, id) }
    return (record, !index.cover(of: record.path, for: id).isNewer)
  }

  /// Removes the effect of a write on a location from the overlay. The index must no longer list the write.
  private mutating func removeFromOverlay(_ path: Path, _ id: Int) {
    cost.steps += 1
    let cover = index.cover(of: path, for: id)
    // If a newer write has replaced the location, the overlay stays as it is. If an older write is above the
    // location, the overlay is computed again from that write's path: a child written below a leaf replaced
    // that leaf.
    if cover.isNewer, !cover.isOlderAbove { return }
    let top = cover.top ?? path
    visible.clear(top)
    for entry in index.visibleEntries(below: top) {
      guard let (path, node) = queue[entry.id]?.replacement(at: entry.position) else { continue }
      visible.write(node, at: path)
      cost.steps += 1
    }
  }

  /// Removes every write, for purging.
  mutating func removeAll() -> [WriteRecord] {
    defer { self = WriteTree() }
    return records
  }

  /// The complete value at a path, if visible writes alone determine it.
  func shadowingWrite(at path: Path) -> Node? {
    visible.completeNode(at: path)
  }

  /// The visible writes at a location and below.
  func overlay(at path: Path) -> WriteOverlay {
    visible.overlay(at: path)
  }

  /// The complete value at a path: the visible writes applied to the server's value. Nil if neither the
  /// server nor writes determine it.
  func completeNode(at path: Path, over server: Node?) -> Node? {
    let overlay = visible.overlay(at: path)
    if let node = overlay.completeNode(at: .root) { return node }
    return server.map { overlay.applied(to: $0) }
  }

  /// The input of a transaction: includes hidden writes, and omits the excluded writes.
  func transactionNode(at path: Path, over server: Node?, excluding excluded: Set<Int>) -> Node {
    if hiddenCount == 0, excluded.isEmpty { return visible.overlay(at: path).applied(to: server ?? .empty) }
    var overlay = WriteOverlay()
    for entry in index.entries(for: path, excluding: excluded) {
      guard let (location, node) = queue[entry.id]?.replacement(at: entry.position) else { continue }
      cost.steps += 1
      if let relative = location.relative(to: path) {
        overlay.write(node, at: relative)
      } else if let below = path.relative(to: location) {
        overlay.write(node.descendant(below), at: .root)
      }
    }
    return overlay.applied(to: server ?? .empty)
  }

  /// The children of a location that are known completely, from known children of the server and from writes.
  func completeChildren(at path: Path, over server: Node) -> Node {
    let overlay = visible.overlay(at: path)
    if let node = overlay.completeNode(at: .root) {
      return node.isLeaf ? .empty : node.with(priority: nil)
    }
    var result = Node.empty
    if case .children = server.content {
      result = server.with(priority: nil)
      server.forEachChild { key, child in
        let part = overlay.overlay(at: Path(keys: [key]))
        if !part.isEmpty { result = result.settingChild(key, to: part.applied(to: child)) }
        return true
      }
    }
    for (key, child) in overlay.completeChildren where !key.isPriority {
      result = result.settingChild(key, to: child)
    }
    return result
  }

  /// A child's complete value; nil if it is not known completely.
  func completeChild(_ key: ChildKey, at path: Path, over server: CacheNode) -> Node? {
    let childPath = path.child(key)
    if let node = visible.completeNode(at: childPath) { return node }
    guard server.isComplete(forChild: key) else { return nil }
    return visible.overlay(at: childPath).applied(to: server.node.child(key))
  }

  /// The value that observers see at a path after the server's data changed there; nil if a write hides the
  /// change.
  func eventNode(afterServerChangeAt path: Path, to server: Node) -> Node? {
    let overlay = visible.overlay(at: path)
    return overlay.completeNode(at: .root) == nil ? overlay.applied(to: server) : nil
  }
}

/// Counts steps, so that tests can compare costs without a clock.
final class StepCounter {
  var steps = 0
}

/// The write tree with paths relative to one location.
struct WriteTreeReference {
  let writes: WriteTree
  let path: Path

  func shadowingWrite(at relative: Path) -> Node? { writes.shadowingWrite(at: path.appending(relative)) }

  func completeNode(over server: Node?) -> Node? { writes.completeNode(at: path, over: server) }

  func completeChildren(over server: Node) -> Node { writes.completeChildren(at: path, over: server) }

  func completeChild(_ key: ChildKey, over server: CacheNode) -> Node? {
    writes.completeChild(key, at: path, over: server)
  }

  func eventNode(afterServerChangeAt relative: Path, to server: Node) -> Node? {
    writes.eventNode(afterServerChangeAt: path.appending(relative), to: server)
  }
}
