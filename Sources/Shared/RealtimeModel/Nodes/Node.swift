// A value of the tree: nothing, a leaf, or children by key; with a priority unless it is nothing.
//
// Invariants
//   1. An object has at least one child, and none of its children is empty: what would be empty is ``Node/empty``.
//   2. The empty node has no priority.
//   3. Numbers are canonical: what fits 64-bit integers is one, and there is no -0.
//   4. Nodes are immutable values that share structure: changing one of n children costs O(log n).

/// A value of the tree, immutable and cheap to copy.
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

  /// What a node holds, its priority aside.
  public enum Content: Sendable {
    /// Nothing: JSON's null.
    case empty
    /// A leaf.
    case leaf(LeafValue)
    /// Children; see ``Node/forEachChild(_:)``.
    case children
  }

  /// Nothing.
  public static let empty = Node(storage: .empty)

  /// A leaf. NaN and infinities must have been refused before.
  public static func leaf(_ value: LeafValue, priority: Priority? = nil) -> Node {
    guard let priority else { return Node(storage: .leaf(value.canonical)) }
    return Node(storage: .prioritizedLeaf(PrioritizedLeaf(value.canonical, priority)))
  }

  /// An object of these children: empty ones vanish, of two with one key the later counts.
  ///
  /// O(n) when the children come in key order, else O(n log n).
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

  /// What the node holds.
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

  /// Whether this is nothing.
  public var isEmpty: Bool {
    if case .empty = storage { return true }
    return false
  }

  /// Whether this is a leaf.
  public var isLeaf: Bool { leafValue != nil }

  /// The leaf's value; nil if this is no leaf.
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

  /// Whether a value or priority that the server computes occurs in it. O(1).
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
  /// Same structure, types, values and priorities.
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

/// An object's children and what is known of all of them together, kept up to date in O(1) by each change.
final class ObjectStorage: Sendable {
  let children: Children
  let priority: Priority?
  /// The estimated size in JSON of the whole node.
  let estimatedSize: Int
  /// How many children have a priority: with none, key order is priority order.
  let prioritizedCount: Int
  /// How many children contain an object all of whose children have one, or are one.
  let fullyPrioritizedCount: Int
  /// How many children contain deferred values.
  let deferredCount: Int
  /// Where the hash is kept; nil on small nodes, whose hash costs less than the room.
  let hashCell: HashCell?

  init(_ children: Children, priority: Priority?) {
    var childrenSize = 0
    var prioritized = 0
    var fullyPrioritized = 0
    var deferred = 0
    children.forEach { key, node in
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
    self.children = children
    self.priority = priority
    self.estimatedSize = estimatedSize
    self.prioritizedCount = prioritizedCount
    self.fullyPrioritizedCount = fullyPrioritizedCount
    self.deferredCount = deferredCount
    hashCell = HashCell.make(forSize: estimatedSize)
  }

  static func size(of key: ChildKey, _ node: Node) -> Int { key.text.utf8.count + 4 + node.estimatedSize }

  /// The object with one child replaced; nil if no child is left.
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
