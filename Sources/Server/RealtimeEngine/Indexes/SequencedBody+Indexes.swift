// Keeps index rows with every write: those of the locations above what changes, by what changed in their child; those at
// and below it, anew. What is large is left to be built in the background.

import OrderedStore
import RealtimeModel

/// An indexed location, one of its children, and the rows that it had before a write.
struct IndexedChild {
  let location: Path
  let key: ChildKey
  let orderings: [Ordering]
  var before: [[UInt8]: [UInt8]] = [:]
}

/// What a write has to do with indexes.
struct IndexedWrite {
  /// Locations above what changes.
  var above: [IndexedChild] = []
  /// The rules of what changes, if anything is indexed there or below.
  var rules: RuleNode?
}

extension SequencedBody {
  /// Values larger than this, in bytes of JSON, get their index rows in the background.
  private static let mostIndexedAtOnce = 256 << 10
  /// So do locations with more index rows that are to be removed.
  private static let mostClearedIndexRows = 1_024

  /// What is indexed where a write is about to change something; nil if nothing is.
  mutating func indexes(around path: Path) throws -> IndexedWrite? {
    guard !path.isPriority, let root = try rules()?.root, root.hasIndexes else { return nil }
    var write = IndexedWrite()
    var node: RuleNode? = root
    for (depth, key) in path.keys.enumerated() {
      guard let here = node, here.hasIndexes else { break }
      if !here.indexes.isEmpty {
        var child = IndexedChild(
          location: Path(keys: Array(path.keys[..<depth])), key: key, orderings: here.indexes)
        child.before = try tree.indexRows(of: child.key, in: child.location, by: child.orderings)
        write.above.append(child)
      }
      node = here.child(key)
    }
    if let node, node.hasIndexes { write.rules = node }
    return write.above.isEmpty && write.rules == nil ? nil : write
  }

  /// Brings index rows up to date after a write.
  ///
  /// - Parameters:
  ///   - value: what stands at the path now; nil if it is not at hand.
  ///   - hadChildren: whether there may be index rows at and below the path.
  mutating func keepIndexes(
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
        return count <= SequencedBody.mostClearedIndexRows
      }
      if count > SequencedBody.mostClearedIndexRows { return try build(path, in: writer) }
      if count > 0 { try writer.clear(range) }
    }
    guard let value, value.estimatedSize <= SequencedBody.mostIndexedAtOnce else {
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

  /// What is to be built of the state.
  mutating func indexBuilds() throws -> IndexBuilds {
    if let known = knownBuilds { return known }
    let builds = try IndexBuilds(in: tree.view)
    knownBuilds = builds
    return builds
  }

  mutating func set(_ builds: IndexBuilds, in writer: any SequencedTransaction) throws {
    if builds.all.isEmpty {
      try writer.clear(IndexBuilds.row)
    } else {
      try writer.set(IndexBuilds.row, builds.bytes)
      sequencer.indexWork()
    }
    knownBuilds = builds
  }

  /// Has the index rows of a location and everything below it built anew, in the background.
  mutating func build(_ path: Path, in writer: any SequencedTransaction) throws {
    var builds = try indexBuilds()
    builds.add(path)
    try set(builds, in: writer)
  }
}

extension Tree {
  /// The index rows that a child of a location calls for, by their keys.
  func indexRows(
    of key: ChildKey, in location: Path, by orderings: [Ordering]
  ) throws -> [[UInt8]: [UInt8]] {
    let path = location.child(key)
    let itself = try orderingValue(at: path)
    if itself == .null { return [:] }
    var rows: [[UInt8]: [UInt8]] = [:]
    for ordering in orderings {
      var value = itself
      if case .child(let inner) = ordering {
        value = itself == .object ? try orderingValue(at: path.appending(inner)) : .null
      }
      let row = IndexRows.row(SortKey(value: value, key: key))
      rows[IndexRows.prefix(of: location, by: ordering) + row.key] = row.value
    }
    return rows
  }

  /// How a location takes part in an order: looks at the first row of it that is not that of a priority. Priorities alone
  /// are what the last child has left behind, until its removal is done.
  func orderingValue(at path: Path) throws -> OrderingValue {
    if let known = cache?.node(at: path) { return OrderingValue(known) }
    let prefix = RowKeys.row(of: path)
    var found = OrderingValue.null
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      if key.last == RowKeys.priority { return true }
      guard key.count == prefix.count else {
        found = .object
        return false
      }
      var decoder = NodeDecoder(value)
      found = OrderingValue(try decoder.node())
      return false
    }
    return found
  }
}
