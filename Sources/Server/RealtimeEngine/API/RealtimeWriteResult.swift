// Defines the results of operations outside connections.

package import RealtimeModel

/// The result of a permitted write.
package enum RealtimeWriteResult: Sendable {
  /// The write is durable. For a set it holds the value with resolved server values; for an update it is empty. It is
  /// nil if the value reveals stored data that the caller may not read.
  case written(Node?)
  /// Nothing was written: the existing value has another hash.
  case stale(current: Node)
}

/// A location without the values of its children.
package enum ShallowNode: Sendable, Equatable {
  /// No value.
  case empty
  /// A leaf value.
  case leaf(LeafValue)
  /// The keys of the children, in key order.
  case children([RealtimeModel.ChildKey])
}
