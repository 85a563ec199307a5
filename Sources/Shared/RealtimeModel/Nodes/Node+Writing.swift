// Functions that return a changed node. They follow the data model's rules: empty objects are removed (pruned), a child
// replaces a leaf, and a priority needs a value.

extension Node {
  /// The node with another priority; the empty node stays empty.
  public func with(priority: Priority?) -> Node {
    switch storage {
    case .empty: return self
    case .leaf(let value): return .leaf(value, priority: priority)
    case .prioritizedLeaf(let leaf): return .leaf(leaf.value, priority: priority)
    case .object(let object):
      return object.priority == priority ? self : Node(storage: .object(object.with(priority)))
    }
  }

  /// The node with one child replaced, or removed if `node` is empty.
  ///
  /// A child replaces the value of a leaf; the priority stays. Removing below a leaf changes nothing.
  public func settingChild(_ key: ChildKey, to node: Node) -> Node {
    switch storage {
    case .object(let object):
      guard let changed = object.replacing(key, with: node) else { return .empty }
      return Node(storage: .object(changed))
    case .empty, .leaf, .prioritizedLeaf:
      if node.isEmpty { return self }
      return .object(Children().setting(key, to: node).map, priority: priority)
    }
  }

  /// The node with the value at a relative path replaced. Objects that become empty are pruned.
  ///
  /// If the path ends in `.priority`, only the priority is replaced, by the value of the leaf `node`. A boolean or an
  /// object sets no priority; validation normally rejects such a write earlier.
  public func setting(_ path: Path, to node: Node) -> Node { setting(path.keys[...], to: node) }

  private func setting(_ keys: ArraySlice<ChildKey>, to node: Node) -> Node {
    guard let key = keys.first else { return node }
    if key.isPriority { return with(priority: node.leafValue.flatMap { try? Priority($0) }) }
    let before = child(key)
    let after = before.setting(keys.dropFirst(), to: node)
    if before.isEmpty, after.isEmpty { return self }
    return settingChild(key, to: after)
  }

  /// The node with the values at several relative paths replaced.
  public func merging(_ changes: some Sequence<(Path, Node)>) -> Node {
    changes.reduce(self) { $0.setting($1.0, to: $1.1) }
  }
}
