// Handles filtered listens on locations too large for memory. It reads the window of each query (the children
// that the query shows) from index or child rows, and updates it with every write. The cost depends on the
// size of the window, not of the location (decision 0015).
//
// The fan-out stage, which sends pushes to clients, treats such a location like any other, but holds only a filtered
// value: the children that some window shows. Each of these queries has the same window on the filtered value as on the
// complete value. A batch therefore reports each child that enters a window, with its value, and each child that no
// window shows any more. It omits changes of other children.
//
// Invariant: after every step, the filtered value has exactly the children in the windows of
// `WindowedLocations`.
//
// A window whose order has rows can be refilled from them. When an index is removed, or children get
// priorities, the order has none. The location is then read in the background, and the fan-out stage gets its
// complete value. If the value is too large, the filtered listens end with `too_big`.

import OrderedStore
import RealtimeModel

/// Starts filtered listens whose windows are read from rows, and updates these windows.
struct RowWindowHandler: BatchHandler {
  let batch: BatchExecution

  /// Starts a filtered listen with a row window, if its location is large and its order has rows.
  ///
  /// - Returns: the children that the fan-out stage needs for it; nil if the listen needs the complete value.
  func start(_ listen: RealtimeOperation.Listen, for operation: RealtimeOperation) throws -> Node? {
    let (path, query) = (listen.path, listen.query)
    guard !listen.isDefault, !query.showsAll, !path.isPriority else { return nil }
    switch operation.results.location {
    // If the background read found the value too large, rows are tried again, because an index may have been
    // completed since then.
    case nil, .failure(.tooBig)?: break
    default: return nil
    }
    let windows = executor.windows
    if let location = windows[path] {
      if location.windows[query] != nil {
        windows.addListen(path, query, nil, journal)
        return .empty
      }
      // While the complete value is being read, an existing window may lack children. Children that a new
      // window adds to the filtered value could then appear in the existing window without a notification.
      if location.isReadingFullValue { return nil }
    } else {
      guard !executor.orders.hasListen(at: path), tree.cache?.node(at: path) == nil,
        try tree.nodeIfSmall(at: path, staging) == nil
      else { return nil }
    }
    guard let keys = try keysByRows(query, at: path, atMost: staging.maximumWindowChildren) else {
      return nil
    }
    var bytes = 0
    var children: [(key: ChildKey, node: Node)] = []
    for key in keys {
      guard let child = try smallChild(key, at: path) else { return nil }
      bytes += child.estimatedSize
      guard bytes <= staging.maximumWindowBytes else { return nil }
      children.append((key, child))
    }
    let sortKeys = children.map { SortKey(of: $0.key, $0.node, in: query.ordering) }
    windows.addListen(path, query, RowWindow(query, sortKeys), journal)
    return .object(children)
  }

  /// The keys of a window's children, read from rows. Returns nil if the order has no rows, or the window has
  /// more than `maximum` children.
  private func keysByRows(_ query: QuerySpec, at path: Path, atMost maximum: Int) throws -> [ChildKey]? {
    var query = query
    if query.limit.map({ $0.count > maximum }) ?? true {
      if case .last = query.limit {
        query.limit = .last(maximum + 1)
      } else {
        query.limit = .first(maximum + 1)
      }
    }
    return try batch.reads.keysByRows(query, at: path).flatMap { $0.count <= maximum ? $0 : nil }
  }

  /// Reads a child that is small enough to be read in the batch. Returns nil for a larger child.
  private func smallChild(_ key: ChildKey, at path: Path) throws -> Node? {
    do {
      return try tree.nodeIfSmall(at: path.child(key), staging)
    } catch let error as RealtimeError where error == .tooBig {
      return nil
    }
  }

  // MARK: Writes

  /// Updates the windows that a write affects. Called after the write has changed the tree.
  ///
  /// - Parameter changes: the changes as listeners receive them.
  /// - Returns: the changes of the filtered value, for each location with row windows above a change.
  func updateWindows(for changes: [Change]) throws -> [Path: [WindowChange]] {
    let windows = executor.windows
    guard !windows.isEmpty else { return [:] }
    var touched: [Path: [Change]] = [:]
    for change in changes {
      for count in 0..<change.path.count {
        let above = Path(keys: Array(change.path.keys.prefix(count)))
        if windows[above] != nil { touched[above, default: []].append(change) }
      }
      for path in windows.inside(change.path) {
        // The location was replaced, so the fan-out stage gets its complete value from the write, and the row
        // windows end. An unchanged value keeps them.
        if let before = change.before, let relative = path.relative(to: change.path),
          before.descendant(relative) == change.value.descendant(relative)
        {
          continue
        }
        windows.remove(path, journal)
      }
    }
    var notified: [Path: [WindowChange]] = [:]
    for (path, changes) in touched { notified[path] = try updateWindows(for: changes, at: path) }
    return notified
  }

  private func updateWindows(for changes: [Change], at path: Path) throws -> [WindowChange] {
    let windows = executor.windows
    guard let before = windows[path] else { return [] }
    var inside: [ChildKey: [WindowChange]] = [:]
    for change in changes {
      guard let relative = change.path.relative(to: path), let key = relative.first, !key.isPriority else {
        continue
      }
      inside[key, default: []].append((relative, change.value))
    }
    var sortKeys: [Ordering: [ChildKey: SortKey]] = [:]
    for query in before.windows.keys where sortKeys[query.ordering] == nil {
      sortKeys[query.ordering] = [:]
      for key in inside.keys {
        sortKeys[query.ordering]?[key] = try tree.sortKey(of: key, in: path, by: query.ordering)
      }
    }
    var concerned = Set(inside.keys)
    var wasShown: [ChildKey: Bool] = [:]
    for key in inside.keys { wasShown[key] = before.shows(key) }
    for (query, window) in before.windows {
      let now = sortKeys[query.ordering] ?? [:]
      let moved = inside.keys.filter { key in
        let sortKey = now[key].flatMap { window.isInside($0) ? $0 : nil }
        return window.sortKeys[key] != sortKey
      }
      if moved.isEmpty { continue }
      let removed: [ChildKey] =
        windows.change(path, query, journal) { window, undo in
          for key in moved { _ = window.move(key, to: now[key], &undo) }
          return window.trim(&undo)
        } ?? []
      for key in removed where wasShown[key] == nil { wasShown[key] = before.shows(key) }
      concerned.formUnion(removed)
      guard windows[path]?.windows[query]?.isShort == true else { continue }
      guard let filling = try sortKeysByRows(query, at: path) else {
        requestFullValue(path)
        continue
      }
      let added: [ChildKey] = windows.change(path, query, journal) { $0.fill(filling, &$1) } ?? []
      for key in added where wasShown[key] == nil { wasShown[key] = before.shows(key) }
      concerned.formUnion(added)
    }
    guard let now = windows[path] else { return [] }
    var notified: [WindowChange] = []
    for key in concerned {
      switch (wasShown[key] ?? false, now.shows(key)) {
      case (true, true): notified += inside[key] ?? []
      case (true, false): notified.append((Path(keys: [key]), .empty))
      case (false, true):
        if let child = try smallChild(key, at: path) {
          notified.append((Path(keys: [key]), child))
        } else if let complete = inside[key]?.first, complete.path.count == 1 {
          // The child is too large to be read here, but the write contains all of it.
          notified.append(complete)
        } else {
          // The child is too large to be read here. Its listeners receive it once the complete location has
          // been read.
          for query in now.windows.keys where now.windows[query]?.sortKeys[key] != nil {
            windows.change(path, query, journal) { _ = $0.move(key, to: nil, &$1) }
          }
          requestFullValue(path)
        }
      case (false, false): break
      }
    }
    return notified.sorted { $0.path < $1.path }
  }

  /// The sort keys of a window's children, read from rows; nil if the order has no rows.
  private func sortKeysByRows(_ query: QuerySpec, at path: Path) throws -> [SortKey]? {
    guard let keys = try keysByRows(query, at: path, atMost: query.limit?.count ?? .max) else { return nil }
    return try keys.compactMap { try tree.sortKey(of: $0, in: path, by: query.ordering) }
  }

  /// Requests a background read of a location's complete value, which will replace its row windows.
  private func requestFullValue(_ path: Path) {
    if executor.windows.beginReadingFullValue(path, journal) { executor.events.rowWindowsEnded(path) }
  }

  /// Passes a location's complete value to the fan-out stage and ends its row windows. If the value is too large, ends
  /// its filtered listens instead.
  func switchToFullValue(_ path: Path, for operation: RealtimeOperation) throws {
    guard executor.windows[path]?.isReadingFullValue == true else { return }
    do {
      let value = try batch.reads.value(at: path, for: operation)
      try batch.authorization.decideAgain(matching: [path])
      executor.windows.remove(path, journal)
      batch.add(.fullValue(path, value.node))
    } catch let error as RealtimeError {
      if error == .abandoned { return }
      for listen in executor.openListens.audience(of: path).above where listen.name.path == path {
        guard listen.name.tag != nil || !listen.query.showsAll else { continue }
        batch.listens.revoke(listen.name, of: listen.connection, error)
      }
      executor.windows.remove(path, journal)
    }
  }
}

extension Tree {
  /// The sort key of a child in an order; nil if the child does not exist. Reads one or two rows.
  func sortKey(of key: ChildKey, in location: Path, by ordering: Ordering) throws -> SortKey? {
    let path = location.child(key)
    let childValue = try orderingValue(at: path)
    if childValue == .null { return nil }
    let value: OrderingValue
    switch ordering {
    case .key: value = .null
    case .value: value = childValue
    case .child(let inner):
      value = childValue == .object ? try orderingValue(at: path.appending(inner)) : .null
    case .priority:
      let priority = childValue == .object ? try objectPriority(at: path) : try node(at: path).priority
      value = priority.map { .leaf($0.leafValue) } ?? .null
    }
    return SortKey(value: value, key: key)
  }
}
