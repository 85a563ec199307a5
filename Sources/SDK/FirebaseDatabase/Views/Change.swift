// The changes of the children in a view that one operation causes.
//
// Invariant: one operation has at most one change for each child. Two changes of one child are merged, and
// may cancel each other.

import RealtimeModel

/// A change of one child.
enum ChildChange {
  case added(Node)
  case removed(Node)
  case changed(Node, from: Node)

  /// The child's value for the event.
  var node: Node {
    switch self {
    case .added(let node), .removed(let node), .changed(let node, _): node
    }
  }
}

/// The changes of one operation, merged by child.
struct ChangeAccumulator {
  private var byChild: [ChildKey: ChildChange] = [:]

  /// The changes in key order, so that the result is deterministic.
  var changes: [(key: ChildKey, change: ChildChange)] {
    byChild.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  var isEmpty: Bool { byChild.isEmpty }

  /// Adds a change that follows the earlier ones.
  mutating func add(_ key: ChildKey, _ change: ChildChange) {
    guard !key.isPriority else { return }
    switch (byChild[key], change) {
    case (nil, _): byChild[key] = change
    case (.removed(let old), .added(let new)): byChild[key] = old == new ? nil : .changed(new, from: old)
    case (.added, .removed): byChild[key] = nil
    case (.changed(_, let old), .removed): byChild[key] = .removed(old)
    case (.added, .changed(let new, _)): byChild[key] = .added(new)
    case (.changed(_, let old), .changed(let new, _)):
      byChild[key] = old == new ? nil : .changed(new, from: old)
    case (_, _): byChild[key] = change
    }
  }
}
