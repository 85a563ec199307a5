// The write tree: all unacknowledged writes, in their order.
//
// Invariant: `visible` is the overlay of the visible records in that order.

import RealtimeModel

/// One write that waits for its acknowledgement.
struct WriteRecord {
  enum Change {
    case overwrite(Node)
    case merge([(Path, Node)])
  }

  let id: Int
  let path: Path
  let change: Change
  /// Whether observers see it before the server answers; false for transactions without local events.
  let isVisible: Bool

  /// Whether the write determines the whole value at a path.
  func determines(_ other: Path) -> Bool {
    switch change {
    case .overwrite: path.contains(other)
    case .merge(let changes): changes.contains { path.appending($0.0).contains(other) }
    }
  }

  /// Whether the write and another location can touch the same data.
  func overlaps(_ other: WriteRecord) -> Bool {
    path.contains(other.path) || other.path.contains(path)
  }

  /// Lays the part of the write that concerns a location over an overlay of that location.
  func lay(over overlay: inout WriteOverlay, of root: Path) {
    switch change {
    case .overwrite(let node):
      if let relative = path.relative(to: root) {
        overlay.write(node, at: relative)
      } else if let below = root.relative(to: path) {
        overlay.write(node.descendant(below), at: .root)
      }
    case .merge(let changes):
      for (relative, node) in changes {
        WriteRecord(id: id, path: path.appending(relative), change: .overwrite(node), isVisible: isVisible)
          .lay(over: &overlay, of: root)
      }
    }
  }
}

/// The writes that wait for their acknowledgement.
struct WriteTree {
  private(set) var records: [WriteRecord] = []
  private var visible = WriteOverlay()

  /// Adds a write made after all others.
  mutating func add(_ record: WriteRecord) {
    records.append(record)
    if record.isVisible { record.lay(over: &visible, of: .root) }
  }

  /// Takes a write out.
  ///
  /// - Returns: the write, and whether observers may see a difference; nil if it was not there.
  mutating func remove(_ id: Int) -> (record: WriteRecord, mayBeSeen: Bool)? {
    guard let index = records.firstIndex(where: { $0.id == id }) else { return nil }
    let record = records.remove(at: index)
    guard record.isVisible else { return (record, false) }
    let hidden = records[index...].contains { $0.isVisible && $0.determines(record.path) }
    if records.contains(where: { $0.isVisible && $0.overlaps(record) }) {
      visible = WriteOverlay()
      for other in records where other.isVisible { other.lay(over: &visible, of: .root) }
    } else {
      switch record.change {
      case .overwrite: visible.forget(record.path)
      case .merge(let changes):
        for (relative, _) in changes { visible.forget(record.path.appending(relative)) }
      }
    }
    return (record, !hidden)
  }

  /// Takes every write out, for purging.
  mutating func removeAll() -> [WriteRecord] {
    defer { self = WriteTree() }
    return records
  }

  /// The whole value at a path, if visible writes alone determine it.
  func shadow(at path: Path) -> Node? {
    visible.completeNode(at: path)
  }

  /// The visible writes at a location and below.
  func overlay(at path: Path) -> WriteOverlay {
    visible.overlay(at: path)
  }

  /// The whole value at a path with visible writes laid over the server's; nil if neither the server
  /// nor writes determine it.
  func completeNode(at path: Path, over server: Node?) -> Node? {
    let overlay = visible.overlay(at: path)
    if let node = overlay.completeNode(at: .root) { return node }
    return server.map { overlay.applied(to: $0) }
  }

  /// The value that a transaction works on: hidden writes included, some writes left out.
  func transactionNode(at path: Path, over server: Node?, excluding excluded: Set<Int>) -> Node {
    var overlay = WriteOverlay()
    for record in records where !excluded.contains(record.id) {
      record.lay(over: &overlay, of: path)
    }
    return overlay.applied(to: server ?? .empty)
  }

  /// The children of a location that are known whole, from known server children and from writes.
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

  /// A child's whole value; nil if it is not known whole.
  func completeChild(_ key: ChildKey, at path: Path, over server: CacheNode) -> Node? {
    let childPath = path.child(key)
    if let node = visible.completeNode(at: childPath) { return node }
    guard server.isComplete(forChild: key) else { return nil }
    return visible.overlay(at: childPath).applied(to: server.node.child(key))
  }

  /// The visible value at a path after the server's data changed there; nil if a write hides it.
  func eventNode(afterServerChangeAt path: Path, to server: Node) -> Node? {
    let overlay = visible.overlay(at: path)
    return overlay.completeNode(at: .root) == nil ? overlay.applied(to: server) : nil
  }
}

/// The writes as one location sees them.
struct WriteTreeReference {
  let writes: WriteTree
  let path: Path

  func shadow(at relative: Path) -> Node? { writes.shadow(at: path.appending(relative)) }

  func completeNode(over server: Node?) -> Node? { writes.completeNode(at: path, over: server) }

  func completeChildren(over server: Node) -> Node { writes.completeChildren(at: path, over: server) }

  func completeChild(_ key: ChildKey, over server: CacheNode) -> Node? {
    writes.completeChild(key, at: path, over: server)
  }

  func eventNode(afterServerChangeAt relative: Path, to server: Node) -> Node? {
    writes.eventNode(afterServerChangeAt: path.appending(relative), to: server)
  }
}
