// The messages from servers to clients in protocol v5.

public import RealtimeModel

/// A message from a server to a client.
public enum ServerMessage: Sendable {
  /// A control message.
  case control(ServerControl)
  /// The response to a request.
  case response(ServerResponse)
  /// A message that is not a response.
  case push(ServerPush)
}

/// A control message from a server.
public enum ServerControl: Sendable, Equatable {
  /// Opens a connection.
  case hello(ServerHello)
  /// The client should reconnect to this host.
  case reset(host: String)
  /// The client should disconnect and not reconnect. The text is the reason.
  case shutdown(String)
  /// An error to log.
  case error(String)
  /// The response to a ping.
  case pong
  /// Acknowledges that the session moves to this transport (from long polling to a WebSocket).
  case switchAcknowledged
  /// The last message on this transport.
  case endOfTransmission
  /// An unknown message, which is ignored.
  case unknown(String)
}

/// The first message of a connection.
public struct ServerHello: Sendable, Equatable {
  /// The server's clock in milliseconds since 1970.
  public var timestamp: Int64
  /// The protocol's version.
  public var version: String
  /// The host, with port, that the client should use from now on.
  public var host: String
  /// The session's identifier. It is a secret, since it permits taking over the session.
  public var sessionID: String

  /// Creates a hello.
  public init(timestamp: Int64, host: String, sessionID: String, version: String = "5") {
    self.timestamp = timestamp
    self.version = version
    self.host = host
    self.sessionID = sessionID
  }
}

/// The response to a request.
public struct ServerResponse: Sendable, Equatable {
  /// The number of the request.
  public var number: Int64
  /// The outcome of the request.
  public var status: RealtimeError.Status
  /// The payload: the data of a `g`, the warnings of a `q`, the message of an error. Arrays arrive as objects.
  public var payload: Node

  /// Creates a response.
  public init(_ number: Int64, _ status: RealtimeError.Status, _ payload: Node = .leaf(.string(""))) {
    self.number = number
    self.status = status
    self.payload = payload
  }

  /// Creates a response that reports an error.
  public init(_ number: Int64, _ error: RealtimeError) {
    self.init(number, error.status, .leaf(.string(error.message)))
  }

  /// The error of a failed request; `nil` for a success.
  public var error: RealtimeError? {
    if status == .ok { return nil }
    if case .string(let text)? = payload.leafValue { return RealtimeError(status, text) }
    return RealtimeError(status, status.rawValue)
  }
}

/// A message from a server that is not a response.
public enum ServerPush: Sendable {
  /// Sets the value at a path (`d`).
  case data(path: Path, data: Node, tag: Int64?)
  /// Sets the values at paths below a path (`m`); an empty node removes.
  case merge(path: Path, children: [(Path, Node)], tag: Int64?)
  /// Replaces ranges of the value at a path (`rm`).
  case rangeMerge(path: Path, ranges: [RangeMergeFields], tag: Int64?)
  /// Revokes listens (`c`): the listen with this query object as JSON, or all at the path.
  case cancel(path: Path, queryText: [UInt8]?)
  /// The credential has expired or was revoked (`ac`).
  case authRevoked(RealtimeError)
  /// The App Check token has expired or was revoked (`apc`).
  case appCheckRevoked(RealtimeError)
  /// A message for developers (`sd`).
  case securityDebug(String)
  /// An unknown message, which is ignored.
  case unknown(String)
}

/// One range of a range merge: replaces the values after `start` up to and including `end`.
public struct RangeMergeFields: Sendable, Equatable {
  /// The exclusive start of the range; `nil` for the start of the value.
  public var start: Path?
  /// The inclusive end of the range; `nil` for the end of the value.
  public var end: Path?
  /// The values in the range.
  public var data: Node

  /// Creates a range.
  public init(start: Path?, end: Path?, data: Node) {
    self.start = start
    self.end = end
    self.data = data
  }
}
