// One step of building index rows in the background. Each step is a commit of its own, in the order of all writes: it sees
// what they left, and they keep the rows of what it has built as of what it has not.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// About how many rows one step reads or writes.
  private static let rowsOfAStep = 512
  /// The clock is looked at once in so many rows.
  private static let rowsBetweenLooks = 32

  /// Takes the next step of the first build; whether there is more to do.
  mutating func buildIndexes() throws -> Bool {
    var builds = try indexBuilds()
    guard var build = builds.all.first else { return false }
    let writer = try mustWrite()
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
    }
    try set(builds, in: writer)
    return !builds.all.isEmpty
  }

  /// Removes some index rows of a location; where to go on, nil at the end. What is written behind that place meanwhile
  /// is as it should be.
  private func clearSome(of build: IndexBuild, _ writer: any SequencedTransaction) throws -> [UInt8]? {
    var range = KeyRange(prefix: IndexRows.prefix(of: build.path))
    if !build.cursor.isEmpty { range.start = build.cursor }
    let end = ContinuousClock.now + sequencer.generations.limits.turnTime
    for _ in 0..<(SequencedBody.rowsOfAStep / SequencedBody.rowsBetweenLooks) {
      var keys: [[UInt8]] = []
      try writer.scan(range, reverse: false) { key, _, _ in
        keys.append(Array(key))
        return keys.count < SequencedBody.rowsBetweenLooks
      }
      for key in keys { try writer.clear(key) }
      guard let last = keys.last, keys.count == SequencedBody.rowsBetweenLooks else { return nil }
      range.start = last + [0x00]
      if ContinuousClock.now >= end { break }
    }
    return range.start
  }

  /// Gives some children their index rows; where to go on, nil at the end.
  private mutating func fillSome(of build: IndexBuild, _ writer: any SequencedTransaction) throws -> [UInt8]?
  {
    guard let root = try rules()?.root, root.hasIndexes else { return nil }
    let last = KeyRange.successor(ofPrefix: RowKeys.row(of: build.path))
    var cursor = build.cursor
    // The child that was seen last at each depth: deeper rows come back to it.
    var seen: [Int: Path] = [:]
    var (work, rows) = (0, 0)
    let end = ContinuousClock.now + sequencer.generations.limits.turnTime
    while work < SequencedBody.rowsOfAStep {
      rows += 1
      if rows % SequencedBody.rowsBetweenLooks == 0, ContinuousClock.now >= end { break }
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
      while let here = node, here.hasIndexes, depth < path.count {
        let child = Path(keys: Array(path.keys[...depth]))
        if !here.indexes.isEmpty, seen[depth] != child {
          seen[depth] = child
          let location = Path(keys: Array(path.keys[..<depth]))
          for (key, value) in try tree.indexRows(of: path.keys[depth], in: location, by: here.indexes) {
            try writer.set(key, value)
            work += 1
          }
        }
        node = here.child(path.keys[depth])
        depth += 1
      }
      // What lies below has no indexes, or this row is all there is at its place.
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
