// A persistent map: an ordered map whose copies share structure, as a B-tree with immutable nodes. Changing one of n
// entries copies O(log n) small nodes and leaves other versions of the map unchanged.
//
// Invariants
//   1. Entries are in strictly ascending order.
//   2. All leaves have the same depth. Every node except the root holds between `minimumWidth` and `maximumWidth`
//      elements.

/// An ordered map whose copies share structure.
struct PersistentMap<K: TotallyOrdered, V: Sendable>: Sendable {
  typealias Entry = (key: K, value: V)

  static var maximumWidth: Int { 32 }
  static var minimumWidth: Int { 8 }

  enum Tree: Sendable {
    case leaf(Leaf)
    case branch(Branch)
  }

  final class Leaf: Sendable {
    let entries: [Entry]
    init(_ entries: [Entry]) {
      precondition(!entries.isEmpty, "invariant: a leaf of a map has entries")
      self.entries = entries
    }
  }

  final class Branch: Sendable {
    let trees: [Tree]
    /// The first key of each tree.
    let keys: [K]
    let count: Int

    init(_ trees: [Tree]) {
      precondition(!trees.isEmpty, "invariant: a branch of a map has subtrees")
      self.trees = trees
      keys = trees.map { $0.firstKey }
      count = trees.reduce(0) { $0 + $1.count }
    }
  }

  private(set) var root: Tree?

  /// An empty map.
  init() {}

  /// Makes a map of entries in strictly ascending order.
  init(sorted entries: [Entry]) {
    guard !entries.isEmpty else { return }
    assert(
      zip(entries, entries.dropFirst()).allSatisfy { $0.key.order(against: $1.key) < 0 },
      "invariant: the entries of a map ascend")
    var level = PersistentMap.evenRanges(of: entries.count).map { Tree.leaf(Leaf(Array(entries[$0]))) }
    while level.count > 1 {
      level = PersistentMap.evenRanges(of: level.count).map { Tree.branch(Branch(Array(level[$0]))) }
    }
    root = level.first
  }

  /// Splits `count` elements evenly into the minimum number of nodes.
  private static func evenRanges(of count: Int) -> [Range<Int>] {
    let parts = (count + maximumWidth - 1) / maximumWidth
    return (0..<parts).map { (count * $0 / parts)..<(count * ($0 + 1) / parts) }
  }

  var count: Int { root?.count ?? 0 }
  var isEmpty: Bool { root == nil }

  /// The value of a key.
  subscript(key: K) -> V? {
    guard var tree = root else { return nil }
    while true {
      switch tree {
      case .leaf(let leaf):
        let (position, found) = PersistentMap.find(key, in: leaf.entries)
        return found ? leaf.entries[position].value : nil
      case .branch(let branch): tree = branch.trees[branch.position(of: key)]
      }
    }
  }

  /// The map with one entry set, and the entry's earlier value.
  func setting(_ key: K, to value: V) -> (map: PersistentMap, old: V?) {
    guard let root else { return (PersistentMap(root: .leaf(Leaf([(key, value)]))), nil) }
    var old: V?
    let trees = root.setting(key, to: value, old: &old)
    return (PersistentMap(root: trees.count == 1 ? trees[0] : .branch(Branch(trees))), old)
  }

  /// The map without one entry, and the entry's earlier value.
  func removing(_ key: K) -> (map: PersistentMap, old: V?) {
    guard let root else { return (self, nil) }
    var old: V?
    guard var tree = root.removing(key, old: &old) else { return (old == nil ? self : PersistentMap(), old) }
    if old == nil { return (self, nil) }
    while case .branch(let branch) = tree, branch.trees.count == 1 { tree = branch.trees[0] }
    return (PersistentMap(root: tree), old)
  }

  private init(root: Tree) { self.root = root }

  /// The position of the first entry not before `key`, and whether it is `key`.
  static func find(_ key: K, in entries: [Entry]) -> (Int, Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      let order = entries[middle].key.order(against: key)
      if order == 0 { return (middle, true) }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return (low, false)
  }
}

extension PersistentMap.Branch {
  /// The position of the subtree that may hold a key.
  func position(of key: K) -> Int {
    var low = 1
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if keys[middle].order(against: key) <= 0 { low = middle + 1 } else { high = middle }
    }
    return low - 1
  }
}

extension PersistentMap.Tree {
  typealias Map = PersistentMap<K, V>

  var count: Int {
    switch self {
    case .leaf(let leaf): leaf.entries.count
    case .branch(let branch): branch.count
    }
  }

  /// Nodes are never empty, so the first element exists.
  var firstKey: K {
    switch self {
    case .leaf(let leaf): leaf.entries[0].key
    case .branch(let branch): branch.keys[0]
    }
  }

  /// The number of elements of the node itself.
  var width: Int {
    switch self {
    case .leaf(let leaf): leaf.entries.count
    case .branch(let branch): branch.trees.count
    }
  }

  func setting(_ key: K, to value: V, old: inout V?) -> [Map.Tree] {
    switch self {
    case .leaf(let leaf):
      var entries = leaf.entries
      let (position, found) = Map.find(key, in: entries)
      if found {
        old = entries[position].value
        entries[position] = (key, value)
      } else {
        entries.insert((key, value), at: position)
      }
      if entries.count <= Map.maximumWidth { return [.leaf(Map.Leaf(entries))] }
      // Appending at the end is common, because push ids ascend. Then the left node keeps as many entries as possible.
      let cut = position == entries.count - 1 ? entries.count - Map.minimumWidth : entries.count / 2
      return [.leaf(Map.Leaf(Array(entries[..<cut]))), .leaf(Map.Leaf(Array(entries[cut...])))]
    case .branch(let branch):
      let position = branch.position(of: key)
      var trees = branch.trees
      let changed = trees[position].setting(key, to: value, old: &old)
      trees.replaceSubrange(position...position, with: changed)
      if trees.count <= Map.maximumWidth { return [.branch(Map.Branch(trees))] }
      let cut = position >= trees.count - 2 ? trees.count - Map.minimumWidth : trees.count / 2
      return [.branch(Map.Branch(Array(trees[..<cut]))), .branch(Map.Branch(Array(trees[cut...])))]
    }
  }

  /// The tree without a key; nil if the tree becomes empty.
  func removing(_ key: K, old: inout V?) -> Map.Tree? {
    switch self {
    case .leaf(let leaf):
      let (position, found) = Map.find(key, in: leaf.entries)
      guard found else { return self }
      old = leaf.entries[position].value
      if leaf.entries.count == 1 { return nil }
      var entries = leaf.entries
      entries.remove(at: position)
      return .leaf(Map.Leaf(entries))
    case .branch(let branch):
      let position = branch.position(of: key)
      let changed = branch.trees[position].removing(key, old: &old)
      guard old != nil else { return self }
      var trees = branch.trees
      guard let changed else {
        trees.remove(at: position)
        return trees.isEmpty ? nil : .branch(Map.Branch(trees))
      }
      trees[position] = changed
      if changed.width < Map.minimumWidth, trees.count > 1 {
        let left = position > 0 ? position - 1 : 0
        trees.replaceSubrange(left...(left + 1), with: trees[left].joined(with: trees[left + 1]))
      }
      return .branch(Map.Branch(trees))
    }
  }

  /// Joins two neighbours of one level to one node, or to two nodes of even width if one would be too wide.
  private func joined(with right: Map.Tree) -> [Map.Tree] {
    switch (self, right) {
    case (.leaf(let a), .leaf(let b)):
      let entries = a.entries + b.entries
      if entries.count <= Map.maximumWidth { return [.leaf(Map.Leaf(entries))] }
      let cut = entries.count / 2
      return [.leaf(Map.Leaf(Array(entries[..<cut]))), .leaf(Map.Leaf(Array(entries[cut...])))]
    case (.branch(let a), .branch(let b)):
      let trees = a.trees + b.trees
      if trees.count <= Map.maximumWidth { return [.branch(Map.Branch(trees))] }
      let cut = trees.count / 2
      return [.branch(Map.Branch(Array(trees[..<cut]))), .branch(Map.Branch(Array(trees[cut...])))]
    default: preconditionFailure("invariant: all leaves of a map have the same depth")
    }
  }
}
