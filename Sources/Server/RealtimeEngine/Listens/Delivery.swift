// How answers and pushes leave the engine: in order, in batches, one call for all the connections of an event loop.

public import RealtimeModel

/// The endpoint's side of one connection.
public protocol RealtimeSink: AnyObject, Sendable {
  /// The group through which this connection is reached; the same for the connection's whole life.
  var group: any RealtimeSinkGroup { get }
}

/// Connections that can be reached together, as those of one event loop.
public protocol RealtimeSinkGroup: AnyObject, Sendable {
  /// Hands over what connections of this group are told. Called by one caller at a time for a database, in order.
  /// It must be quick and must not block.
  func deliver(_ deliveries: [RealtimeDelivery])
}

/// What one connection is told, in this order.
public struct RealtimeDelivery: Sendable {
  /// The connection.
  public let sink: any RealtimeSink
  /// Answers and pushes, in order.
  public let outputs: [RealtimeOutput]
}

/// One thing a connection is told.
public enum RealtimeOutput: Sendable {
  /// News about a listen.
  case push(RealtimePush)
  /// The answer to a request, by the number that the endpoint gave it.
  case response(request: Int64, RealtimeResponse)
  /// Another connection has ended this one's session: nothing follows, and nothing it still asks is done or answered.
  case ended
}

/// The answer to a request.
public enum RealtimeResponse: Sendable {
  /// Done.
  case done
  /// The listen stands and its data has been sent; with the protocol's warnings, as `no_index`.
  case listening(warnings: [String])
  /// The value that was asked for.
  case value(Node)
  /// Refused.
  case failure(RealtimeError)
}
