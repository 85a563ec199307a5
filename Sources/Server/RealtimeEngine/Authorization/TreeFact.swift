// Describes what a policy has read from the tree for a decision, so that the decision is made again only when an answer
// changes.
//
// A fact is small: the kind of a location, its leaf, its priority, or a few keys. Checking one reads a row or two,
// whatever the size of the location.

import Access
import RealtimeModel

/// A fact about one location that a policy can read, as a question whose answer may change.
enum TreeFact: Hashable, Sendable {
  /// The leaf, or whether the location has children.
  case content
  case priority
  /// The first keys of children after a key, at most `limit`.
  case childKeys(after: ChildKey?, limit: Int)

  /// The answer to the question.
  enum Answer: Hashable, Sendable {
    case empty
    case leaf(LeafValue)
    case children
    case priority(Priority?)
    case keys([ChildKey])

    init(_ content: Node.Content) {
      self =
        switch content {
        case .empty: .empty
        case .leaf(let value): .leaf(value)
        case .children: .children
        }
    }
  }
}

/// One read of the tree by a policy, with its result.
struct TreeObservation: Sendable {
  let path: Path
  let fact: TreeFact
  let answer: TreeFact.Answer
}

extension Tree {
  /// The answer to a question about a location.
  func answer(to fact: TreeFact, at path: Path) throws -> TreeFact.Answer {
    switch fact {
    case .content: .init(try content(at: path))
    case .priority: .priority(try priority(at: path))
    case .childKeys(let key, let limit): .keys(try childKeys(at: path, after: key, limit: limit))
    }
  }

  /// The leaf at a location, or whether it has children. Reads at most one row.
  func content(at path: Path) throws -> Node.Content {
    if path.isPriority { return try priority(at: path.dataPath).map { .leaf($0.leafValue) } ?? .empty }
    if let node = cache?.node(at: path) { return node.content }
    let leaf: Node
    switch try presence(at: path) {
    case .object: return .children
    case .empty: leaf = .empty
    case .leaf(let found): leaf = found
    }
    // Policies read the same leaves again and again, such as the role of a user.
    cache?.insert(leaf, at: path)
    return leaf.content
  }

  /// The keys of children in key order, at most `limit`, after a key.
  func childKeys(at path: Path, after key: ChildKey?, limit: Int) throws -> [ChildKey] {
    if let node = cache?.node(at: path) { return node.childKeys(after: key, limit: limit) }
    let start = key.map { QuerySpec.Bound(.string($0.text), isInclusive: false) }
    let query = QuerySpec(ordering: .key, start: start, limit: .first(limit))
    if let keys = try keysInOrder(query, at: path) { return keys }
    // The scan returned no result, because hundreds of non-canonical integer keys, such as "007", precede the others in
    // row order. So all keys are read.
    guard case .children(let keys) = try shallow(at: path) else { return [] }
    return Array(keys.lazy.filter { found in key.map { $0 < found } ?? true }.prefix(limit))
  }
}

extension Node {
  /// The keys of children in key order, at most `limit`, after a key.
  func childKeys(after key: ChildKey?, limit: Int) -> [ChildKey] {
    var keys: [ChildKey] = []
    guard limit > 0 else { return [] }
    forEachChild(from: key) { found, _ in
      if found != key { keys.append(found) }
      return keys.count < limit
    }
    return keys
  }
}
