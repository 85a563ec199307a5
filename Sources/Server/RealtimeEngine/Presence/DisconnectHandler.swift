// Handles onDisconnect writes. It stores them as rows, so that they survive a restart of the server. When a session
// ends, it performs all writes of the session as one write.
//
// When the session ends, the access policy decides each registered operation again. A denied operation is dropped
// completely, and the others are performed. Decision 0030 gives the reasons.
//
// Invariant: an acknowledged onDisconnect write is performed, unless access is denied when the session ends. It waits
// while the database has no rules that decide it. If the caller's credentials were revoked, its writes are decided as
// writes of nobody. The writes of a session fit into one commit (`DisconnectCost`); the values that they replace may
// be of any size (see DisconnectHandler+LargeEnds).

import Access
import OrderedStore
import RealtimeModel

/// Registers, cancels and performs onDisconnect writes in a batch.
struct DisconnectHandler: BatchHandler {
  let batch: BatchExecution

  /// Registers an onDisconnect write.
  func register(_ write: RealtimeWrite, for connection: ConnectionState) throws {
    let request = try WriteRequest(write, limits: limits, bytes: limits.socketWriteBytes)
    _ = try batch.writes.authorized(request, connection.session.caller) { .onDisconnect($0) }
    var registered = connection.session.registeredCost
    for (path, value) in request.changes {
      registered -= try DisconnectCost(session: connection.name, at: path, in: tree.view)
      registered += DisconnectCost(path, value)
    }
    let operation = connection.session.registrationCount
    let rows = request.changes.map {
      (path: $0.path, bytes: DisconnectRow.encode($0.value, of: operation))
    }
    try check(registered, rows.map(\.bytes))
    let writer = try batch.requireWriter()
    for (path, bytes) in rows {
      let row = RowKeys.disconnect(ofSession: connection.name, at: path)
      try writer.clear(KeyRange(prefix: row))
      try writer.set(row, bytes)
    }
    if connection.session.registeredCaller != connection.session.caller {
      try store(connection.session.caller, asCallerOf: connection)
    }
    journal.change(connection, \.registrationCount, to: operation + 1)
    journal.change(connection, \.registeredCost, to: registered)
  }

  /// Stores the caller who performs the onDisconnect writes of a connection.
  func store(_ caller: Principal, asCallerOf connection: ConnectionState) throws {
    try batch.writer?.set(RowKeys.caller(ofSession: connection.name), PrincipalCoding.encode(caller))
    journal.change(connection, \.registeredCaller, to: caller)
  }

  /// Replaces the stored callers of ended sessions by nobody.
  func replaceCallersByNobody(of sessions: [String]) throws {
    let writer = try batch.requireWriter()
    for session in sessions {
      try writer.set(RowKeys.caller(ofSession: session), PrincipalCoding.encode(.nobody))
    }
  }

  func cancel(_ path: Path, for connection: ConnectionState) throws {
    guard connection.session.registeredCaller != nil else { return }
    if let registeredPath = try registeredAncestor(of: path, for: connection) {
      return try cancel(path, inValueAt: registeredPath, for: connection)
    }
    var registered = connection.session.registeredCost
    registered -= try DisconnectCost(session: connection.name, at: path, in: tree.view)
    guard registered != connection.session.registeredCost else { return }
    try batch.requireWriter().clear(
      KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: path)))
    journal.change(connection, \.registeredCost, to: registered)
  }

  /// The outermost location above a path at which a value is registered.
  private func registeredAncestor(of path: Path, for connection: ConnectionState) throws -> Path? {
    for count in 0..<path.count {
      let registeredPath = Path(keys: Array(path.keys[..<count]))
      let row = RowKeys.disconnect(ofSession: connection.name, at: registeredPath)
      if try tree.view.get(row) != nil { return registeredPath }
    }
    return nil
  }

  /// Cancels a location inside a value that is registered above it.
  ///
  /// The children next to the path (children of the nodes on the path that are not on it themselves) become separate
  /// registered values. They no longer replace the complete location. Stored children that the registered value does
  /// not contain are then kept, as clients expect. Each separate value stays a part of the operation that registered
  /// it.
  private func cancel(
    _ path: Path, inValueAt registeredPath: Path, for connection: ConnectionState
  ) throws {
    let relativeKeys = path.keys[registeredPath.count...]
    let outline = try DisconnectOutline(
      session: connection.name, at: registeredPath, along: relativeKeys,
      atMost: 2 * limits.onDisconnectsPerConnection, in: tree.view)
    guard let siblingCount = outline.siblingCount else { return }
    // The limits are checked for the smallest possible result before the value is decoded, because it may be
    // large.
    var minimumCost = connection.session.registeredCost
    minimumCost.count += siblingCount - outline.rowCount
    minimumCost.bytes = siblingCount * (64 + 2 * RowWeight.path(registeredPath))
    try check(minimumCost, [])
    let registeredRows = try DisconnectRows.rows(session: connection.name, at: registeredPath, in: tree.view)
    let values = registeredRows.map { (path: $0.path, value: $0.value) }
    guard let registeredChange = FoldedChanges(values).changes.first, !registeredChange.value.isLeaf else {
      return
    }
    let siblings = registeredChange.value.siblings(along: Path(keys: Array(relativeKeys))).map {
      registeredPath.appending($0.path)
    }
    let rows = SplitRows(registeredRows, at: siblings, along: path).rows.map {
      (path: $0.path, value: $0.value, bytes: DisconnectRow.encode($0.value, of: $0.operation))
    }
    var registered = connection.session.registeredCost
    for (path, value) in values { registered -= DisconnectCost(path, value) }
    for row in rows { registered += DisconnectCost(row.path, row.value) }
    try check(registered, rows.map(\.bytes))
    let writer = try batch.requireWriter()
    try writer.clear(KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: registeredPath)))
    for row in rows {
      try writer.set(RowKeys.disconnect(ofSession: connection.name, at: row.path), row.bytes)
    }
    journal.change(connection, \.registeredCost, to: registered)
  }

  /// Rejects onDisconnect writes beyond the limits of a session.
  private func check(_ registered: DisconnectCost, _ rows: [[UInt8]]) throws {
    guard registered.count <= limits.onDisconnectsPerConnection else {
      throw RealtimeError(
        .failure,
        "too many onDisconnect operations: a connection may hold \(limits.onDisconnectsPerConnection)")
    }
    guard registered.bytes <= limits.onDisconnectBytes,
      rows.allSatisfy({ $0.count <= StoreLimits.maximumValueBytes })
    else { throw RealtimeError.writeTooBig }
  }

  /// Performs the onDisconnect writes of sessions, each as one write, and removes their rows in the same
  /// commit.
  func performWrites(of sessions: some Sequence<String>) throws {
    for session in sessions {
      let registered = try registeredRows(of: session)
      guard !registered.isEmpty else { continue }
      let policy = try batch.policy().policy
      if policy.policy.awaitsRules, !policy.allowsEverything(registered.caller) {
        executor.events.sessionWaits()
        continue
      }
      try batch.requireWriter().clear(KeyRange(prefix: RowKeys.prefix(ofSession: session)))
      try batch.writes.apply(FoldedChanges(try permittedValues(of: registered)).changes)
    }
  }

  /// The registered values of a session, with the caller as it is now: nobody if its credentials were revoked.
  func registeredRows(of session: String) throws -> DisconnectRows {
    var registered = try DisconnectRows(session: session, in: tree.view)
    if executor.revocations.isRevoked(registered.caller) { registered.caller = .nobody }
    return registered
  }
}
