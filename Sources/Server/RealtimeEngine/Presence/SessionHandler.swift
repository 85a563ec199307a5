// Handles changes of a connection's caller, and the ends of sessions.

import OrderedStore
import RealtimeModel

/// Authenticates and ends sessions in a batch.
struct SessionHandler: BatchHandler {
  let batch: BatchExecution

  /// Changes a connection's caller, and ends the listens that the new caller has no access to.
  func authenticate(_ connection: ConnectionState, as caller: Caller) throws {
    if connection.session.caller == caller { return }
    // Each change authorizes all listens again. If a connection with many listens changes its caller
    // repeatedly, each change gets a separate batch, so that other clients are served in between.
    try batch.countReauthorizedListens(connection.isClosed ? 0 : connection.session.listens.count)
    journal.change(connection, \.caller, to: caller)
    if connection.session.hasDisconnectRows { try batch.disconnects.storeCaller(caller, of: connection) }
    if connection.isClosed { return }
    for (name, query) in connection.session.listens {
      do {
        try batch.mayRead(name.path, query, caller)
      } catch let error as RealtimeError {
        batch.listens.revoke(name, of: connection, error)
      }
    }
  }

  /// Ends a session and performs its onDisconnect writes.
  ///
  /// - Parameter notifiesClient: whether the connection is notified, because another connection has ended its
  ///   session.
  func end(_ connection: ConnectionState, notifiesClient: Bool = false) throws {
    let notifiesClient = notifiesClient && !connection.session.hasEnded
    journal.change(connection, \.hasEnded, to: true)
    for (name, query) in connection.session.listens {
      executor.orders.change(name, from: query, to: nil, journal)
      executor.windows.removeListen(name.path, query, journal)
    }
    journal.change(connection, \.listens, to: [:])
    _ = executor.unregister(connection.name, journal)
    batch.add(.end(connection, notifiesClient: notifiesClient))
    if connection.session.hasDisconnectRows { try batch.disconnects.performWrites(of: [connection.name]) }
  }

  /// Ends a session because its client has connected again on another connection.
  ///
  /// - Parameter connection: the session's connection if it is still open. The executor may not have
  ///   registered it yet.
  func takeOver(_ session: String, of connection: ConnectionState?) throws {
    if let connection = executor.unregister(session, journal) ?? connection {
      try end(connection, notifiesClient: true)
    } else {
      try batch.disconnects.performWrites(of: [session])
    }
  }
}
