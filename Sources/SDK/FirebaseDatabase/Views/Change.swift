// The changes of an operation in a view, one for each child.
//
// Invariant: within one operation a child has at most one change; two changes of one child are merged, and may cancel
// out.

import RealtimeModel

/// A change of one child.
enum ChildChange {
  case added(Node)
  case removed(Node)
  case changed(Node, from: Node)

  /// The child's value that the event shows.
  var node: Node {
    switch self {
    case .added(let node), .removed(let node), .changed(let node, _): node
    }
  }
}

/// The changes of one operation, merged by child.
struct ChangeAccumulator {
  private var byChild: [ChildKey: ChildChange] = [:]

  /// The changes in key order, so that a run can be repeated.
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
