// Remembers a range without rows around the changes of one update.
//
// An update of many paths processes them in order, and most of the paths have no rows yet. Without the gap
// each path would take several scans. With it, one scan finds how far the range without rows extends, and the
// following paths need none.
//
// Invariant: the tree has no row from `start` up to `end`, exclusive. If `endsWithRow` is true, it has a row
// at `end`. Every change of rows has to be recorded here immediately.

import OrderedStore
import RealtimeModel

/// A known range without rows.
struct RowGap {
  /// The key at which scans for the gap end.
  let limit: [UInt8]
  private var start: [UInt8] = []
  private var end: [UInt8] = []
  /// Whether a row is known to exist at the end.
  private var endsWithRow = false

  /// Creates a gap below a location, which covers no keys yet. Returns nil if no key is greater than every row of the
  /// location.
  init?(below location: [UInt8]) {
    guard let limit = KeyRange.successor(ofPrefix: location) else { return nil }
    self.limit = limit
  }

  /// Records that a range has no rows, and whether a row follows it.
  mutating func record(from start: [UInt8], to end: [UInt8], endsWithRow: Bool) {
    (self.start, self.end, self.endsWithRow) = (start, end, endsWithRow)
  }

  mutating func forget() { (start, end, endsWithRow) = ([], [], false) }

  /// Records that rows with this prefix may have been written.
  mutating func recordWrite(prefix: [UInt8]) {
    guard let next = KeyRange.successor(ofPrefix: prefix), next.isBefore(end) else { return forget() }
    if start.isBefore(next) { start = next }
  }

  /// Records that rows with this prefix may have been cleared.
  mutating func recordClear(prefix: [UInt8]) {
    if endsWithRow, end.starts(with: prefix) { endsWithRow = false }
  }

  /// Whether this key lies in the gap, so that no row with this key exists.
  func covers(_ key: [UInt8]) -> Bool { !key.isBefore(start) && key.isBefore(end) }

  /// Whether a range contains a row; nil if that is unknown.
  func hasRow(_ range: KeyRange) -> Bool? {
    guard covers(range.start) else { return nil }
    guard let last = range.end, end.isBefore(last) else {
      // The range is unbounded, so the answer is unknown, or it ends within the gap and has no row.
      return range.end == nil ? nil : false
    }
    return endsWithRow ? true : nil
  }
}

extension RowGap {
  /// Creates a gap around the sorted changes of an update, which covers no keys yet; nil if there are fewer
  /// than `minimumChanges`.
  init?(around changes: [(path: Path, value: Node)], minimumChanges: Int) {
    guard changes.count >= minimumChanges, let first = changes.first?.path,
      let last = changes.last?.path
    else { return nil }
    let shared = zip(first.keys, last.keys).prefix { $0 == $1 }.count
    self.init(below: RowKeys.row(of: first.keys[..<shared]))
  }
}

extension [UInt8] {
  fileprivate func isBefore(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
