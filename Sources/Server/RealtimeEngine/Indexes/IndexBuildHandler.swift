// Handles index builds: each operation builds a limited number of index rows.
//
// Builds and writes are sequenced in one order. A build therefore reads the values of all earlier writes.
// Later writes update the index rows of their children themselves, whether or not the build has reached them.

import OrderedStore
import RealtimeModel

/// Builds index rows in a batch.
struct IndexBuildHandler: BatchHandler {
  let batch: BatchExecution

  /// Approximate number of rows that one operation reads or writes.
  private static let rowsPerOperation = 512
  /// Number of rows between two checks of the clock.
  private static let rowsPerCheck = 32

  /// Continues the first pending build.
  ///
  /// - Returns: whether builds remain.
  func buildNext() throws -> Bool {
    var builds = try batch.indexes.builds()
    guard var build = builds.all.first else { return false }
    let writer = try batch.requireWriter()
    switch build.phase {
    case .clearing:
      if let cursor = try clearSome(of: build, writer) {
        build.cursor = cursor
      } else {
        build.phase = .filling
        build.cursor = RowKeys.row(of: build.path)
      }
      builds.update(build)
    case .filling:
      let cursor = try fillSome(of: build, writer)
      build.cursor = cursor ?? []
      builds.update(cursor == nil ? nil : build)
      if cursor == nil { executor.events.indexesChanged() }
    }
    try batch.indexes.set(builds, in: writer)
    return !builds.all.isEmpty
  }

  /// Removes some index rows of a location. After this, rows that writes add before the returned key are
  /// valid and stay.
  ///
  /// - Returns: the key to continue from; nil at the end.
  private func clearSome(of build: IndexBuild, _ writer: any SequencedTransaction) throws -> [UInt8]? {
    var range = KeyRange(prefix: IndexRows.prefix(of: build.path))
    if !build.cursor.isEmpty { range.start = build.cursor }
    let end = ContinuousClock.now + staging.batchQuantum
    for _ in 0..<(IndexBuildHandler.rowsPerOperation / IndexBuildHandler.rowsPerCheck) {
      var keys: [[UInt8]] = []
      try writer.scan(range, reverse: false) { key, _, _ in
        keys.append(Array(key))
        return keys.count < IndexBuildHandler.rowsPerCheck
      }
      for key in keys { try writer.clear(key) }
      guard let last = keys.last, keys.count == IndexBuildHandler.rowsPerCheck else { return nil }
      range.start = last + [0x00]
      if ContinuousClock.now >= end { break }
    }
    return range.start
  }

  /// Writes the index rows of some children.
  ///
  /// - Returns: the key to continue from; nil at the end.
  private func fillSome(of build: IndexBuild, _ writer: any SequencedTransaction) throws -> [UInt8]? {
    guard let root = try batch.settings.rules()?.root, root.hasIndexes else { return nil }
    let last = KeyRange.successor(ofPrefix: RowKeys.row(of: build.path))
    var cursor = build.cursor
    // The last indexed child at each depth. The following rows may belong to the same child, whose index rows
    // are then written already.
    var seen: [Int: Path] = [:]
    var (work, rows) = (0, 0)
    let end = ContinuousClock.now + staging.batchQuantum
    while work < IndexBuildHandler.rowsPerOperation {
      rows += 1
      if rows % IndexBuildHandler.rowsPerCheck == 0, ContinuousClock.now >= end { break }
      var found: [UInt8]?
      try writer.scan(KeyRange(start: cursor, end: last), reverse: false) { key, _, _ in
        found = Array(key)
        return false
      }
      guard let row = found else { return nil }
      work += 1
      let path = Path(
        keys: row.dropFirst().withContiguousStorageIfAvailable {
          RowKeys.keys(in: UnsafeRawBufferPointer($0))
        } ?? []
      ).dataPath
      var node: RuleNode? = root
      var depth = 0
      while let ruleNode = node, ruleNode.hasIndexes, depth < path.count {
        let child = Path(keys: Array(path.keys[...depth]))
        if !ruleNode.indexes.isEmpty, seen[depth] != child {
          seen[depth] = child
          let location = Path(keys: Array(path.keys[..<depth]))
          for (key, value) in try tree.indexRows(of: path.keys[depth], in: location, by: ruleNode.indexes) {
            try writer.set(key, value)
            work += 1
          }
        }
        node = ruleNode.child(path.keys[depth])
        depth += 1
      }
      // If nothing below the child is indexed, the scan skips the child's other rows.
      if node?.hasIndexes == true {
        cursor = row + [0x00]
      } else if let next = KeyRange.successor(ofPrefix: RowKeys.row(of: path.keys[..<depth])) {
        cursor = next
      } else {
        return nil
      }
    }
    return cursor
  }
}
