// What sessions register for their end: as rows, so that it outlives the server, and as one write when the session ends.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// Registers values for a session's end.
  mutating func register(_ write: Write, for connection: ConnectionState) throws {
    guard let writer else { throw failure }
    let request = try WriteRequest(write, limits: sequencer.limits, bytes: sequencer.limits.socketWriteBytes)
    var resolved = request
    try resolved.resolve(in: tree, now: now)
    try mayWrite(resolved.changes, connection.session.caller)
    for (path, value) in request.changes {
      let row = RowKeys.disconnect(ofSession: connection.name, at: path)
      try writer.clear(KeyRange(prefix: row))
      try writer.set(row, NodeEncoder.encode(value))
    }
    if !connection.session.hasDisconnectRows { try self.write(connection.session.caller, of: connection) }
    connection.session.hasDisconnectRows = true
  }

  func write(_ caller: Caller, of connection: ConnectionState) throws {
    try writer?.set(RowKeys.caller(ofSession: connection.name), CallerCoding.encode(caller))
  }

  func cancel(_ path: Path, for connection: ConnectionState) throws {
    guard connection.session.hasDisconnectRows else { return }
    guard let writer else { throw failure }
    try writer.clear(KeyRange(prefix: RowKeys.disconnect(ofSession: connection.name, at: path)))
  }

  mutating func end(_ connection: ConnectionState) throws {
    connection.session.hasEnded = true
    connection.session.listens = [:]
    _ = sequencer.unregister(connection.name)
    steps.append(.end(connection))
    if connection.session.hasDisconnectRows { try fire(connection.name) }
  }

  mutating func takeOver(_ session: String) throws {
    if let connection = sequencer.unregister(session) {
      try end(connection)
    } else {
      try fire(session)
    }
  }

  /// Writes what a session registered for its end, as one write, and forgets it: exactly once, since both are one commit.
  private mutating func fire(_ session: String) throws {
    guard let writer else { throw failure }
    let all = KeyRange(prefix: RowKeys.prefix(ofSession: session))
    let registered = try DisconnectRows(session: session, in: tree.view)
    guard !registered.isEmpty else { return }
    try writer.clear(all)
    var folded = FoldedChanges()
    for (path, value) in registered.values {
      do {
        var request = try WriteRequest(
          .set(path, value), limits: sequencer.limits, bytes: sequencer.limits.restWriteBytes)
        try request.resolve(in: tree, now: now)
        try mayWrite(request.changes, registered.caller)
        for change in request.changes { folded.add(change.path, change.value) }
      } catch is RealtimeError {
        // What is no longer allowed when the session ends is dropped; nobody is there to be told.
        continue
      }
    }
    try apply(folded.changes)
  }

  /// Ends sessions that a process before this one left behind.
  mutating func fire(_ sessions: some Sequence<String>) throws {
    for session in sessions { try fire(session) }
  }

  /// Forgets what a session registered, unfired.
  func forget(_ session: String) throws {
    try writer?.clear(KeyRange(prefix: RowKeys.prefix(ofSession: session)))
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
