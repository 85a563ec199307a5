// The table of server values: the cached data of the server, with one row for each leaf.
//
// A row's key is the encoded path of its leaf, so the rows of a location are one contiguous range. The value
// of a row includes the priority of the leaf. The priority of an object has a separate row at `.priority`
// below the object.
//
// Invariants
//   1. No row is below a leaf.
//   2. An object that has a priority row has at least one other row.

import Foundation
import GRDB
import RealtimeModel

/// The server's cached data.
struct ServerValueTable {
  let db: GRDB.Database

  // MARK: Writing

  /// Replaces the value at a path, which may end in `.priority`.
  func overwrite(_ node: Node, at path: Path) throws {
    if path.isPriority { return try setPriority(node.leafValue, at: path.dataPath) }
    var key = RowPath.encode(path)
    try deleteRows(below: key)
    if node.isEmpty {
      try deleteOrphanedPriorities(above: path)
    } else {
      try deleteLeaves(above: path)
      try insert(node, at: &key)
    }
  }

  /// Replaces the values at several descendant paths of a location atomically.
  func merge(_ changes: [(Path, Node)], at path: Path) throws {
    for (relative, node) in changes.inMergeOrder() { try overwrite(node, at: path.appending(relative)) }
  }

  /// Deletes the rows of a location, except those of kept descendant locations.
  ///
  /// - Parameter kept: the keys of the kept locations in ascending order.
  func prune(_ key: [UInt8], keeping kept: [[UInt8]]) throws {
    var start = key
    for location in kept {
      try deleteRows(from: start, to: location)
      let end = RowPath.upperBound(location)
      if start.lexicographicallyPrecedes(end) { start = end }
    }
    try deleteRows(from: start, to: RowPath.upperBound(key))
  }

  private func insert(_ node: Node, at key: inout [UInt8]) throws {
    guard case .children = node.content else { return try put(node, at: key) }
    let length = key.count
    if let priority = node.priority {
      RowPath.append(.priority, to: &key)
      try put(.leaf(priority.leafValue), at: key)
      key.removeLast(key.count - length)
    }
    try node.forEachChild { name, child in
      RowPath.append(name, to: &key)
      try insert(child, at: &key)
      key.removeLast(key.count - length)
      return true
    }
  }

  private func put(_ leaf: Node, at key: [UInt8]) throws {
    try db.run("INSERT OR REPLACE INTO server_values (path, value) VALUES (?, ?)", key.data, leaf.json().data)
  }

  private func setPriority(_ value: LeafValue?, at path: Path) throws {
    let key = RowPath.encode(path)
    var priorityKey = key
    RowPath.append(.priority, to: &priorityKey)
    try db.run("DELETE FROM server_values WHERE path = ?", priorityKey.data)
    if let leaf = try leaf(at: key) {
      return try put(leaf.with(priority: value.flatMap { try? Priority($0) }), at: key)
    }
    guard let value, try hasRows(below: key) else { return }
    try put(.leaf(value), at: priorityKey)
  }

  /// Removes the leaves above a location that receives a value. Their priorities remain.
  private func deleteLeaves(above path: Path) throws {
    for depth in 0..<path.count {
      var key = RowPath.encode(Path(keys: Array(path.keys[..<depth])))
      guard let leaf = try leaf(at: key) else { continue }
      try db.run("DELETE FROM server_values WHERE path = ?", key.data)
      guard let priority = leaf.priority else { continue }
      RowPath.append(.priority, to: &key)
      try put(.leaf(priority.leafValue), at: key)
    }
  }

  /// Removes the priorities of the ancestors of a removed location that have no other rows.
  private func deleteOrphanedPriorities(above path: Path) throws {
    for depth in (0..<path.count).reversed() {
      let key = RowPath.encode(Path(keys: Array(path.keys[..<depth])))
      var priorityKey = key
      RowPath.append(.priority, to: &priorityKey)
      guard try leaf(at: priorityKey) != nil else { continue }
      let rows = try db.integer(
        "SELECT count(*) FROM (SELECT 1 FROM server_values WHERE path >= ? AND path < ? LIMIT 2)",
        [key.data, RowPath.upperBound(key).data])
      if rows == 1 { try db.run("DELETE FROM server_values WHERE path = ?", priorityKey.data) }
    }
  }

  private func deleteRows(below key: [UInt8]) throws {
    try deleteRows(from: key, to: RowPath.upperBound(key))
  }

  private func deleteRows(from start: [UInt8], to end: [UInt8]) throws {
    try db.run("DELETE FROM server_values WHERE path >= ? AND path < ?", start.data, end.data)
  }

  // MARK: Reading

  /// The value at a path.
  func node(at path: Path) throws -> Node {
    let key = RowPath.encode(path)
    var builder = NodeBuilder()
    try db.visit(
      "SELECT path, value FROM server_values WHERE path >= ? AND path < ? ORDER BY path",
      [key.data, RowPath.upperBound(key).data]
    ) { row in
      let relative = try row.withUnsafeData(atIndex: 0) { Array(($0 ?? Data()).dropFirst(key.count)) }
      try row.withUnsafeData(atIndex: 1) { value in
        try (value ?? Data()).withUnsafeBytes { try builder.add(relative, $0) }
      }
    }
    return try builder.finish()
  }

  /// The children of a location with the given keys, without the location's priority.
  func children(of path: Path, keys: [ChildKey]) throws -> Node {
    .object(try keys.map { ($0, try node(at: path.child($0))) })
  }

  private func leaf(at key: [UInt8]) throws -> Node? {
    var leaf: Node?
    try db.visit("SELECT value FROM server_values WHERE path = ?", [key.data]) { row in
      try row.withUnsafeData(atIndex: 0) { value in
        leaf = try (value ?? Data()).withUnsafeBytes { try NodeBuilder.node($0) }
      }
    }
    return leaf
  }

  private func hasRows(below key: [UInt8]) throws -> Bool {
    try db.integer(
      "SELECT 1 FROM server_values WHERE path >= ? AND path < ? LIMIT 1",
      [key.data, RowPath.upperBound(key).data]) != nil
  }
}
