// One client's connection: the operations it submits, in the order it submits them. Every call returns at
// once; answers and pushes reach the sink in one order with everything else the connection is told.

public import RealtimeModel

/// A client's connection to a database.
public final class RealtimeConnection: Sendable {
  /// The session's name: unguessable, new for each connection.
  public let session: String
  private let database: RealtimeDatabase
  let state: ConnectionState

  init(session: String, database: RealtimeDatabase, state: ConnectionState) {
    self.session = session
    self.database = database
    self.state = state
  }

  /// Changes on whose behalf everything submitted later runs. Listens that the new caller may not have are
  /// ended with a ``RealtimePush/Body/cancel(_:)``.
  ///
  /// - Parameter request: the number to answer under with ``RealtimeResponse/done``; nil for no answer.
  public func authenticate(_ caller: Caller, request: Int64? = nil) {
    submit(.authenticate(caller), request)
  }

  /// Starts a listen: its data, then the answer ``RealtimeResponse/listening(warnings:)``, then news.
  ///
  /// A second listen for the same path and tag replaces the first.
  /// - Parameters:
  ///   - tag: the client's name for a filtered query; nil for a default listen.
  ///   - hash: the hash of what the client holds, `""` for nothing: if it is up to date no data is sent. nil
  ///     to have the data sent in any case.
  ///   - compoundHash: hashes of ranges of what the client holds, to have only the ranges that differ sent.
  ///   - request: the number to answer under; nil for no answer.
  public func listen(
    _ path: Path, query: QuerySpec = .default, tag: Int64? = nil, hash: String?,
    compoundHash: CompoundHash? = nil, request: Int64?
  ) {
    submit(
      .listen(.init(path: path, query: query, tag: tag, hash: hash, compoundHash: compoundHash)), request)
  }

  /// Ends a listen; nothing is pushed for it after the answer ``RealtimeResponse/done``.
  public func unlisten(_ path: Path, tag: Int64? = nil, request: Int64?) {
    submit(.unlisten(path, tag: tag), request)
  }

  /// Reads once; answered with ``RealtimeResponse/value(_:)``.
  public func get(_ path: Path, query: QuerySpec = .default, request: Int64) {
    submit(.get(path, query), request)
  }

  /// Replaces a value, or a priority if the path ends in `.priority`.
  ///
  /// - Parameter ifHash: the hash that the value must have, `""` for none; else the answer is a failure with
  ///   status `datastale`. nil to write in any case.
  public func set(_ path: Path, to node: Node, ifHash: String? = nil, request: Int64?) {
    submit(.write(.set(path, node), hash: ifHash), request)
  }

  /// Replaces the values at several relative paths at once.
  public func update(_ path: Path, _ changes: [(Path, Node)], request: Int64?) {
    submit(.write(.update(path, changes), hash: nil), request)
  }

  /// Has a value replaced when this connection ends, however it ends; superseding what was registered at or
  /// below it.
  public func onDisconnectSet(_ path: Path, to node: Node, request: Int64?) {
    submit(.onDisconnect(.set(path, node)), request)
  }

  /// Has the values at several relative paths replaced when this connection ends.
  public func onDisconnectUpdate(_ path: Path, _ changes: [(Path, Node)], request: Int64?) {
    submit(.onDisconnect(.update(path, changes)), request)
  }

  /// Forgets what was registered for the connection's end at and below a path.
  public func onDisconnectCancel(_ path: Path, request: Int64?) {
    submit(.cancelOnDisconnect(path), request)
  }

  /// Ends the connection: what was registered for its end happens, its listens end, and nothing more is
  /// delivered.
  public func close() {
    guard state.markClosed() else { return }
    database.remove(state)
    submit(.close, nil)
  }

  private func submit(_ action: RealtimeOperation.Action, _ request: Int64?) {
    database.enqueue(RealtimeOperation(action, from: .connection(state, request: request)))
  }
}
