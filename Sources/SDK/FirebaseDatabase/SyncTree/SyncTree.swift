// The sync tree: the observers, pending writes and caches of a database, and the listens that it needs from the server.
//
// Invariants
//   1. The tree requests a listen for a location if and only if the location is observed and no view above it
//      loads all of its data.
//   2. A listen that loads a complete location replaces every listen at and below it.
//   3. A query with bounds or a limit has one tag, unique for the lifetime of the tree.
//   4. The tree is deterministic: the same calls give the same events and listens.

import RealtimeModel

/// One listen, as the server identifies it.
struct Listen: Hashable, Sendable {
  let path: Path
  /// The query; the default query for every query that loads all data.
  let query: QuerySpec
  /// Identifies the query in the server's pushes; nil for a listen that loads all data.
  let tag: Int?
}

/// An action that the tree requests from the connection.
enum ListenAction: Equatable, Sendable {
  case start(Listen)
  case stop(Listen)
}

/// Observers, pending writes and caches of one database.
final class SyncTree {
  private var syncPoints = PathTree<SyncPoint>()
  private(set) var writes = WriteTree()
  private var tags: [Location: Int] = [:]
  private var locations: [Int: Location] = [:]
  private var nextTag = 1
  private var pendingActions: [ListenAction] = []
  /// Stores the data of the server and the tracked queries.
  private let storage: any ClientStorage

  init(storage: any ClientStorage = MemoryStorage()) {
    self.storage = storage
  }

  private struct Location: Hashable {
    let path: Path
    let query: QuerySpec
  }

  /// The listens to start and stop since the last call, in order.
  func takeActions() -> [ListenAction] {
    defer { pendingActions = [] }
    return pendingActions
  }

  var hasActions: Bool { !pendingActions.isEmpty }

  // MARK: Writes of the app

  /// Replaces a value locally before the server responds.
  ///
  /// - Parameter isEstimate: whether the new value depends on the server's value.
  func applyUserOverwrite(
    at path: Path, _ node: Node, id: Int, isVisible: Bool = true, isEstimate: Bool = false
  ) -> [DataEvent] {
    writes.add(
      WriteRecord(
        id: id, path: path, change: .overwrite(node), isVisible: isVisible,
        estimatedPositions: isEstimate ? [0] : []))
    return isVisible ? apply(SyncOperation(source: .user, path: path, change: .overwrite(node))) : []
  }

  /// Replaces values at several paths locally before the server responds.
  ///
  /// - Parameter estimatedPositions: the positions of the changes whose new values depend on the server's values.
  func applyUserMerge(
    at path: Path, _ changes: [(Path, Node)], id: Int, estimatedPositions: Set<Int> = []
  ) -> [DataEvent] {
    writes.add(
      WriteRecord(
        id: id, path: path, change: .merge(changes), isVisible: true, estimatedPositions: estimatedPositions))
    return apply(SyncOperation(source: .user, path: path, change: .merge(SyncOperation.tree(changes))))
  }

  /// Removes a pending write that the server has accepted or rejected.
  func acknowledgeWrite(_ id: Int, isRevert: Bool = false) -> [DataEvent] {
    guard let (record, mayBeSeen) = writes.remove(id) else { return [] }
    if !isRevert { storeUnobserved(record) }
    guard mayBeSeen else { return [] }
    return apply(acknowledgement(of: record, isRevert: isRevert))
  }

  /// Removes all pending writes as if the server had rejected them.
  func purgeWrites() -> [DataEvent] {
    writes.removeAll().filter(\.isVisible).flatMap { apply(acknowledgement(of: $0, isRevert: true)) }
  }

  /// Stores a write that the server has accepted before its record is removed from the tree.
  func storeUnobservedWrite(_ id: Int) {
    if let record = writes.record(id) { storeUnobserved(record) }
  }

  /// Stores the parts of an acknowledged write that no listen covers, so that a later run finds them. For
  /// other parts, the server has sent the result. A part with an increment keeps its last known value,
  /// because the client may not know the sum.
  private func storeUnobserved(_ record: WriteRecord) {
    for (position, (path, node)) in record.replacements.enumerated()
    where !record.estimatedPositions.contains(position) && !isCovered(path)
      && completeServerNode(at: path.dataPath) == nil
    {
      storage.storeUnobserved(node, at: path, query: .default)
    }
  }

  /// Whether a view loads all data of a location.
  private func isCovered(_ path: Path) -> Bool {
    syncPoints.values(on: path).contains { $0.value.completeView != nil }
  }

  private func acknowledgement(of record: WriteRecord, isRevert: Bool) -> SyncOperation {
    var affected = PathTree<Bool>()
    switch record.change {
    case .overwrite: affected.value = true
    case .merge(let changes): for (path, _) in changes { affected[path] = true }
    }
    return SyncOperation(
      source: .user, path: record.path, change: .acknowledge(affected, isRevert: isRevert))
  }

  // MARK: Data of the server

  /// Replaces a value with the server's value.
  func applyServerOverwrite(at path: Path, _ node: Node, tag: Int? = nil) -> [DataEvent] {
    apply(.overwrite(node), at: path, tag: tag)
  }

  /// Replaces values at several paths with the server's values.
  func applyServerMerge(at path: Path, _ changes: [(Path, Node)], tag: Int? = nil) -> [DataEvent] {
    apply(.merge(SyncOperation.tree(changes)), at: path, tag: tag)
  }

  /// The server has sent all data of a listen.
  func applyListenComplete(_ listen: Listen) -> [DataEvent] {
    apply(.listenComplete, at: listen.path, tag: listen.tag)
  }

  /// The server's cached value of a listen, for the listen's hash.
  func serverNode(of listen: Listen) -> Node {
    let syncPoint = syncPoints[listen.path]
    guard listen.tag != nil else { return syncPoint?.completeView?.cache.server.node ?? .empty }
    guard let server = syncPoint?.view(of: listen.query)?.cache.server else { return .empty }
    return server.isComplete && !server.isFiltered ? server.node.window(listen.query) : server.node
  }

  private func apply(_ change: SyncOperation.Change, at path: Path, tag: Int?) -> [DataEvent] {
    guard let tag else {
      store(change, at: path, query: .default, isTagged: false)
      return apply(SyncOperation(source: .server, path: path, change: change))
    }
    // A push for a query that was removed in the meantime may still arrive.
    guard let location = locations[tag], let relative = path.relative(to: location.path),
      let syncPoint = syncPoints[location.path]
    else { return [] }
    store(change, at: path, query: relative.isRoot ? location.query : .default, isTagged: true)
    let operation = SyncOperation(source: .query(location.query), path: relative, change: change)
    return syncPoint.apply(operation, writes: reference(location.path), completeServerNode: nil)
  }

  /// Stores data of the server.
  private func store(_ change: SyncOperation.Change, at path: Path, query: QuerySpec, isTagged: Bool) {
    switch change {
    case .overwrite(let node):
      storage.store(node, at: path, query: query, replacing: isTagged ? nil : listenedNode(at: path))
    case .merge(let tree):
      var changes: [(Path, Node)] = []
      tree.forEach { changes.append(($0, $1)) }
      storage.merge(changes, at: path)
    case .listenComplete: storage.complete(query, at: path)
    case .acknowledge: break
    }
  }

  /// The server's complete value at a path, if a default listen covers it. The data of filtered listens may
  /// be newer.
  private func listenedNode(at path: Path) -> Node? {
    for (syncPoint, depth) in syncPoints.values(on: path) where !path.isPriority {
      if let view = syncPoint.completeView {
        return view.completeServerNode(at: Path(keys: Array(path.keys[depth...])))
      }
    }
    return nil
  }

  // MARK: Observers

  /// Adds an observer.
  ///
  /// - Returns: its initial events.
  func add(_ registration: ObserverRegistration, at path: Path, query: QuerySpec) -> [DataEvent] {
    let above = syncPoints.values(on: path)
    let isCovered = above.contains { $0.value.completeView != nil }
    var syncPoint = syncPoints[path]
    let existing = syncPoint?.view(of: query)
    let view: SyncView
    if let existing {
      view = existing
    } else {
      view = SyncView(
        path: path, query: query, writes: reference(path), storage: storage,
        server: knownServerNode(at: path, query: query, above: above))
      storage.activate(query, at: path)
      view.storeWindow()
      if syncPoint == nil {
        let new = SyncPoint()
        syncPoints[path] = new
        syncPoint = new
      }
      syncPoint?.add(view)
      if !query.showsAll { makeTag(path, query) }
    }
    let events = view.add(registration)
    if existing == nil, !isCovered { startListen(for: view) }
    return events
  }

  private func knownServerNode(
    at path: Path, query: QuerySpec, above: [(value: SyncPoint, depth: Int)]
  ) -> CacheNode {
    for (syncPoint, depth) in above {
      if let node = syncPoint.completeServerNode(at: Path(keys: Array(path.keys[depth...]))) {
        return CacheNode(node: node, isComplete: true, isFiltered: false)
      }
    }
    var server = storage.load(query, at: path)
    if server.isComplete { return server }
    for (key, child) in syncPoints.subtree(path).sortedChildren {
      if let known = child.value?.completeServerNode(at: .root) {
        server.node = server.node.settingChild(key, to: known)
      }
    }
    return server
  }

  /// The observed queries with the server's data. A storage that lost its file writes them again.
  var observedQueries: [(path: Path, query: QuerySpec, server: CacheNode)] {
    var queries: [(path: Path, query: QuerySpec, server: CacheNode)] = []
    syncPoints.forEach { path, syncPoint in
      for view in syncPoint.views { queries.append((path, view.query, view.cache.server)) }
    }
    return queries
  }

  /// Removes an observer, or all observers of a query. With an error, they receive a cancel event.
  ///
  /// - Parameters:
  ///   - registration: the observer; nil for all observers of the query. The default query means every query
  ///     of the location.
  ///   - error: the error with which the server ended the listen; nil if the app removes the observer.
  func remove(
    _ registration: ObserverRegistration?, at path: Path, query: QuerySpec, error: RealtimeError? = nil
  ) -> [DataEvent] {
    guard let syncPoint = syncPoints[path] else { return [] }
    let hadCompleteView = syncPoint.completeView != nil
    let (removed, events) = syncPoint.remove(query, registration, error: error)
    if syncPoint.isEmpty { syncPoints[path] = nil }
    guard !removed.isEmpty else { return events }
    let lostCompleteView = hadCompleteView && syncPoint.completeView == nil
    for query in removed where !query.showsAll || lostCompleteView { storage.deactivate(query, at: path) }
    let isCovered = isCovered(path)
    if !isCovered {
      // The queries that this listen covered need separate listens before it stops.
      if lostCompleteView {
        for view in distinctViews(below: syncPoints.subtree(path)) {
          pendingActions.append(.start(listen(for: view)))
        }
      }
      if error == nil {
        if hadCompleteView {
          if lostCompleteView { pendingActions.append(.stop(Listen(path: path, query: .default, tag: nil))) }
        } else {
          for query in removed {
            pendingActions.append(.stop(Listen(path: path, query: query, tag: tag(path, query))))
          }
        }
      }
    }
    for query in removed where !query.showsAll { dropTag(path, query) }
    return events
  }

  /// Handles a listen that the server revoked or rejected: its observers receive a cancel event and are
  /// removed.
  func cancel(_ listen: Listen, error: RealtimeError) -> [DataEvent] {
    remove(nil, at: listen.path, query: listen.query, error: error)
  }

  /// The listen that the tree requests for a query of the app.
  func listen(at path: Path, query: QuerySpec) -> Listen {
    query.showsAll
      ? Listen(path: path, query: .default, tag: nil)
      : Listen(path: path, query: query, tag: tag(path, query))
  }

  /// The listens of the views at a path.
  func listens(at path: Path) -> [Listen] {
    guard let syncPoint = syncPoints[path] else { return [] }
    let complete = syncPoint.completeView.map { [$0] } ?? []
    return (complete + syncPoint.filteredViews).map { listen(for: $0) }
  }

  // MARK: Reading

  /// The current result of a query, if listens and writes determine it completely.
  func completeNode(at path: Path, query: QuerySpec) -> Node? {
    if let view = syncPoints[path]?.view(of: query), let node = view.cache.completeEventNode { return node }
    guard let server = completeServerNode(at: path) else { return nil }
    return view(over: server, at: path, query: query)
  }

  /// The result of a query, computed from a value of the server.
  func view(over server: Node, at path: Path, query: QuerySpec) -> Node {
    let node = writes.completeNode(at: path, over: server) ?? .empty
    return query.showsAll ? node : node.window(query)
  }

  /// The input of transactions and server values: the known data of the server with all pending writes except
  /// the excluded ones. Unknown data counts as empty.
  func latestNode(at path: Path, excluding excluded: Set<Int> = []) -> Node {
    var server = completeServerNode(at: path)
    if server == nil {
      let stored = storage.load(.default, at: path.dataPath)
      if stored.isComplete {
        server = path.isPriority ? stored.node.descendant(Path(keys: [.priority])) : stored.node
      }
    }
    return writes.transactionNode(at: path, over: server, excluding: excluded)
  }

  private func completeServerNode(at path: Path) -> Node? {
    for (syncPoint, depth) in syncPoints.values(on: path) {
      let rest = Path(keys: Array(path.keys[depth...]))
      if let node = syncPoint.completeServerNode(at: rest) { return node }
    }
    return nil
  }

  // MARK: Operations

  private func reference(_ path: Path) -> WriteTreeReference {
    WriteTreeReference(writes: writes, path: path)
  }

  private func apply(_ operation: SyncOperation) -> [DataEvent] {
    apply(operation, to: syncPoints, at: .root, server: nil)
  }

  /// Applies an operation to descendants first, so that observers of descendants receive their events first.
  private func apply(
    _ operation: SyncOperation, to tree: PathTree<SyncPoint>, at path: Path, server: Node?
  ) -> [DataEvent] {
    let server = server ?? tree.value?.completeServerNode(at: .root)
    var events: [DataEvent] = []
    let children = operation.path.first.map { key in tree.children[key].map { [(key, $0)] } ?? [] }
    for (key, child) in children ?? tree.sortedChildren {
      guard let childOperation = operation.forChild(key) else { continue }
      events += apply(
        childOperation, to: child, at: path.child(key), server: server.map { $0.child(key) })
    }
    if let syncPoint = tree.value {
      events += syncPoint.apply(operation, writes: reference(path), completeServerNode: server)
    }
    return events
  }

  // MARK: Listens

  private func startListen(for view: SyncView) {
    pendingActions.append(.start(listen(for: view)))
    guard view.query.showsAll else { return }
    // This listen now provides the data of all views at the location and below it.
    let subtree = syncPoints.subtree(view.path)
    let here = subtree.value?.filteredViews ?? []
    let below = subtree.sortedChildren.flatMap { distinctViews(below: $0.tree) }
    for other in here + below { pendingActions.append(.stop(listen(for: other))) }
  }

  /// The views of a subtree that need separate listens. A view that loads everything covers the views below
  /// it.
  private func distinctViews(below tree: PathTree<SyncPoint>) -> [SyncView] {
    if let complete = tree.value?.completeView { return [complete] }
    return (tree.value?.filteredViews ?? []) + tree.sortedChildren.flatMap { distinctViews(below: $0.tree) }
  }

  private func listen(for view: SyncView) -> Listen {
    listen(at: view.path, query: view.query)
  }

  private func tag(_ path: Path, _ query: QuerySpec) -> Int? {
    tags[Location(path: path, query: query)]
  }

  private func makeTag(_ path: Path, _ query: QuerySpec) {
    let location = Location(path: path, query: query)
    tags[location] = nextTag
    locations[nextTag] = location
    nextTag += 1
  }

  private func dropTag(_ path: Path, _ query: QuerySpec) {
    if let tag = tags.removeValue(forKey: Location(path: path, query: query)) { locations[tag] = nil }
  }
}
