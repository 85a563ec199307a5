// The view processor: applies operations to the caches of a view.
//
// Invariant: the event cache is the server cache with the visible pending writes applied, restricted to
// complete data and to the query's window. A change that a pending write hides does not change the event
// cache.

import RealtimeModel

/// Applies operations to the caches of a view, and records the changes.
struct ViewProcessor {
  let filter: ViewFilter
  let writes: WriteTreeReference
  /// The server's complete data at the location from a view above, if known.
  let completeServerNode: Node?

  private(set) var cache: ViewCache
  private(set) var changes = ChangeAccumulator()

  init(filter: ViewFilter, writes: WriteTreeReference, completeServerNode: Node?, cache: ViewCache) {
    self.filter = filter
    self.writes = writes
    self.completeServerNode = completeServerNode
    self.cache = cache
  }

  /// Applies an operation to the caches and records the changes.
  mutating func apply(_ operation: SyncOperation) {
    switch (operation.source, operation.change) {
    case (.user, .overwrite(let node)):
      applyUserOverwrite(at: operation.path, node)
    case (.user, .merge(let tree)):
      applyUserMerge(at: operation.path, tree)
    case (let source, .overwrite(let node)):
      let filters = source != .server || (cache.server.isFiltered && !operation.path.isRoot)
      applyServerOverwrite(at: operation.path, node, filters: filters)
    case (let source, .merge(let tree)):
      let filters = source != .server || cache.server.isFiltered
      applyServerMerge(at: operation.path, tree, filters: filters)
    case (_, .acknowledge(let affected, let isRevert)):
      if isRevert { revert(at: operation.path) } else { acknowledge(at: operation.path, affected) }
    case (_, .listenComplete):
      let server = cache.server
      cache = cache.withServer(
        server.node, isComplete: server.isComplete || operation.path.isRoot, isFiltered: server.isFiltered)
      updateEventCache(afterServerChangeAt: operation.path, source: NoChildSource())
    }
  }

  // MARK: The server's changes

  private mutating func applyServerOverwrite(at path: Path, _ node: Node, filters: Bool) {
    let server = cache.server
    let serverFilter = filters ? filter : filter.unfiltered
    var ignored = ChangeAccumulator()
    let new: Node
    if let key = path.first {
      if serverFilter.filtersNodes, !server.isFiltered {
        new = serverFilter.replacing(server.node, with: server.node.setting(path, to: node), &ignored)
      } else if !server.isComplete(at: path), path.count > 1 {
        // The data belongs to a listen below this view. This view does not know the other data of the child.
        return
      } else if key.isPriority {
        new = serverFilter.replacingPriority(of: server.node, with: node)
      } else {
        let child = server.node.child(key).setting(path.droppingFirst, to: node)
        new = serverFilter.replacing(key, in: server.node, with: child, from: NoChildSource(), &ignored)
      }
    } else {
      new = serverFilter.replacing(server.node, with: node, &ignored)
    }
    cache = cache.withServer(
      new, isComplete: server.isComplete || path.isRoot, isFiltered: serverFilter.filtersNodes)
    updateEventCache(afterServerChangeAt: path, source: source)
  }

  private mutating func applyServerMerge(at path: Path, _ tree: PathTree<Node>, filters: Bool) {
    // This view has no data yet. The merge belongs to an earlier listen, and the complete value will follow.
    if cache.server.node.isEmpty, !cache.server.isComplete { return }
    var merge = tree
    if !path.isRoot {
      merge = PathTree()
      merge.replaceSubtree(path, with: tree)
    }
    if let whole = merge.value { return applyServerOverwrite(at: .root, whole, filters: filters) }
    let before = cache.server
    var children: [(Path, Node)] = []
    for (key, child) in merge.sortedChildren {
      let path = Path(keys: [key])
      let known = before.node.descendant(path)
      if child.value == nil, known.isEmpty, !before.isComplete(forChild: key) { continue }
      children.append((path, child.inMergeOrder.reduce(known) { $0.setting($1.0, to: $1.1) }))
    }
    let ordered =
      filter.filtersNodes
      ? windowOrder(children) { !before.node.descendant($0).isEmpty } : children.inMergeOrder()
    for (path, node) in ordered { applyServerOverwrite(at: path, node, filters: filters) }
  }

  /// Sorts the changes of a merge for a window: changes of children in the window first, so that others can
  /// enter it.
  private func windowOrder(_ changes: [(Path, Node)], _ isInView: (Path) -> Bool) -> [(Path, Node)] {
    changes.filter { isInView($0.0) } + changes.filter { !isInView($0.0) }
  }

  private mutating func updateEventCache(afterServerChangeAt path: Path, source: some CompleteChildSource) {
    guard writes.shadowingWrite(at: path) == nil else { return }
    let event = cache.event
    let server = cache.server
    var node = event.node
    if let key = path.first {
      if key.isPriority {
        if let priority = writes.eventNode(afterServerChangeAt: path, to: server.node.descendant(path)) {
          node = filter.replacingPriority(of: node, with: priority)
        }
      } else {
        let child: Node?
        if event.isComplete(forChild: key) {
          child = writes.eventNode(afterServerChangeAt: path, to: server.node.descendant(path))
            .map { node.child(key).setting(path.droppingFirst, to: $0) }
        } else {
          child = writes.completeChild(key, over: server)
        }
        if let child { node = filter.replacing(key, in: node, with: child, from: source, &changes) }
      }
    } else if server.isFiltered {
      // Only children inside the window are complete. Writes inside other children cannot be applied, because
      // their values are unknown.
      node = filter.replacing(node, with: writes.completeChildren(over: server.node), &changes)
    } else if let complete = writes.completeNode(over: server.node) {
      node = filter.replacing(node, with: complete, &changes)
    }
    cache = cache.withEvent(
      node, isComplete: event.isComplete || path.isRoot, isFiltered: filter.filtersNodes)
  }

  // MARK: The app's changes

  private mutating func applyUserOverwrite(at path: Path, _ node: Node) {
    let event = cache.event
    guard let key = path.first else {
      let new = filter.replacing(event.node, with: node, &changes)
      cache = cache.withEvent(new, isComplete: true, isFiltered: filter.filtersNodes)
      return
    }
    if key.isPriority {
      let new = filter.replacingPriority(of: event.node, with: node)
      cache = cache.withEvent(new, isComplete: event.isComplete, isFiltered: event.isFiltered)
      return
    }
    let rest = path.droppingFirst
    let child: Node
    if rest.isRoot {
      child = node
    } else if let known = source.completeChild(key) {
      // A priority has no effect on a location without a value. If the location exists on the server, its
      // data will follow.
      let hasNoEffect = rest.isPriority && known.descendant(rest.dataPath).isEmpty
      child = hasNoEffect ? known : known.setting(rest, to: node)
    } else {
      child = .empty
    }
    guard event.node.child(key) != child else { return }
    let new = filter.replacing(key, in: event.node, with: child, from: source, &changes)
    cache = cache.withEvent(new, isComplete: event.isComplete, isFiltered: filter.filtersNodes)
  }

  private mutating func applyUserMerge(at path: Path, _ tree: PathTree<Node>) {
    let before = cache.event
    let changes = tree.inMergeOrder.map { (path.appending($0.0), $0.1) }
    let ordered =
      filter.filtersNodes
      ? windowOrder(changes) { $0.first.map { before.isComplete(forChild: $0) } ?? true } : changes
    for (target, node) in ordered { applyUserOverwrite(at: target, node) }
  }

  // MARK: Responses to writes

  private mutating func acknowledge(at path: Path, _ affected: PathTree<Bool>) {
    guard writes.shadowingWrite(at: path) == nil else { return }
    let server = cache.server
    let filters = server.isFiltered
    if affected.value != nil {
      if (path.isRoot && server.isComplete) || server.isComplete(at: path) {
        applyServerOverwrite(at: path, server.node.descendant(path), filters: filters)
      } else if path.isRoot {
        // The app wrote the location, but it was never read completely. So the known parts of the server's
        // data apply again.
        var known = PathTree<Node>()
        server.node.forEachChild { key, child in
          known[Path(keys: [key])] = child
          return true
        }
        applyServerMerge(at: path, known, filters: filters)
      }
      return
    }
    var known = PathTree<Node>()
    affected.forEach { relative, _ in
      let target = path.appending(relative)
      if server.isComplete(at: target) { known[relative] = server.node.descendant(target) }
    }
    if !known.isEmpty { applyServerMerge(at: path, known, filters: filters) }
  }

  private mutating func revert(at path: Path) {
    guard writes.shadowingWrite(at: path) == nil else { return }
    let server = cache.server
    let old = cache.event.node
    var node = old
    if let key = path.first, !key.isPriority {
      var child = writes.completeChild(key, over: server)
      if child == nil, server.isComplete(forChild: key) { child = old.child(key) }
      if let child {
        node = filter.replacing(key, in: old, with: child, from: source, &changes)
      } else if !old.child(key).isEmpty {
        node = filter.replacing(key, in: old, with: .empty, from: source, &changes)
      }
      if node.isEmpty, server.isComplete, let complete = writes.completeNode(over: server.node),
        complete.isLeaf
      {
        node = filter.replacing(node, with: complete, &changes)
      }
    } else if server.isComplete {
      node = filter.replacing(old, with: writes.completeNode(over: server.node) ?? .empty, &changes)
    } else {
      node = filter.replacing(old, with: writes.completeChildren(over: server.node), &changes)
    }
    let isComplete = server.isComplete || writes.shadowingWrite(at: .root) != nil
    cache = cache.withEvent(node, isComplete: isComplete, isFiltered: filter.filtersNodes)
  }

  private var source: WriteTreeChildSource {
    WriteTreeChildSource(writes: writes, cache: cache, completeServerNode: completeServerNode)
  }
}

/// Finds complete children: pending writes applied to the server data of this view or of a view above it.
struct WriteTreeChildSource: CompleteChildSource {
  let writes: WriteTreeReference
  let cache: ViewCache
  let completeServerNode: Node?

  func completeChild(_ key: ChildKey) -> Node? {
    if cache.event.isComplete(forChild: key) { return cache.event.node.child(key) }
    let server =
      completeServerNode.map { CacheNode(node: $0, isComplete: true, isFiltered: false) } ?? cache.server
    return writes.completeChild(key, over: server)
  }

  var completeNode: Node? {
    writes.completeNode(over: completeServerNode ?? cache.completeServerNode)
  }
}
