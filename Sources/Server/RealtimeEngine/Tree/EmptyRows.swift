// What is known of the rows around the changes of one update: an update over many paths goes through them in order, and
// most lie where nothing is. One look then tells how far that goes, where each path would take several.
//
// Invariant: no row of the tree lies from `start` to before `end`, and one at `end` if `endsWithRow`. Whoever changes rows
// says so at once.

import OrderedStore
import RealtimeModel

/// A stretch of keys without rows.
struct EmptyRows {
  /// Where looks end.
  let limit: [UInt8]
  private var start: [UInt8] = []
  private var end: [UInt8] = []
  /// Whether there is a row at the end, or only nothing known.
  private var endsWithRow = false

  /// Nothing is known yet of a location's rows; nil where they have no end.
  init?(below location: [UInt8]) {
    guard let limit = KeyRange.successor(ofPrefix: location) else { return nil }
    self.limit = limit
  }

  /// Takes note that no row lies in a range, and whether one lies at its end.
  mutating func learn(from start: [UInt8], to end: [UInt8], endsWithRow: Bool) {
    (self.start, self.end, self.endsWithRow) = (start, end, endsWithRow)
  }

  mutating func forget() { (start, end, endsWithRow) = ([], [], false) }

  /// Takes note that rows may have been written, all of them with this prefix.
  mutating func write(prefix: [UInt8]) {
    guard let behind = KeyRange.successor(ofPrefix: prefix), behind.isBefore(end) else { return forget() }
    if start.isBefore(behind) { start = behind }
  }

  /// Takes note that rows with this prefix may have been cleared.
  mutating func clear(prefix: [UInt8]) {
    if endsWithRow, end.starts(with: prefix) { endsWithRow = false }
  }

  /// Whether there is no row with this key.
  func covers(_ key: [UInt8]) -> Bool { !key.isBefore(start) && key.isBefore(end) }

  /// Whether there is a row in a range; nil where that is not known.
  func hasRow(_ range: KeyRange) -> Bool? {
    guard covers(range.start) else { return nil }
    guard let last = range.end, end.isBefore(last) else {
      // It ends in here, or just where what is known does.
      return range.end == nil ? nil : false
    }
    return endsWithRow ? true : nil
  }
}

extension EmptyRows {
  /// Nothing is known yet of the rows around the changes of an update, which stand in order; nil for fewer than so many.
  init?(around changes: [(path: Path, value: Node)], fewest: Int) {
    guard changes.count >= fewest, let first = changes.first?.path,
      let last = changes.last?.path
    else { return nil }
    let shared = zip(first.keys, last.keys).prefix { $0 == $1 }.count
    self.init(below: RowKeys.row(of: first.keys[..<shared]))
  }
}

extension [UInt8] {
  fileprivate func isBefore(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
