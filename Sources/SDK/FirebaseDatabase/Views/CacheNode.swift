// A cache node: a cached value and whether it is complete.
//
// Invariant: data that a filtered or incomplete value does not contain is unknown, not absent.

import RealtimeModel

/// A cached value and whether it is complete.
struct CacheNode {
  var node: Node
  /// Whether the complete value is known. If the value is filtered, this means the complete result of the
  /// query.
  var isComplete: Bool
  /// Whether children outside the query's window are missing.
  var isFiltered: Bool

  static let nothing = CacheNode(node: .empty, isComplete: false, isFiltered: false)

  /// Whether the complete value at a path is known.
  func isComplete(at path: Path) -> Bool {
    guard let key = path.first else { return isComplete && !isFiltered }
    return isComplete(forChild: key)
  }

  /// Whether a child's complete value is known.
  func isComplete(forChild key: ChildKey) -> Bool {
    (isComplete && !isFiltered) || (key.isPriority ? node.priority != nil : !node.child(key).isEmpty)
  }
}

/// The caches of a view: the server's data, and the data shown to observers.
struct ViewCache {
  /// The data shown to observers: the server's data with pending writes applied, filtered.
  var event: CacheNode
  /// The server's data.
  var server: CacheNode

  /// The complete result that observers see, if known.
  var completeEventNode: Node? { event.isComplete ? event.node : nil }

  /// The server's complete data, if known.
  var completeServerNode: Node? { server.isComplete ? server.node : nil }

  func withEvent(_ node: Node, isComplete: Bool, isFiltered: Bool) -> ViewCache {
    ViewCache(event: CacheNode(node: node, isComplete: isComplete, isFiltered: isFiltered), server: server)
  }

  func withServer(_ node: Node, isComplete: Bool, isFiltered: Bool) -> ViewCache {
    ViewCache(event: event, server: CacheNode(node: node, isComplete: isComplete, isFiltered: isFiltered))
  }
}
