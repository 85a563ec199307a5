// Defines the steps that a batch passes to the fan-out stage, in order.

import RealtimeModel

/// A location whose value a write replaced.
struct Change: Sendable {
  /// The location; ends in `.priority` if only the priority was replaced.
  let path: Path
  /// The new value.
  let value: Node
  /// The earlier value, where it was known without reading all of it.
  let before: Node?
}

/// A step of the fan-out stage.
enum FanOutStep: Sendable {
  /// A write took effect.
  ///
  /// Its changes are in ascending order of paths, none inside another. `windows` holds, for locations that
  /// are followed by rows, the changes of their filtered values.
  case write([Change], windows: [Path: [WindowChange]])
  /// A location that was followed by rows is followed as one value from now on: this one.
  case fullValue(Path, Node)
  /// An operation is answered.
  case answer(RealtimeOperation.Origin, OperationResult)
  /// A listen starts on a location with this value.
  case listen(
    ConnectionState, RealtimeOperation.Listen, Node, PreparedListen, warnings: [String], request: Int64?)
  /// A listen ends. If it was revoked, its client receives the error.
  case unlisten(ConnectionState, ListenName, revoked: RealtimeError?)
  /// A connection's session has ended. Its client is notified if another connection ended it.
  case end(ConnectionState, notifiesClient: Bool)
}

/// Results computed from a listen's large value, off the sequencer and the fan-out stage.
struct PreparedListen: Sendable {
  /// The location with its children sorted in the order of the query. It has the window if that may be wide
  /// or was hashed.
  var location: OrderedLocation?
  /// The first push for the prepared value; the value may have changed since.
  var firstPush: InitialListenData.Prepared?
  /// Whether the value is filtered: it has only the children that some window shows, and later changes
  /// concern only these.
  var isPartial = false
}

/// The result of an operation.
enum OperationResult: Sendable {
  case written(Node)
  case stale(Node)
  case value(Node)
  case shallow(ShallowNode)
  case setting(String?)
  case rules(RulesFile?)
  case count(Int)
  case done
  case failure(RealtimeError)
}
