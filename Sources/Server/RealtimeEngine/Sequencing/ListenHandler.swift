// Handles the start and the end of listens: checks access and the limits of the connection and the location,
// and reads the first value.

import OrderedStore
import RealtimeModel

/// Starts and ends listens in a batch.
struct ListenHandler: BatchHandler {
  let batch: BatchExecution

  func start(
    _ listen: RealtimeOperation.Listen, of connection: ConnectionState, _ request: Int64?,
    for operation: RealtimeOperation
  ) throws {
    let permission = try batch.authorization.mayListen(listen.path, listen.query, connection.session.caller)
    let name = ListenName(path: listen.path, tag: listen.tag)
    guard
      connection.session.listens[name] != nil
        || connection.session.listens.count < limits.listensPerConnection
    else {
      throw RealtimeError(
        .failure, "too many listens: a connection may hold \(limits.listensPerConnection)")
    }
    if !listen.isDefault {
      try checkOrderLimit(listen)
      // The fan-out stage may deliver to other listens of the location when this one starts.
      try batch.authorization.decideAgain(matching: [listen.path])
    }
    if let partialValue = try batch.rowWindows.start(listen, for: operation) {
      change(connection, listen: name, to: OpenListen(connection, name, listen.query), permission)
      return batch.add(
        .listen(
          connection, listen, partialValue, PreparedListen(isPartial: true), warnings: [], request: request))
    }
    let value =
      if !listen.isDefault, !listen.query.isWide,
        executor.orders.hasOrder(listen.query.ordering, at: listen.path),
        let node = try tree.nodeIfSmall(at: listen.path, staging),
        !listen.isHashed || node.estimatedSize(of: listen.query) <= staging.preparedBytes
      {
        // The fan-out stage already keeps the children in this order for another listen, so they are not
        // sorted here.
        OrderedLocation(node)
      } else {
        try batch.reads.value(
          at: listen.path, for: operation, listen.isDefault ? nil : listen.query, isHashed: listen.isHashed)
      }
    // From now on the fan-out stage has the complete value, so the windows of the location are no longer updated from
    // rows.
    if !listen.isDefault { executor.windows.remove(listen.path, journal) }
    change(connection, listen: name, to: OpenListen(connection, name, listen.query), permission)
    let warnings = try batch.settings.hasIndex(listen.query.ordering, listen.path) ? [] : ["no_index"]
    batch.add(
      .listen(
        connection, listen, value.node,
        .init(location: listen.isDefault ? nil : value, firstPush: operation.results.firstPush),
        warnings: warnings, request: request))
  }

  /// Rejects a listen that would exceed the location's limit of sort orders. The fan-out stage keeps the children of
  /// a location in each order with a limit, and every write updates all of them. The order by key does not count:
  /// nodes keep their children in it anyway.
  private func checkOrderLimit(_ listen: RealtimeOperation.Listen) throws {
    let (orders, maximum) = (executor.orders, limits.ordersPerLocation)
    guard listen.query.limit != nil, listen.query.ordering != .key,
      !orders.hasOrder(listen.query.ordering, at: listen.path),
      orders.count(at: listen.path) >= maximum
    else { return }
    throw RealtimeError(
      .failure,
      "too many orders: a location may be listened to with limits in \(maximum) at a time (ordersPerLocation)"
    )
  }

  func stop(_ name: ListenName, of connection: ConnectionState) {
    change(connection, listen: name, to: nil)
    batch.add(.unlisten(connection, name, revoked: nil))
  }

  /// Ends a listen with an error.
  func revoke(_ name: ListenName, of connection: ConnectionState, _ error: RealtimeError) {
    change(connection, listen: name, to: nil)
    batch.add(.unlisten(connection, name, revoked: error))
  }

  /// Adds, replaces or removes a listen in the executor's state.
  private func change(
    _ connection: ConnectionState, listen name: ListenName, to listen: OpenListen?,
    _ permission: ListenPermission? = nil
  ) {
    let before = connection.session.listens[name]
    journal.change(connection, listen: name, to: listen)
    let index = executor.openListens
    if let before { index.remove(before, journal) }
    if let listen { index.add(listen, permission, journal) }
    executor.orders.change(name, from: before?.query, to: listen?.query, journal)
    if let before { executor.windows.removeListen(name.path, before.query, journal) }
  }
}
