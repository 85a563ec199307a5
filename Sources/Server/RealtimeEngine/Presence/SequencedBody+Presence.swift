// What sessions register for their end: as rows, so that it outlives the server, and as one write when the session ends.
//
// Invariant: what was acknowledged happens, unless it is no longer allowed by then. A session may register no more than
// one commit can write (`DisconnectCost`); what that replaces may be of any size (see SequencedBody+LargeEnds).

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// Registers values for a session's end.
  mutating func register(_ write: Write, for connection: ConnectionState) throws {
    let request = try WriteRequest(write, limits: sequencer.limits, bytes: sequencer.limits.socketWriteBytes)
    var resolved = request
    try resolved.resolve(in: tree, now: now)
    try mayWrite(resolved.changes, connection.session.caller)
    var registered = connection.session.registered
    for (path, value) in request.changes {
      registered -= try DisconnectCost(session: connection.name, at: path, in: tree.view)
      registered += DisconnectCost(path, value)
    }
    let rows = request.changes.map { (path: $0.path, bytes: NodeEncoder.encode($0.value)) }
    try check(registered, rows.map(\.bytes))
    let writer = try mustWrite()
    for (path, bytes) in rows {
      let row = RowKeys.disconnect(ofSession: connection.name, at: path)
      try writer.clear(KeyRange(prefix: row))
      try writer.set(row, bytes)
    }
    if !connection.session.hasDisconnectRows { try self.write(connection.session.caller, of: connection) }
    journal.change(connection, \.hasDisconnectRows, to: true)
    journal.change(connection, \.registered, to: registered)
  }

  func write(_ caller: Caller, of connection: ConnectionState) throws {
    try writer?.set(RowKeys.caller(ofSession: connection.name), CallerCoding.encode(caller))
  }

  mutating func cancel(_ path: Path, for connection: ConnectionState) throws {
    guard connection.session.hasDisconnectRows else { return }
    if let place = try registeredAncestor(of: path, for: connection) {
      return try cancel(path, inValueAt: place, for: connection)
    }
    var registered = connection.session.registered
    registered -= try DisconnectCost(session: connection.name, at: path, in: tree.view)
    guard registered != connection.session.registered else { return }
    try mustWrite().clear(KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: path)))
    journal.change(connection, \.registered, to: registered)
  }

  /// The first location above a path, from the root on, at which a value is registered.
  private func registeredAncestor(of path: Path, for connection: ConnectionState) throws -> Path? {
    for count in 0..<path.count {
      let place = Path(keys: Array(path.keys[..<count]))
      let row = RowKeys.disconnect(ofSession: connection.name, at: place)
      if try tree.view.get(row) != nil { return place }
    }
    return nil
  }

  /// Forgets a location in a value that is registered above it: what stands beside the way there is registered by itself
  /// from then on, and what the value would have removed by being silent about it stays, as clients expect.
  private mutating func cancel(
    _ path: Path, inValueAt place: Path, for connection: ConnectionState
  ) throws {
    let way = path.keys[place.count...]
    let outline = try DisconnectOutline(
      session: connection.name, at: place, beside: way,
      atMost: 2 * sequencer.limits.onDisconnectsPerConnection, in: tree.view)
    guard let siblings = outline.siblings else { return }
    // What would be too much in any case is refused before the value is looked at, which may be large.
    var least = connection.session.registered
    least.count += siblings - outline.rows
    least.bytes = siblings * (64 + 2 * RowWeight.path(place))
    try check(least, [])
    let values = try DisconnectRows.values(session: connection.name, at: place, in: tree.view)
    guard let whole = FoldedChanges(values).changes.first, !whole.value.isLeaf else { return }
    let rows = whole.value.parts(beside: Path(keys: Array(way))).map {
      (path: place.appending($0.path), value: $0.value, bytes: NodeEncoder.encode($0.value))
    }
    var registered = connection.session.registered
    for (path, value) in values { registered -= DisconnectCost(path, value) }
    for row in rows { registered += DisconnectCost(row.path, row.value) }
    try check(registered, rows.map(\.bytes))
    let writer = try mustWrite()
    try writer.clear(KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: place)))
    for row in rows {
      try writer.set(RowKeys.disconnect(ofSession: connection.name, at: row.path), row.bytes)
    }
    journal.change(connection, \.registered, to: registered)
  }

  /// Refuses more than a session may register for its end.
  private func check(_ registered: DisconnectCost, _ rows: [[UInt8]]) throws {
    let limits = sequencer.limits
    guard registered.count <= limits.onDisconnectsPerConnection else {
      throw RealtimeError(
        .failure,
        "too many onDisconnect operations: a connection may hold \(limits.onDisconnectsPerConnection)")
    }
    guard registered.bytes <= limits.onDisconnectBytes,
      rows.allSatisfy({ $0.count <= StoreLimits.maximumValueBytes })
    else { throw RealtimeError.writeTooBig }
  }

  /// Ends a session.
  ///
  /// - Parameter isTold: whether its connection is told: another has ended it.
  mutating func end(_ connection: ConnectionState, isTold: Bool = false) throws {
    let isTold = isTold && !connection.session.hasEnded
    journal.change(connection, \.hasEnded, to: true)
    for (name, query) in connection.session.listens {
      sequencer.orders.change(name, from: query, to: nil, journal)
      sequencer.windows.leave(name.path, query, journal)
    }
    journal.change(connection, \.listens, to: [:])
    _ = sequencer.unregister(connection.name, journal)
    steps.append(.end(connection, isTold: isTold))
    if connection.session.hasDisconnectRows { try fire(connection.name) }
  }

  /// Ends a session that another connection comes back from.
  ///
  /// - Parameter connection: the session's connection, if it stands. The sequencer may not have heard of it yet.
  mutating func takeOver(_ session: String, of connection: ConnectionState?) throws {
    if let connection = sequencer.unregister(session, journal) ?? connection {
      try end(connection, isTold: true)
    } else {
      try fire(session)
    }
  }

  /// Writes what a session registered for its end, as one write, and forgets it: exactly once, since both are one commit.
  private mutating func fire(_ session: String) throws {
    let registered = try DisconnectRows(session: session, in: tree.view)
    guard !registered.isEmpty else { return }
    try mustWrite().clear(KeyRange(prefix: RowKeys.prefix(ofSession: session)))
    try apply(FoldedChanges(try decided(registered)).changes)
  }

  /// What is still allowed of what was registered, with its server values; in the order of the rows.
  func decided(_ registered: DisconnectRows) throws -> [(path: Path, value: Node)] {
    var allowed: [(path: Path, value: Node)] = []
    for (path, value) in registered.values {
      do {
        var request = try WriteRequest(
          .set(path, value), limits: sequencer.limits, bytes: sequencer.limits.restWriteBytes)
        try request.resolve(in: tree, now: now)
        try mayWrite(request.changes, registered.caller)
        allowed += request.changes
      } catch is RealtimeError {
        // What is no longer allowed when the session ends is dropped; nobody is there to be told.
        continue
      }
    }
    return allowed
  }

  /// Ends sessions that a process before this one left behind.
  mutating func fire(_ sessions: some Sequence<String>) throws {
    for session in sessions { try fire(session) }
  }

  /// The sessions that have something registered.
  static func sessions(in view: any ReadView) throws -> [String] {
    var sessions: [String] = []
    var start = RowKeys.sessions.start
    while true {
      var found: String?
      try view.scan(KeyRange(start: start, end: RowKeys.sessions.end), reverse: false) { key, _, _ in
        let name = key.dropFirst().prefix { $0 != RowKeys.terminator }
        found = String(decoding: name, as: UTF8.self)
        return false
      }
      guard let found, let next = KeyRange.successor(ofPrefix: RowKeys.prefix(ofSession: found)) else {
        break
      }
      sessions.append(found)
      start = next
    }
    return sessions
  }
}
