// A cursor over an ordered map, for scans in both directions. The cursor retains the nodes of the map at the time it was made.
// Later changes to the map copy nodes, so the cursor does not see them.

/// A position in an ordered map.
package struct OrderedMapCursor<Value> {
  private let root: OrderedMap<Value>.Node
  private var path: [(node: OrderedMap<Value>.Node, index: Int)] = []
  private var leaf: OrderedMap<Value>.Node
  private var index: Int

  /// Makes a cursor without a position. The caller must seek before it reads a key.
  package init(_ map: OrderedMap<Value>) {
    root = map.root
    leaf = map.root
    index = -1
  }

  /// Whether the cursor is at a key.
  package var isValid: Bool { index >= 0 && index < leaf.keys.count }

  /// The key at the cursor. Requires ``isValid``.
  package var key: Key { leaf.keys[index] }

  /// The value at the cursor. Requires ``isValid``.
  package var value: Value { leaf.values[index] }

  /// Moves to the first key that is not below `key`.
  package mutating func seek(_ key: UnsafeRawBufferPointer) {
    descend(to: key)
    index = leaf.lowerBound(key)
    if index >= leaf.keys.count { nextLeaf() }
  }

  /// Moves to the last key below `key`.
  package mutating func seekBelow(_ key: UnsafeRawBufferPointer) {
    descend(to: key)
    index = leaf.lowerBound(key) - 1
    if index < 0 { previousLeaf() }
  }

  /// Moves to the first key.
  package mutating func seekToFirst() {
    path.removeAll(keepingCapacity: true)
    leaf = root
    descendLeft()
    if leaf.keys.isEmpty { nextLeaf() }
  }

  /// Moves to the last key.
  package mutating func seekToLast() {
    path.removeAll(keepingCapacity: true)
    leaf = root
    descendRight()
    if leaf.keys.isEmpty { previousLeaf() }
  }

  /// Moves to the next key.
  package mutating func next() {
    index += 1
    if index >= leaf.keys.count { nextLeaf() }
  }

  /// Moves to the previous key.
  package mutating func previous() {
    index -= 1
    if index < 0 { previousLeaf() }
  }

  private mutating func descend(to key: UnsafeRawBufferPointer) {
    path.removeAll(keepingCapacity: true)
    leaf = root
    while !leaf.isLeaf {
      let child = leaf.childIndex(key)
      path.append((leaf, child))
      leaf = leaf.children[child]
    }
  }

  private mutating func descendLeft() {
    while !leaf.isLeaf {
      path.append((leaf, 0))
      leaf = leaf.children[0]
    }
    index = 0
  }

  private mutating func descendRight() {
    while !leaf.isLeaf {
      path.append((leaf, leaf.children.count - 1))
      leaf = leaf.children[leaf.children.count - 1]
    }
    index = leaf.keys.count - 1
  }

  /// Moves to the first key of the next non-empty leaf, or past the end.
  private mutating func nextLeaf() {
    while let (node, child) = path.popLast() {
      guard child + 1 < node.children.count else { continue }
      path.append((node, child + 1))
      leaf = node.children[child + 1]
      descendLeft()
      if !leaf.keys.isEmpty { return }
    }
    index = -1
  }

  /// Moves to the last key of the previous non-empty leaf, or before the start.
  private mutating func previousLeaf() {
    while let (node, child) = path.popLast() {
      guard child > 0 else { continue }
      path.append((node, child - 1))
      leaf = node.children[child - 1]
      descendRight()
      if !leaf.keys.isEmpty { return }
    }
    index = -1
  }
}
