// An operation of the sync tree: a change of data that the tree applies to its sync points.
//
// Invariant: `path` is relative to the sync point that the operation has reached.

import RealtimeModel

/// A change of data, with a path that is relative to one location.
struct SyncOperation {
  enum Source: Equatable {
    /// The app wrote.
    case user
    /// The server pushed data of default listens.
    case server
    /// The server pushed data of one tagged query.
    case query(QuerySpec)
  }

  enum Change {
    /// The value was replaced.
    case overwrite(Node)
    /// Values at descendant paths were replaced atomically.
    case merge(PathTree<Node>)
    /// A write was acknowledged; the tree names the paths that it wrote.
    case acknowledge(PathTree<Bool>, isRevert: Bool)
    /// The server has sent all data.
    case listenComplete
  }

  var source: Source
  var path: Path
  var change: Change

  /// The operation with a path relative to a child; nil if it does not change the child.
  func forChild(_ key: ChildKey) -> SyncOperation? {
    var operation = self
    guard path.isRoot else {
      operation.path = path.droppingFirst
      return operation
    }
    switch change {
    case .overwrite(let node):
      operation.change = .overwrite(node.child(key))
    case .merge(let tree):
      guard let child = tree.children[key] else { return nil }
      operation.change = child.value.map { .overwrite($0) } ?? .merge(child)
    case .acknowledge(let affected, let isRevert):
      if affected.value == nil {
        operation.change = .acknowledge(affected.children[key] ?? PathTree(), isRevert: isRevert)
      }
    case .listenComplete: break
    }
    return operation
  }

  /// A merge's changes as a tree.
  static func tree(_ changes: [(Path, Node)]) -> PathTree<Node> {
    var tree = PathTree<Node>()
    for (path, node) in changes { tree[path] = node }
    return tree
  }
}
