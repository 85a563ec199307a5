// Updates index rows with every write: the rows of indexed locations above the change, and the rows at and below it.
// The index rows of large values are built in the background.

import OrderedStore
import RealtimeModel

/// An indexed location, one of its children, and the child's index rows before a write.
struct IndexedChild {
  let location: Path
  let key: ChildKey
  let orderings: [Ordering]
  var before: [[UInt8]: [UInt8]] = [:]
}

/// The indexes that a write affects.
struct IndexedWrite {
  /// Indexed locations above the change.
  var above: [IndexedChild] = []
  /// The rules of the changed location, if anything at or below it is indexed.
  var rules: RuleNode?
}

/// Updates index rows in a batch.
struct IndexMaintenance: BatchHandler {
  let batch: BatchExecution

  /// Maximum size, in bytes of JSON, of a value whose index rows the write itself adds. Those of larger
  /// values are built in the background.
  private static let maximumBytesInBatch = 256 << 10
  /// Maximum number of index rows that one write removes. More are removed in the background.
  private static let maximumRowsCleared = 1_024

  /// The indexes that a change of a location affects, with their rows before the change; nil if there are
  /// none.
  func indexes(around path: Path) throws -> IndexedWrite? {
    guard !path.isPriority, let root = try batch.settings.rules()?.root, root.hasIndexes else { return nil }
    var write = IndexedWrite()
    var node: RuleNode? = root
    for (depth, key) in path.keys.enumerated() {
      guard let ruleNode = node, ruleNode.hasIndexes else { break }
      if !ruleNode.indexes.isEmpty {
        var child = IndexedChild(
          location: Path(keys: Array(path.keys[..<depth])), key: key, orderings: ruleNode.indexes)
        child.before = try tree.indexRows(of: child.key, in: child.location, by: child.orderings)
        write.above.append(child)
      }
      node = ruleNode.child(key)
    }
    if let node, node.hasIndexes { write.rules = node }
    return write.above.isEmpty && write.rules == nil ? nil : write
  }

  /// Updates index rows after a change.
  ///
  /// - Parameters:
  ///   - value: the new value at the path; nil if it is not in memory.
  ///   - hadChildren: whether index rows may exist at and below the path.
  func update(
    _ write: IndexedWrite, at path: Path, _ value: Node?, hadChildren: Bool,
    in writer: any SequencedTransaction
  ) throws {
    for child in write.above {
      let now = try tree.indexRows(of: child.key, in: child.location, by: child.orderings)
      for key in child.before.keys where now[key] == nil { try writer.clear(key) }
      for (key, row) in now where child.before[key] != row { try writer.set(key, row) }
    }
    guard let rules = write.rules else { return }
    let range = KeyRange(prefix: IndexRows.prefix(of: path))
    if hadChildren {
      var count = 0
      try writer.scan(range, reverse: false) { _, _, _ in
        count += 1
        return count <= IndexMaintenance.maximumRowsCleared
      }
      if count > IndexMaintenance.maximumRowsCleared { return try build(path, in: writer) }
      if count > 0 { try writer.clear(range) }
    }
    guard let value, value.estimatedSize <= IndexMaintenance.maximumBytesInBatch else {
      return try build(path, in: writer)
    }
    try fill(value, at: path, rules, writer)
  }

  private func fill(_ value: Node, at path: Path, _ rules: RuleNode, _ writer: any SequencedTransaction)
    throws
  {
    try value.forEachChild { key, child in
      for ordering in rules.indexes {
        let row = IndexRows.row(SortKey(of: key, child, in: ordering))
        try writer.set(IndexRows.prefix(of: path, by: ordering) + row.key, row.value)
      }
      if let inner = rules.child(key), inner.hasIndexes {
        try fill(child, at: path.child(key), inner, writer)
      }
      return true
    }
  }

  // MARK: Builds

  /// The pending builds.
  func builds() throws -> IndexBuilds {
    if let known = batch.cachedBuilds { return known }
    let builds = try IndexBuilds(in: tree.view)
    batch.cachedBuilds = builds
    return builds
  }

  /// Stores the pending builds.
  func set(_ builds: IndexBuilds, in writer: any SequencedTransaction) throws {
    if builds.all.isEmpty {
      try writer.clear(IndexBuilds.row)
    } else {
      try writer.set(IndexBuilds.row, builds.bytes)
      executor.events.indexesPending()
    }
    batch.cachedBuilds = builds
  }

  /// Starts a background build of the index rows at and below a location.
  func build(_ path: Path, in writer: any SequencedTransaction) throws {
    var builds = try builds()
    builds.add(path)
    try set(builds, in: writer)
  }
}
