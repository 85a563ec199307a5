// Filtered listens on locations that are too large to be in memory: their windows are read from rows, and followed by what
// writes change in them. What that costs is the window, not the location.
//
// The fan-out stage follows such a location as it follows any other, on a value that has only the children that somebody
// sees: the first so many of those are the first so many of all. So it has to be told which children come to be seen, with
// their values, and which no longer are, in place of the changes of children that nobody sees.
//
// Invariant: the children of a location that the fan-out stage has are at every step those in the windows here.
//
// Rows say what lies behind a window's edge as long as its order has rows. Where an index goes, or children get priorities,
// the location is read whole beside the sequencer and followed like a small one from then on; if it is too large for that,
// its listens end, as those of any location do that has grown beyond what they may be told.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// Starts a filtered listen by rows, where its location is large and its order has rows.
  ///
  /// - Returns: the children that the fan-out stage needs for it; nil if it takes another way.
  mutating func joinByRows(_ listen: Operation.Listen, for operation: Operation) throws -> Node? {
    let (path, query) = (listen.path, listen.query)
    guard !listen.isDefault, !query.showsAll, !path.isPriority, operation.largeRead == nil else { return nil }
    let windows = sequencer.windows
    if let known = windows[path] {
      if known.windows[query] != nil {
        windows.join(path, query, nil, journal)
        return .empty
      }
      // What another window brings would show in those that lack something, and be told to nobody.
      if known.isLeaving { return nil }
    } else {
      guard !sequencer.orders.has(path), tree.cache?.node(at: path) == nil,
        try tree.nodeIfSmall(at: path, sequencer.generations.limits) == nil
      else { return nil }
    }
    let staging = sequencer.generations.limits
    guard let keys = try keysByRows(query, at: path, atMost: staging.windowChildren) else { return nil }
    var bytes = 0
    var children: [(key: ChildKey, node: Node)] = []
    for key in keys {
      guard let child = try smallChild(key, at: path) else { return nil }
      bytes += child.estimatedSize
      guard bytes <= staging.windowBytes else { return nil }
      children.append((key, child))
    }
    let places = children.map { SortKey(of: $0.key, $0.node, in: query.ordering) }
    windows.join(path, query, RowWindow(query, places), journal)
    return .object(children)
  }

  /// The keys of a window by rows; nil where there are no rows in its order, or none that say enough, or too many.
  mutating func keysByRows(_ query: QuerySpec, at path: Path, atMost most: Int) throws -> [ChildKey]? {
    var query = query
    if query.limit.map({ $0.count > most }) ?? true {
      if case .last = query.limit { query.limit = .last(most + 1) } else { query.limit = .first(most + 1) }
    }
    return try keysByRows(query, at: path).flatMap { $0.count <= most ? $0 : nil }
  }

  /// A child that may be read here; nil for a large one.
  private func smallChild(_ key: ChildKey, at path: Path) throws -> Node? {
    do {
      return try tree.nodeIfSmall(at: path.child(key), sequencer.generations.limits)
    } catch let error as RealtimeError where error == .tooBig {
      return nil
    }
  }

  // MARK: Writes

  /// Follows changes on the locations that are followed by rows, once they are carried out.
  ///
  /// - Parameter changes: as listeners are told them.
  /// - Returns: what changed in what somebody sees, for each location below which something changed.
  mutating func follow(_ changes: [Change]) throws -> [Path: [WindowChange]] {
    let windows = sequencer.windows
    guard !windows.isEmpty else { return [:] }
    var touched: [Path: [Change]] = [:]
    for change in changes {
      for count in 0..<change.path.count {
        let above = Path(keys: Array(change.path.keys.prefix(count)))
        if windows[above] != nil { touched[above, default: []].append(change) }
      }
      for path in windows.inside(change.path) {
        // Who is told a new value has all of it from then on.
        if let before = change.before, let relative = path.relative(to: change.path),
          before.descendant(relative) == change.value.descendant(relative)
        {
          continue
        }
        windows.remove(path, journal)
      }
    }
    var told: [Path: [WindowChange]] = [:]
    for (path, changes) in touched { told[path] = try follow(changes, at: path) }
    return told
  }

  private mutating func follow(_ changes: [Change], at path: Path) throws -> [WindowChange] {
    let windows = sequencer.windows
    guard let before = windows[path] else { return [] }
    var inside: [ChildKey: [WindowChange]] = [:]
    for change in changes {
      guard let relative = change.path.relative(to: path), let key = relative.first, !key.isPriority else {
        continue
      }
      inside[key, default: []].append((relative, change.value))
    }
    var places: [Ordering: [ChildKey: SortKey]] = [:]
    for query in before.windows.keys where places[query.ordering] == nil {
      places[query.ordering] = [:]
      for key in inside.keys {
        places[query.ordering]?[key] = try tree.place(of: key, in: path, by: query.ordering)
      }
    }
    var concerned = Set(inside.keys)
    var seenBefore: [ChildKey: Bool] = [:]
    for key in inside.keys { seenBefore[key] = before.shows(key) }
    for (query, window) in before.windows {
      let now = places[query.ordering] ?? [:]
      let moved = inside.keys.filter { key in
        let place = now[key].flatMap { window.isInside($0) ? $0 : nil }
        return window.places[key] != place
      }
      if moved.isEmpty { continue }
      let others: [ChildKey] =
        windows.change(path, query, journal) { window, undo in
          for key in moved { _ = window.move(key, to: now[key], &undo) }
          return window.cut(&undo)
        } ?? []
      for key in others where seenBefore[key] == nil { seenBefore[key] = before.shows(key) }
      concerned.formUnion(others)
      guard windows[path]?.windows[query]?.isShort == true else { continue }
      guard let filling = try placesByRows(query, at: path) else {
        leaveRows(path)
        continue
      }
      let added: [ChildKey] = windows.change(path, query, journal) { $0.fill(filling, &$1) } ?? []
      for key in added where seenBefore[key] == nil { seenBefore[key] = before.shows(key) }
      concerned.formUnion(added)
    }
    guard let now = windows[path] else { return [] }
    var told: [WindowChange] = []
    for key in concerned {
      switch (seenBefore[key] ?? false, now.shows(key)) {
      case (true, true): told += inside[key] ?? []
      case (true, false): told.append((Path(keys: [key]), .empty))
      case (false, true):
        if let child = try smallChild(key, at: path) {
          told.append((Path(keys: [key]), child))
        } else if let whole = inside[key]?.first, whole.path.count == 1 {
          // However large it is, the write has brought all of it.
          told.append(whole)
        } else {
          // Too large to be read here. It is shown once all of the location is.
          for query in now.windows.keys where now.windows[query]?.places[key] != nil {
            windows.change(path, query, journal) { _ = $0.move(key, to: nil, &$1) }
          }
          leaveRows(path)
        }
      case (false, false): break
      }
    }
    return told.sorted { $0.path < $1.path }
  }

  /// The places of a window's children by rows; nil where rows do not say enough.
  private mutating func placesByRows(_ query: QuerySpec, at path: Path) throws -> [SortKey]? {
    guard let keys = try keysByRows(query, at: path, atMost: query.limit?.count ?? .max) else { return nil }
    return try keys.compactMap { try tree.place(of: $0, in: path, by: query.ordering) }
  }

  /// Has a location followed as a whole, as soon as it was read.
  private func leaveRows(_ path: Path) {
    if sequencer.windows.beginLeaving(path, journal) { sequencer.wholeWanted(path) }
  }

  /// Goes over to following all of a location.
  mutating func followWhole(_ path: Path, for operation: Operation) throws {
    try goOver(to: path, for: operation)
    steps.append(.answer(operation.origin, .done))
  }

  private mutating func goOver(to path: Path, for operation: Operation) throws {
    guard sequencer.windows[path]?.isLeaving == true else { return }
    do {
      let value = try value(at: path, for: operation)
      sequencer.windows.remove(path, journal)
      steps.append(.whole(path, value.node))
    } catch let error as RealtimeError {
      if error == LargeReading.abandoned { return }
      for (connection, name) in sequencer.audience(of: path).above where name.path == path {
        guard let query = connection.session.listens[name], name.tag != nil || !query.showsAll else {
          continue
        }
        revoke(connection, name, error)
      }
      sequencer.windows.remove(path, journal)
    }
  }

  /// Ends a listen that can no longer be told what it listens to.
  mutating func revoke(_ connection: ConnectionState, _ name: ListenName, _ error: RealtimeError) {
    change(connection, listen: name, to: nil)
    steps.append(.unlisten(connection, name, revoked: error))
  }
}

extension Tree {
  /// Where a child stands in an order; nil if there is none. Looks at a row or two.
  func place(of key: ChildKey, in location: Path, by ordering: Ordering) throws -> SortKey? {
    let path = location.child(key)
    let itself = try orderingValue(at: path)
    if itself == .null { return nil }
    let value: OrderingValue
    switch ordering {
    case .key: value = .null
    case .value: value = itself
    case .child(let inner): value = itself == .object ? try orderingValue(at: path.appending(inner)) : .null
    case .priority:
      let priority = itself == .object ? try objectPriority(at: path) : try node(at: path).priority
      value = priority.map { .leaf($0.leafValue) } ?? .null
    }
    return SortKey(value: value, key: key)
  }
}
