// Handles changes of a connection's caller, and the ends of sessions.

import Access
import OrderedStore
import RealtimeModel

/// Authenticates and ends sessions in a batch.
struct SessionHandler: BatchHandler {
  let batch: BatchExecution

  /// Changes a connection's caller, and ends the listens that the new caller has no access to.
  func authenticate(_ connection: ConnectionState, as caller: Principal) throws {
    if executor.revocations.isRevoked(caller) { throw RealtimeError.expiredToken }
    if connection.session.caller == caller { return }
    // Each change authorizes all listens again. If a connection with many listens changes its caller
    // repeatedly, each change gets a separate batch, so that other clients are served in between.
    try batch.countReauthorizedListens(connection.isClosed ? 0 : connection.session.listens.count)
    journal.change(connection, \.caller, to: caller)
    executor.expiries.add(connection)
    if connection.session.registeredCaller != nil {
      try batch.disconnects.store(caller, asCallerOf: connection)
    }
    if connection.isClosed { return }
    for listen in Array(connection.session.listens.values) {
      executor.openListens.invalidate(listen)
      try batch.authorization.decide(listen)
    }
  }

  /// Ends a session and performs its onDisconnect writes.
  ///
  /// - Parameter notifiesClient: whether the connection is notified, because another connection has ended its
  ///   session.
  func end(_ connection: ConnectionState, notifiesClient: Bool = false) throws {
    let notifiesClient = notifiesClient && !connection.session.hasEnded
    journal.change(connection, \.hasEnded, to: true)
    for (name, listen) in connection.session.listens {
      executor.openListens.remove(listen, journal)
      executor.orders.change(name, from: listen.query, to: nil, journal)
      executor.windows.removeListen(name.path, listen.query, journal)
    }
    journal.change(connection, \.listens, to: [:])
    _ = executor.unregister(connection.name, journal)
    batch.add(.end(connection, notifiesClient: notifiesClient))
    if connection.session.registeredCaller != nil {
      try batch.disconnects.performWrites(of: [connection.name])
    }
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
