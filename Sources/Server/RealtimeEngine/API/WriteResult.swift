// What operations outside a connection return.

public import RealtimeModel

/// The outcome of a write that was not refused.
public enum WriteResult: Sendable {
  /// Written and durable. For a set the value with its server values resolved; empty for an update.
  case written(Node)
  /// Nothing was written: the location holds another value than the hash says.
  case stale(current: Node)
}

/// A location without what lies below its children.
public enum ShallowNode: Sendable, Equatable {
  /// Nothing.
  case empty
  /// A leaf.
  case leaf(LeafValue)
  /// The keys of the children, in key order.
  case children([RealtimeModel.ChildKey])
}
