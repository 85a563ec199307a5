// A node: a value of the tree. It is empty, a leaf, or an object of children by key. Leaves and objects may have a
// priority.
//
// Invariants
//   1. An object has at least one child, and none of its children is empty. An object without children is
//      ``Node/empty``.
//   2. The empty node has no priority.
//   3. Numbers are canonical: a number that fits a 64-bit integer is an integer, and there is no -0.
//   4. Nodes are immutable values that share structure. Changing one of n children costs O(log n).

/// An immutable value of the tree, cheap to copy.
public struct Node: Sendable {
  enum Storage: Sendable {
    case empty
    case leaf(LeafValue)
    case prioritizedLeaf(PrioritizedLeaf)
    case object(ObjectStorage)
  }

  final class PrioritizedLeaf: Sendable {
    let value: LeafValue
    let priority: Priority
    init(_ value: LeafValue, _ priority: Priority) {
      self.value = value
      self.priority = priority
    }
  }

  let storage: Storage

  init(storage: Storage) { self.storage = storage }

  /// The content of a node, without its priority.
  public enum Content: Sendable {
    /// No value: JSON null.
    case empty
    /// A leaf.
    case leaf(LeafValue)
    /// Children; see ``Node/forEachChild(_:)``.
    case children
  }

  /// The empty node.
  public static let empty = Node(storage: .empty)

  /// Makes a leaf. The value must not be NaN or infinite.
  public static func leaf(_ value: LeafValue, priority: Priority? = nil) -> Node {
    guard let priority else { return Node(storage: .leaf(value.canonical)) }
    return Node(storage: .prioritizedLeaf(PrioritizedLeaf(value.canonical, priority)))
  }

  /// Makes an object. Empty children are omitted. If a key repeats, the last child replaces earlier children.
  ///
  /// O(n) if the children are in key order, else O(n log n).
  public static func object(_ children: [(ChildKey, Node)], priority: Priority? = nil) -> Node {
    var entries: [Children.Entry] = []
    var sorted = true
    for (key, node) in children where !node.isEmpty {
      if sorted, let last = entries.last, last.key.order(against: key) >= 0 { sorted = false }
      entries.append((key, node))
    }
    if !sorted { entries = Node.sortedUnique(entries) }
    return object(Children(sorted: entries), priority: priority)
  }

  private static func sortedUnique(_ entries: [Children.Entry]) -> [Children.Entry] {
    let order = entries.indices.sorted { a, b in
      let order = entries[a].key.order(against: entries[b].key)
      return order != 0 ? order < 0 : a < b
    }
    var result: [Children.Entry] = []
    result.reserveCapacity(entries.count)
    for i in order {
      if let last = result.last, last.key.order(against: entries[i].key) == 0 { result.removeLast() }
      result.append(entries[i])
    }
    return result
  }

  static func object(_ children: Children, priority: Priority?) -> Node {
    children.isEmpty ? .empty : Node(storage: .object(ObjectStorage(children, priority: priority)))
  }

  /// The node's content.
  public var content: Content {
    switch storage {
    case .empty: .empty
    case .leaf(let value): .leaf(value)
    case .prioritizedLeaf(let leaf): .leaf(leaf.value)
    case .object: .children
    }
  }

  /// The priority; nil if it has none.
  public var priority: Priority? {
    switch storage {
    case .empty, .leaf: nil
    case .prioritizedLeaf(let leaf): leaf.priority
    case .object(let object): object.priority
    }
  }

  /// Whether the node is empty.
  public var isEmpty: Bool {
    if case .empty = storage { return true }
    return false
  }

  /// Whether the node is a leaf.
  public var isLeaf: Bool { leafValue != nil }

  /// The leaf's value; nil if the node is not a leaf.
  public var leafValue: LeafValue? {
    if case .leaf(let value) = content { return value }
    return nil
  }

  /// The number of children; 0 for a leaf.
  public var childCount: Int { children?.count ?? 0 }

  /// An estimate of the node's size in JSON, in bytes. O(1).
  public var estimatedSize: Int {
    switch storage {
    case .empty: 4
    case .leaf(let value): value.estimatedSize
    case .prioritizedLeaf(let leaf): leaf.value.estimatedSize + leaf.priority.estimatedSize
    case .object(let object): object.estimatedSize
    }
  }

  /// Whether the node contains a server value. O(1).
  public var containsDeferred: Bool {
    switch storage {
    case .empty: return false
    case .leaf(let value):
      if case .deferred = value { return true }
      return false
    case .prioritizedLeaf(let leaf):
      if case .deferred = leaf.value { return true }
      return leaf.priority.isDeferred
    case .object(let object): return object.deferredCount > 0 || (object.priority?.isDeferred ?? false)
    }
  }

  /// The levels below this node: 0 for a leaf, 1 for an object of leaves.
  public var depth: Int {
    var deepest = 0
    forEachChild { _, child in
      deepest = max(deepest, 1 + child.depth)
      return true
    }
    return deepest
  }

  var children: Children? {
    if case .object(let object) = storage { return object.children }
    return nil
  }
}

extension Node: Equatable {
  /// Whether both nodes have the same structure, types, values and priorities.
  public static func == (a: Node, b: Node) -> Bool {
    switch (a.storage, b.storage) {
    case (.empty, .empty): return true
    case (.leaf(let x), .leaf(let y)): return x == y
    case (.prioritizedLeaf(let x), .prioritizedLeaf(let y)):
      return x === y || (x.value == y.value && x.priority == y.priority)
    case (.object(let x), .object(let y)):
      if x === y { return true }
      guard x.children.count == y.children.count, x.estimatedSize == y.estimatedSize,
        x.priority == y.priority
      else { return false }
      return x.children.forEachDifference(from: y.children) { _, now, before in now == before }
    default: return false
    }
  }
}

extension Priority {
  var isDeferred: Bool {
    if case .deferred = self { return true }
    return false
  }
}

typealias Children = PersistentMap<ChildKey, Node>

/// An object's children, and counts over them that a change updates in O(1).
final class ObjectStorage: Sendable {
  let children: Children
  let priority: Priority?
  /// The node's estimated size in JSON, in bytes.
  let estimatedSize: Int
  /// The number of children with a priority. If it is zero, key order is priority order.
  let prioritizedCount: Int
  /// The number of children that are or contain an object whose children all have a priority.
  let fullyPrioritizedCount: Int
  /// The number of children that contain deferred values.
  let deferredCount: Int
  /// The cached hash. It is nil for small nodes, because hashing them again costs less than a cell.
  let hashCell: HashCell?

  init(_ children: Children, priority: Priority?) {
    var childrenSize = 0
    var prioritized = 0
    var fullyPrioritized = 0
    var deferred = 0
    precondition(!children.isEmpty, "invariant: an object has a child")
    children.forEach { key, node in
      assert(!node.isEmpty, "invariant: no child of an object is empty")
      childrenSize += ObjectStorage.size(of: key, node)
      if node.priority != nil { prioritized += 1 }
      if node.containsFullyPrioritizedObject { fullyPrioritized += 1 }
      if node.containsDeferred { deferred += 1 }
      return true
    }
    self.children = children
    self.priority = priority
    estimatedSize = 1 + childrenSize + (priority?.estimatedSize ?? 0)
    prioritizedCount = prioritized
    fullyPrioritizedCount = fullyPrioritized
    deferredCount = deferred
    hashCell = HashCell.make(forSize: estimatedSize)
  }

  private init(
    _ children: Children, priority: Priority?, estimatedSize: Int, prioritizedCount: Int,
    fullyPrioritizedCount: Int, deferredCount: Int
  ) {
    precondition(!children.isEmpty, "invariant: an object has a child")
    let counts = 0...children.count
    precondition(
      counts.contains(prioritizedCount) && counts.contains(fullyPrioritizedCount)
        && counts.contains(deferredCount),
      "invariant: the counts of an object are those of its children")
    self.children = children
    self.priority = priority
    self.estimatedSize = estimatedSize
    self.prioritizedCount = prioritizedCount
    self.fullyPrioritizedCount = fullyPrioritizedCount
    self.deferredCount = deferredCount
    hashCell = HashCell.make(forSize: estimatedSize)
  }

  static func size(of key: ChildKey, _ node: Node) -> Int { key.text.utf8.count + 4 + node.estimatedSize }

  /// The object with one child replaced; nil if no children remain.
  func replacing(_ key: ChildKey, with node: Node) -> ObjectStorage? {
    let changed = node.isEmpty ? children.removing(key) : children.setting(key, to: node)
    if changed.map.isEmpty { return nil }
    if node.isEmpty, changed.old == nil { return self }
    var size = estimatedSize
    var prioritized = prioritizedCount
    var fullyPrioritized = fullyPrioritizedCount
    var deferred = deferredCount
    if let old = changed.old {
      size -= ObjectStorage.size(of: key, old)
      if old.priority != nil { prioritized -= 1 }
      if old.containsFullyPrioritizedObject { fullyPrioritized -= 1 }
      if old.containsDeferred { deferred -= 1 }
    }
    if !node.isEmpty {
      size += ObjectStorage.size(of: key, node)
      if node.priority != nil { prioritized += 1 }
      if node.containsFullyPrioritizedObject { fullyPrioritized += 1 }
      if node.containsDeferred { deferred += 1 }
    }
    return ObjectStorage(
      changed.map, priority: priority, estimatedSize: size, prioritizedCount: prioritized,
      fullyPrioritizedCount: fullyPrioritized, deferredCount: deferred)
  }

  /// The object with another priority.
  func with(_ priority: Priority?) -> ObjectStorage {
    let size = estimatedSize - (self.priority?.estimatedSize ?? 0) + (priority?.estimatedSize ?? 0)
    return ObjectStorage(
      children, priority: priority, estimatedSize: size, prioritizedCount: prioritizedCount,
      fullyPrioritizedCount: fullyPrioritizedCount, deferredCount: deferredCount)
  }
}
