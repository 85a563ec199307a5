// Defines how responses and pushes leave the engine: in order, in batches, with one call for all connections
// of an event loop.

public import RealtimeModel

/// The endpoint's side of one connection.
public protocol RealtimeSink: AnyObject, Sendable {
  /// The group that delivers to this connection; constant for the connection's lifetime.
  var group: any RealtimeSinkGroup { get }
}

/// Connections that receive their outputs together, such as those of one event loop.
public protocol RealtimeSinkGroup: AnyObject, Sendable {
  /// Delivers outputs to connections of this group. For each database there is one caller at a time, and
  /// calls are in order. The method must be quick and must not block.
  func deliver(_ deliveries: [RealtimeDelivery])
}

/// The next outputs of one connection.
public struct RealtimeDelivery: Sendable {
  /// The connection.
  public let sink: any RealtimeSink
  /// Responses and pushes, in order.
  public let outputs: [RealtimeOutput]
}

/// One output for a connection.
public enum RealtimeOutput: Sendable {
  /// A change for a listen.
  case push(RealtimePush)
  /// The response to a request, with the endpoint's number for it.
  case response(request: Int64, RealtimeResponse)
  /// Another connection has ended this session. No output follows, and pending requests are neither performed
  /// nor answered.
  case ended
}

/// The response to a request.
public enum RealtimeResponse: Sendable {
  /// The operation succeeded.
  case done
  /// The listen has started and its data was sent; with the protocol's warnings, such as `no_index`.
  case listening(warnings: [String])
  /// The requested value.
  case value(Node)
  /// The operation was rejected.
  case failure(RealtimeError)
}
