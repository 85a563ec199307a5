// Submits the operations of one client's connection, in the order of the calls. Every call returns
// immediately. The connection's sink receives answers and pushes in the order in which they took effect.

package import Access
package import RealtimeModel

/// A client's connection to a database.
package final class RealtimeConnection: Sendable {
  /// The session's name: random, and new for each connection.
  package let session: String
  private let database: RealtimeDatabase
  let state: ConnectionState

  init(session: String, database: RealtimeDatabase, state: ConnectionState) {
    self.session = session
    self.database = database
    self.state = state
  }

  /// Changes the caller of all later operations. A listen that the new caller may not read ends with
  /// ``RealtimePush/Body/cancel(_:)``. When the caller's credentials expire or are revoked, the sink receives
  /// ``RealtimeOutput/authRevoked(_:)``.
  ///
  /// - Parameter request: the request number of the answer ``RealtimeResponse/done``; nil for no answer.
  package func authenticate(_ caller: Principal, request: Int64? = nil) {
    let caller = caller.acting(in: database.project)
    // A revocation that is sequenced before this request is found when the request executes. A later revocation
    // checks the caller that is recorded here.
    state.recordSubmitted(caller)
    submit(.authenticate(caller), request)
  }

  /// Starts a listen. The sink receives its data, the answer ``RealtimeResponse/listening(warnings:)``, and
  /// later changes.
  ///
  /// A second listen for the same path and tag replaces the first.
  /// - Parameters:
  ///   - tag: the client's name for a filtered query; nil for a listen without a filter.
  ///   - hash: the hash of the value that the client holds, or `""` if it holds none. If the hash matches, no
  ///     data is sent. nil to send the data unconditionally.
  ///   - compoundHash: hashes of ranges of the value that the client holds. The engine then sends only the
  ///     ranges that differ.
  ///   - request: the request number of the answer; nil for no answer.
  package func listen(
    _ path: Path, query: QuerySpec = .default, tag: Int64? = nil, hash: String?,
    compoundHash: CompoundHash? = nil, request: Int64?
  ) {
    submit(
      .listen(.init(path: path, query: query, tag: tag, hash: hash, compoundHash: compoundHash)), request)
  }

  /// Ends a listen. No pushes for it follow the answer ``RealtimeResponse/done``.
  package func unlisten(_ path: Path, tag: Int64? = nil, request: Int64?) {
    submit(.unlisten(path, tag: tag), request)
  }

  /// Reads once; the answer is ``RealtimeResponse/value(_:)``.
  package func get(_ path: Path, query: QuerySpec = .default, request: Int64) {
    submit(.get(path, query), request)
  }

  /// Replaces a value, or a priority if the path ends in `.priority`.
  ///
  /// - Parameter ifHash: the hash that the existing value must have, `""` for no value; nil to write
  ///   unconditionally. If the hash differs, the answer is a failure with status `datastale`.
  package func set(_ path: Path, to node: Node, ifHash: String? = nil, request: Int64?) {
    submit(.write(.set(path, node), hash: ifHash), request)
  }

  /// Replaces the values at several relative paths in one write.
  package func update(_ path: Path, _ changes: [(Path, Node)], request: Int64?) {
    submit(.write(.update(path, changes), hash: nil), request)
  }

  /// Registers a value that is written when this connection ends. It supersedes values registered at and
  /// below its path.
  package func onDisconnectSet(_ path: Path, to node: Node, request: Int64?) {
    submit(.onDisconnect(.set(path, node)), request)
  }

  /// Registers values at several relative paths that are written when this connection ends.
  package func onDisconnectUpdate(_ path: Path, _ changes: [(Path, Node)], request: Int64?) {
    submit(.onDisconnect(.update(path, changes)), request)
  }

  /// Cancels the onDisconnect writes at and below a path.
  package func onDisconnectCancel(_ path: Path, request: Int64?) {
    submit(.cancelOnDisconnect(path), request)
  }

  /// Ends the connection: performs its onDisconnect writes and ends its listens. The sink receives nothing
  /// more.
  package func close() {
    guard state.markClosed() else { return }
    database.remove(state)
    submit(.close, nil)
  }

  private func submit(_ action: RealtimeOperation.Action, _ request: Int64?) {
    database.enqueue(RealtimeOperation(action, from: .connection(state, request: request)))
  }
}
