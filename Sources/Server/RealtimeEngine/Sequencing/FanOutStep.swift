// What a sequenced operation leaves for the fan-out stage to do, in order.

import RealtimeModel

/// A location whose value a write replaced.
struct Change: Sendable {
  /// The location; ends in `.priority` if only the priority was replaced.
  let path: Path
  /// The value now.
  let value: Node
  /// The value before, where it was known without reading all of it.
  let before: Node?
}

/// A step of the fan-out stage.
enum FanOutStep: Sendable {
  /// A write took effect: its changes in ascending order of paths, none inside another; and for locations
  /// that are followed by rows, the changes of what somebody sees of them.
  case write([Change], windows: [Path: [WindowChange]])
  /// A location that was followed by rows is followed as a whole; with its value.
  case whole(Path, Node)
  /// A request is answered.
  case answer(RealtimeOperation.Origin, OperationResult)
  /// A listen starts on a location with this value, of which something may have been found out beforehand.
  case listen(
    ConnectionState, RealtimeOperation.Listen, Node, PreparedListen, warnings: [String], request: Int64?)
  /// A listen ends; told with a push if it was revoked.
  case unlisten(ConnectionState, ListenName, revoked: RealtimeError?)
  /// A connection has ended; it is told where another has ended it.
  case end(ConnectionState, notifiesClient: Bool)
}

/// What was found out of a large value beside the sequencer and the fan-out stage.
struct PreparedListen: Sendable {
  /// The location with its children in the order of the listen's query, and its window if that may be wide or
  /// was hashed.
  var location: OrderedLocation?
  /// How the listen starts on a value or a window that may have changed since.
  var firstPush: InitialListenData.Prepared?
  /// Whether the value has only children that somebody sees, and what is told of the location is of those.
  var isPartial = false
}

/// The answer to an operation.
enum OperationResult: Sendable {
  case written(Node)
  case stale(Node)
  case value(Node)
  case shallow(ShallowNode)
  case text(String?)
  case rules(RulesFile?)
  case count(Int)
  case done
  case failure(RealtimeError)
}
