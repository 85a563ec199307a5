// The actions that the connection's state machine requests, and the events that it reports.

import RealtimeModel
import RealtimeWire

/// One write in the form in which the client sends it.
struct OutgoingWrite: Sendable {
  enum Change: Sendable {
    case put(Node, hash: String?)
    case merge([(Path, Node)])
  }

  let id: Int
  let path: Path
  let change: Change

  /// Whether the write is a transaction. A transaction must not be sent twice.
  var isTransaction: Bool {
    if case .put(_, hash: .some) = change { return true }
    return false
  }
}

/// An operation that the server executes when this client is disconnected.
struct DisconnectOperation: Sendable {
  enum Change: Sendable {
    case put(Node)
    case merge([(Path, Node)])
    case cancel
  }

  let id: Int
  let path: Path
  let change: Change
}

/// An action that the state machine requests.
enum ConnectionAction: Sendable {
  /// Fetch the tokens, and call `tokensFetched` with the generation.
  case fetchTokens(generation: Int, forcingAuth: Bool, forcingAppCheck: Bool)
  /// Fetch a new App Check token, and call `appCheckChanged`.
  case refreshAppCheck
  /// Open a transport; its events carry this generation.
  case open(generation: Int, lastSession: String?, host: String?)
  /// Send a message on the open transport.
  case send(ClientMessage)
  /// Send a listen; its hash is computed at this moment.
  case sendListen(Listen, number: Int64)
  /// Close the transport.
  case close
  /// Call `retry` with the generation after a number of milliseconds.
  case retry(generation: Int, after: Int64)
  /// Handle an event of the connection.
  case report(ConnectionEvent)
}

/// An event that the connection reports.
enum ConnectionEvent: Sendable {
  /// The connection sends requests from now on. The time is the server's.
  case connected(serverTime: Int64)
  /// True when the server accepted the ID token, false when the connection no longer has an accepted token.
  case authenticated(Bool)
  /// The connection on which requests were sent was lost.
  case disconnected
  case push(ServerPush)
  case listenAnswered(Listen, warnings: [String], RealtimeError?)
  case writeAnswered(Int, RealtimeError?)
  case disconnectOperationAnswered(DisconnectOperation, RealtimeError?)
  case getAnswered(Int, Result<Node, RealtimeError>)
  /// A message for the log.
  case logMessage(isError: Bool, String)
}
