// Records a batch's changes to sessions and other in-memory state, and undoes them if the commit fails. The
// store itself rolls back rows.
//
// Invariant: `rollBack` restores the state before the batch. Journals of several batches are rolled back from the
// last to the first.

import RealtimeModel

/// The undo log of one batch.
///
/// `@unchecked Sendable`: only batches, which execute one at a time, and the batch loop between them access
/// it.
final class SessionJournal: @unchecked Sendable {
  private var undo: [() -> Void] = []

  /// Changes a property of a session.
  func change<Value>(
    _ connection: ConnectionState, _ part: WritableKeyPath<ConnectionState.Session, Value>, to value: Value
  ) {
    let before = connection.session[keyPath: part]
    connection.session[keyPath: part] = value
    undo.append { connection.session[keyPath: part] = before }
  }

  /// Adds, replaces or removes a listen, without copying the other listens.
  func change(_ connection: ConnectionState, listen name: ListenName, to listen: OpenListen?) {
    let before = connection.session.listens[name]
    connection.session.listens[name] = listen
    undo.append { connection.session.listens[name] = before }
  }

  /// Records how to undo a change that was made elsewhere.
  func record(_ undoChange: @escaping () -> Void) { undo.append(undoChange) }

  /// Undoes every recorded change, latest first.
  func rollBack() {
    while let last = undo.popLast() { last() }
  }
}
