// Resolves the server values in a node: replaces each timestamp and increment by the value that is stored.

extension Node {
  /// The node with every deferred value and priority resolved against the existing value.
  ///
  /// - Parameters:
  ///   - existing: the value at this location before the write.
  ///   - timestamp: the instant of the write, in milliseconds since the Unix epoch.
  public func resolved(existing: Node, timestamp: Int64) -> Node {
    guard containsDeferred else { return self }
    let priority = priority?.resolved(existing: existing, timestamp: timestamp)
    switch content {
    case .empty: return self
    case .leaf(.deferred(let value)):
      return .leaf(value.resolved(existing: existing, timestamp: timestamp), priority: priority)
    case .leaf(let value): return .leaf(value, priority: priority)
    case .children:
      var entries: [(ChildKey, Node)] = []
      entries.reserveCapacity(childCount)
      forEachChild { key, child in
        entries.append((key, child.resolved(existing: existing.child(key), timestamp: timestamp)))
        return true
      }
      return .object(entries, priority: priority)
    }
  }
}

extension Priority {
  /// The priority with a deferred value resolved against the existing priority.
  func resolved(existing: Node, timestamp: Int64) -> Priority {
    guard case .deferred(let value) = self else { return self }
    let before = existing.priority.map { Node.leaf($0.leafValue) } ?? .empty
    let leaf = value.resolved(existing: before, timestamp: timestamp)
    return (try? Priority(leaf)) ?? .number(Double(timestamp))
  }
}
