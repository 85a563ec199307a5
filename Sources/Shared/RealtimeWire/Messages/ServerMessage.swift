// What a server may say in protocol v5, as types, for both ends.

public import RealtimeModel

/// A message from a server to a client.
public enum ServerMessage: Sendable {
  /// A control message.
  case control(ServerControl)
  /// The answer to a request.
  case response(ServerResponse)
  /// Something the client did not ask for at this moment.
  case push(ServerPush)
}

/// A control message from a server.
public enum ServerControl: Sendable, Equatable {
  /// Opens a connection.
  case hello(ServerHello)
  /// Come again, to this host.
  case reset(host: String)
  /// Go away and do not come again; with the reason.
  case shutdown(String)
  /// An error to write down.
  case error(String)
  /// The answer to a ping.
  case pong
  /// Acknowledges the switch to this transport.
  case switchAcknowledged
  /// Nothing more will come on this transport.
  case endOfTransmission
  /// Anything else, which is ignored.
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
  /// The session's identifier; who knows it can take the session over.
  public var sessionID: String

  /// Creates a hello.
  public init(timestamp: Int64, host: String, sessionID: String, version: String = "5") {
    self.timestamp = timestamp
    self.version = version
    self.host = host
    self.sessionID = sessionID
  }
}

/// The answer to a request.
public struct ServerResponse: Sendable, Equatable {
  /// The number of the request.
  public var number: Int64
  /// How it went.
  public var status: RealtimeError.Status
  /// The payload: data of a `g`, warnings of a `q`, the text of an error. Arrays arrive as objects.
  public var payload: Node

  /// Creates an answer.
  public init(_ number: Int64, _ status: RealtimeError.Status, _ payload: Node = .leaf(.string(""))) {
    self.number = number
    self.status = status
    self.payload = payload
  }

  /// The answer that an error gives.
  public init(_ number: Int64, _ error: RealtimeError) {
    self.init(number, error.status, .leaf(.string(error.message)))
  }

  /// The error that a failed request stands for; `nil` for a success.
  public var error: RealtimeError? {
    if status == .ok { return nil }
    if case .string(let text)? = payload.leafValue { return RealtimeError(status, text) }
    return RealtimeError(status, status.rawValue)
  }
}

/// What a server sends on its own account.
public enum ServerPush: Sendable {
  /// The value at a path is now this (`d`).
  case data(path: Path, data: Node, tag: Int64?)
  /// The values at paths below a path are now these (`m`); an empty node removes.
  case merge(path: Path, children: [(Path, Node)], tag: Int64?)
  /// Ranges of the value at a path are now these (`rm`).
  case rangeMerge(path: Path, ranges: [RangeMergeFields], tag: Int64?)
  /// A listen is revoked (`c`); with the query object as JSON when only that one is.
  case cancel(path: Path, queryText: [UInt8]?)
  /// The credential is not valid any more (`ac`).
  case authRevoked(RealtimeError)
  /// The App Check token is not valid any more (`apc`).
  case appCheckRevoked(RealtimeError)
  /// A text for a developer (`sd`).
  case securityDebug(String)
  /// Anything else, which is ignored.
  case unknown(String)
}

/// One range of a range merge: what lies after `start` up to and with `end` is now exactly this.
public struct RangeMergeFields: Sendable, Equatable {
  /// The path before the range, which is not part of it; `nil` for the beginning.
  public var start: Path?
  /// The last path of the range; `nil` for the end.
  public var end: Path?
  /// What lies in the range.
  public var data: Node

  /// Creates a range.
  public init(start: Path?, end: Path?, data: Node) {
    self.start = start
    self.end = end
    self.data = data
  }
}
