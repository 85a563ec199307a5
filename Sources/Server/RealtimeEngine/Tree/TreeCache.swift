// Caches the complete values of subtrees as nodes, so that frequent reads touch no rows.
//
// The executor owns the cache, which shows the sequenced state, whether durable or in flight.
//
// Invariants
//   1. No cached subtree is within another.
//   2. Every write updates the cached subtrees that it touches in the same batch that writes its rows.

import OrderedStore
import RealtimeModel

/// The cached subtrees of one database.
final class TreeCache {
  private final class Location {
    var children: [ChildKey: Location] = [:]
    var node: Node?
    var lastUse: UInt64 = 0
    var cost: Int { (node?.estimatedSize ?? 0) * 3 + 400 }
  }

  private var root = Location()
  private var clock: UInt64 = 0
  private let budget: Int
  /// The background work in progress that receives the same changes.
  let observers = ChangeObservers()
  /// The estimated memory of the cached subtrees, in bytes.
  private(set) var cost = 0
  private(set) var count = 0

  /// Creates a cache of about `budget` bytes.
  init(budget: Int) { self.budget = budget }

  /// Removes everything.
  func removeAll() {
    observers.spoilAll()
    root = Location()
    cost = 0
    count = 0
  }

  /// The value at a path if a cached subtree contains it. The path must not end in `.priority`.
  func node(at path: Path) -> Node? {
    var location = root
    var depth = 0
    while true {
      if let node = location.node {
        clock += 1
        location.lastUse = clock
        return depth == 0 ? node.descendant(path) : node.descendant(Path(keys: Array(path.keys[depth...])))
      }
      guard depth < path.count, let next = location.children[path.keys[depth]] else { return nil }
      location = next
      depth += 1
    }
  }

  /// Caches a subtree that was just read, unless it is larger than a quarter of the budget.
  func insert(_ node: Node, at path: Path) {
    guard node.estimatedSize < budget / 12 else { return }
    var location = root
    for key in path.keys {
      if location.node != nil { return }
      if let next = location.children[key] {
        location = next
      } else {
        let next = Location()
        location.children[key] = next
        location = next
      }
    }
    drop(location)
    clock += 1
    location.node = node
    location.lastUse = clock
    location.children = [:]
    cost += location.cost
    count += 1
    if cost > budget { evict() }
  }

  /// Applies a write to the cached subtrees.
  func apply(_ path: Path, _ value: Node, at version: Version) {
    observers.record(path, value, at: version)
    var location = root
    for (depth, key) in path.keys.enumerated() {
      if let node = location.node {
        cost -= location.cost
        location.node = node.setting(Path(keys: Array(path.keys[depth...])), to: value)
        cost += location.cost
        return
      }
      guard let next = location.children[key] else { return }
      location = next
    }
    replace(location, by: value)
  }

  /// Removes every cached subtree that contains a location or is below it.
  func forget(_ path: Path) {
    observers.invalidate(path)
    var location = root
    for key in path.keys {
      if location.node != nil { return drop(location) }
      guard let next = location.children[key] else { return }
      location = next
    }
    drop(location)
    location.children = [:]
  }

  private func replace(_ location: Location, by value: Node) {
    if location.node != nil {
      cost -= location.cost
      location.node = value
      cost += location.cost
    }
    for (key, child) in location.children { replace(child, by: value.child(key)) }
  }

  private func drop(_ location: Location) {
    if location.node != nil {
      cost -= location.cost
      count -= 1
      precondition(cost >= 0 && count >= 0, "invariant: the cache's cost is the sum of its subtrees")
      location.node = nil
    }
    for child in location.children.values { drop(child) }
  }

  /// Removes the least recently used subtrees until a quarter of the budget is free.
  private func evict() {
    var kept: [Location] = []
    collect(root, into: &kept)
    kept.sort { $0.lastUse < $1.lastUse }
    for location in kept {
      if cost <= budget / 4 * 3 { break }
      cost -= location.cost
      count -= 1
      location.node = nil
    }
    _ = prune(root)
  }

  private func collect(_ location: Location, into kept: inout [Location]) {
    if location.node != nil { kept.append(location) }
    for child in location.children.values { collect(child, into: &kept) }
  }

  private func prune(_ location: Location) -> Bool {
    location.children = location.children.filter { !prune($0.value) }
    return location.node == nil && location.children.isEmpty
  }
}
