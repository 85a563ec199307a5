// The view of the tree that a policy reads for a decision about the Realtime Database. No member loads a subtree.

package import RealtimeModel

/// The tree before or after an operation.
package enum TreeState: Sendable, Hashable {
  /// Before the operation: `root` and `data` in rules.
  case before
  /// After the write; for reads the same as ``before``: `newData` in rules.
  case after
}

/// The tree before and after an operation, at one version. Every member's cost is bounded by its result.
///
/// While a policy decides about a listen, the engine records the results of these members for the state before the
/// operation. When one of the results changes, the policy decides again. A decision about the Realtime Database
/// therefore need not name the paths that it has read.
package protocol TreeView {
  /// The leaf at a location, or whether it has children.
  /// - Throws: the store's errors.
  func content(at path: Path, _ state: TreeState) throws -> Node.Content

  /// The priority at a location; nil for none.
  /// - Throws: the store's errors.
  func priority(at path: Path, _ state: TreeState) throws -> Priority?

  /// The keys of children in key order, at most `limit`.
  /// - Parameter after: the keys begin after this one; nil to begin with the first key.
  /// - Throws: the store's errors.
  func childKeys(
    at path: Path, after: ChildKey?, limit: Int, _ state: TreeState
  ) throws -> [ChildKey]

  /// The time of the operation in milliseconds since 1970. For a write it is the time of its server values, for a read
  /// the current time.
  var now: Int64 { get }

  /// The work that the decision may spend while other operations wait; nil if no operation waits.
  var work: DecisionWork? { get }
}

extension TreeView {
  /// By default no operation waits for the decision.
  package var work: DecisionWork? { nil }

  /// Whether a location has a value.
  /// - Throws: the store's errors.
  package func exists(at path: Path, _ state: TreeState) throws -> Bool {
    if case .empty = try content(at: path, state) { return false }
    return true
  }

  /// The leaf at a location; nil if it has none.
  /// - Throws: the store's errors.
  package func leaf(at path: Path, _ state: TreeState) throws -> LeafValue? {
    if case .leaf(let value) = try content(at: path, state) { return value }
    return nil
  }

  /// The key of the first child in key order; nil without children.
  /// - Throws: the store's errors.
  package func firstKey(at path: Path, _ state: TreeState) throws -> ChildKey? {
    try childKeys(at: path, after: nil, limit: 1, state).first
  }
}
