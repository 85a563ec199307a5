// What one pass over a batch changed in memory outside the tree: the sessions. Rows are taken back by the store when a
// commit fails; this takes back the rest.
//
// Invariant: after `rollBack` sessions are as they were before the pass. Journals of passes in flight are rolled back
// latest first.

import RealtimeModel

/// The way back from one pass.
///
/// `@unchecked Sendable`: touched in sequenced bodies, which run one at a time, and by the pump while none runs.
final class SessionJournal: @unchecked Sendable {
  private var undo: [() -> Void] = []

  /// Changes a part of a session.
  func change<Value>(
    _ connection: ConnectionState, _ part: WritableKeyPath<ConnectionState.Session, Value>, to value: Value
  ) {
    let before = connection.session[keyPath: part]
    connection.session[keyPath: part] = value
    undo.append { connection.session[keyPath: part] = before }
  }

  /// Adds, replaces or removes a listen, without a copy of the others.
  func change(_ connection: ConnectionState, listen name: ListenName, to query: QuerySpec?) {
    let before = connection.session.listens[name]
    connection.session.listens[name] = query
    undo.append { connection.session.listens[name] = before }
  }

  /// Notes how to take back something that was done elsewhere.
  func note(_ rollBack: @escaping () -> Void) { undo.append(rollBack) }

  /// Takes back everything noted, latest first.
  func rollBack() {
    while let last = undo.popLast() { last() }
  }
}
