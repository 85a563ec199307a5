// The table of tracked queries: which queries are cached, completely or in part, and when each was last used.
//
// A query with an order but without bounds and limits is tracked as the default query, because both load the
// same data. The keys of the children in a filtered query's window are stored separately. The table of server
// values may contain other children of that location.
//
// Invariants
//   1. Keys exist only for tracked queries.
//   2. A complete filtered query is at least as new as the complete default queries that cover it.

import Foundation
import GRDB
import RealtimeModel
import RealtimeWire

/// The queries that the cache tracks.
struct TrackedQueryTable {
  let db: GRDB.Database
  /// Milliseconds since 1970.
  let now: Int64

  /// The stored form of the default query. The partial index on windows contains the same bytes.
  static let defaultForm = QuerySpec.default.json()

  /// The stored form of a query.
  private static func form(of query: QuerySpec) -> [UInt8] { query.showsAll ? defaultForm : query.json() }

  // MARK: Use

  /// Marks a query as observed or kept synchronized, and tracks it if it is new.
  func activate(_ query: QuerySpec, at path: Path) throws {
    try db.run(
      """
      INSERT INTO tracked_queries (path, query, last_use, is_active, is_complete) VALUES (?, ?, ?, 1, 0)
      ON CONFLICT (path, query) DO UPDATE SET is_active = 1, last_use = excluded.last_use
      """, RowPath.encode(path).data, TrackedQueryTable.form(of: query).data, now)
  }

  /// Marks a query as no longer observed.
  func deactivate(_ query: QuerySpec, at path: Path) throws {
    try db.run(
      "UPDATE tracked_queries SET is_active = 0, last_use = ? WHERE path = ? AND query = ?", now,
      RowPath.encode(path).data, TrackedQueryTable.form(of: query).data)
  }

  /// Marks the queries that the previous run observed as no longer observed.
  func deactivateAll() throws {
    try db.run("UPDATE tracked_queries SET is_active = 0, last_use = ? WHERE is_active = 1", now)
  }

  // MARK: Completeness

  /// Records that a query's data is known. The default query also completes the default queries below it.
  func complete(_ query: QuerySpec, at path: Path) throws {
    let key = RowPath.encode(path)
    if query.showsAll {
      try db.run(
        "UPDATE tracked_queries SET is_complete = 1 WHERE is_complete = 0 AND path >= ? AND path < ? AND query = ?",
        key.data, RowPath.upperBound(key).data, TrackedQueryTable.defaultForm.data)
      try invalidateWindows(below: path)
    } else {
      try db.run(
        "UPDATE tracked_queries SET is_complete = 1 WHERE path = ? AND query = ?", key.data,
        TrackedQueryTable.form(of: query).data)
    }
  }

  /// Marks the filtered queries at a path and below it as incomplete if a default query covers the path,
  /// because the default query's data is newer.
  private func invalidateWindows(below path: Path) throws {
    let key = RowPath.encode(path)
    let range = "is_complete = 1 AND query <> x'7B7D' AND path >= ? AND path < ?"
    let bounds = [key.data, RowPath.upperBound(key).data]
    guard try db.integer("SELECT 1 FROM tracked_queries WHERE \(range) LIMIT 1", bounds) != nil,
      try isCovered(path)
    else { return }
    try db.run("UPDATE tracked_queries SET is_complete = 0 WHERE \(range)", bounds[0], bounds[1])
  }

  /// Adds a query whose data is known completely and that has no observer.
  func addComplete(_ query: QuerySpec, at path: Path) throws {
    try db.run(
      """
      INSERT INTO tracked_queries (path, query, last_use, is_active, is_complete) VALUES (?, ?, ?, 0, 1)
      ON CONFLICT (path, query) DO UPDATE SET is_complete = 1, last_use = excluded.last_use
      """, RowPath.encode(path).data, TrackedQueryTable.form(of: query).data, now)
    if query.showsAll { try invalidateWindows(below: path) }
  }

  /// Whether the default query at a location or at an ancestor is complete.
  func isCovered(_ path: Path) throws -> Bool {
    for depth in 0...path.count {
      let key = RowPath.encode(Path(keys: Array(path.keys[..<depth])))
      let isComplete = try db.integer(
        "SELECT is_complete FROM tracked_queries WHERE path = ? AND query = ?",
        [key.data, TrackedQueryTable.defaultForm.data])
      if isComplete == 1 { return true }
    }
    return false
  }

  // MARK: Windows

  /// The keys in the window of a complete filtered query; nil if the query is not complete.
  func window(of query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    let id = try db.integer(
      "SELECT id FROM tracked_queries WHERE path = ? AND query = ? AND is_complete = 1",
      [RowPath.encode(path).data, TrackedQueryTable.form(of: query).data])
    guard let id else { return nil }
    var keys: [ChildKey] = []
    try db.visit("SELECT key FROM tracked_keys WHERE query = ?", [id]) { row in
      keys += try RowPath.decode(row.bytes(0))
    }
    return keys
  }

  /// Replaces the keys in a filtered query's window.
  func setWindow(_ keys: [ChildKey], of query: QuerySpec, at path: Path) throws {
    guard let id = try id(of: query, at: path) else { return }
    try db.run("DELETE FROM tracked_keys WHERE query = ?", id)
    for key in keys { try insert(key, id) }
  }

  /// Changes the keys in a filtered query's window.
  func updateWindow(adding: [ChildKey], removing: [ChildKey], of query: QuerySpec, at path: Path) throws {
    guard let id = try id(of: query, at: path) else { return }
    for key in removing {
      try db.run(
        "DELETE FROM tracked_keys WHERE query = ? AND key = ?", id, RowPath.encode(Path(keys: [key])).data)
    }
    for key in adding { try insert(key, id) }
  }

  private func insert(_ key: ChildKey, _ id: Int64) throws {
    try db.run(
      "INSERT OR IGNORE INTO tracked_keys (query, key) VALUES (?, ?)", id,
      RowPath.encode(Path(keys: [key])).data)
  }

  private func id(of query: QuerySpec, at path: Path) throws -> Int64? {
    try db.integer(
      "SELECT id FROM tracked_queries WHERE path = ? AND query = ?",
      [RowPath.encode(path).data, TrackedQueryTable.form(of: query).data])
  }

  /// The children of a location that are known completely. Filtered queries of the location or default
  /// queries of the children have loaded them.
  func knownChildren(of path: Path) throws -> [ChildKey] {
    var keys: Set<ChildKey> = []
    let key = RowPath.encode(path)
    try db.visit(
      """
      SELECT key FROM tracked_keys JOIN tracked_queries ON tracked_queries.id = tracked_keys.query
      WHERE path = ? AND is_complete = 1
      """, [key.data]
    ) { row in keys.formUnion(try RowPath.decode(row.bytes(0))) }
    try db.visit(
      "SELECT path FROM tracked_queries WHERE path > ? AND path < ? AND query = ? AND is_complete = 1",
      [key.data, RowPath.upperBound(key).data, TrackedQueryTable.defaultForm.data]
    ) { row in
      // A deeper path is not a child. The app may observe a path with more levels than a stored value has.
      let below = try row.bytes(0).dropFirst(key.count)
      if below.dropLast().contains(0) { return }
      keys.formUnion(try RowPath.decode(below))
    }
    return keys.sorted()
  }

  // MARK: Pruning

  /// The number of queries without observers.
  func inactiveCount() throws -> Int {
    Int(try db.integer("SELECT count(*) FROM tracked_queries WHERE is_active = 0") ?? 0)
  }

  /// Removes the least recently used queries without observers.
  ///
  /// - Returns: the keys of the removed queries' locations.
  func removeOldest(_ count: Int) throws -> [[UInt8]] {
    var removed: [(id: Int64, key: [UInt8])] = []
    try db.visit(
      "SELECT id, path FROM tracked_queries WHERE is_active = 0 ORDER BY last_use, id LIMIT ?", [count]
    ) { row in removed.append((try row.integer(0), Array(try row.bytes(1)))) }
    for (id, _) in removed {
      try db.run("DELETE FROM tracked_keys WHERE query = ?", id)
      try db.run("DELETE FROM tracked_queries WHERE id = ?", id)
    }
    return removed.map(\.key)
  }

  /// The keys of the tracked locations at a location and below, in ascending order.
  func locations(below key: [UInt8]) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    try db.visit(
      "SELECT DISTINCT path FROM tracked_queries WHERE path >= ? AND path < ? ORDER BY path",
      [key.data, RowPath.upperBound(key).data]
    ) { row in keys.append(Array(try row.bytes(0))) }
    return keys
  }

  /// Whether a query of a location or of an ancestor is tracked.
  func isTracked(atOrAbove key: [UInt8]) throws -> Bool {
    var ends = [0]
    for (position, byte) in key.enumerated() where byte == 0 { ends.append(position + 1) }
    return try ends.contains { end in
      try db.integer("SELECT 1 FROM tracked_queries WHERE path = ? LIMIT 1", [Array(key[..<end]).data]) != nil
    }
  }
}
