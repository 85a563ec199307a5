// An uncommitted merge scans durable rows and uncommitted rows together in key order. An uncommitted row
// hides the durable row of the same key.

/// One scan over a range. It sees the uncommitted rows as they were when the scan began, so the body may
/// write during the scan.
struct UncommittedMerge {
  private let reader: RowReader
  private let rows: any EngineCursor
  private var uncommitted: OrderedMapCursor<UncommittedRows.Entry>
  private let range: KeyRange
  private let reverse: Bool

  init(
    _ reader: RowReader, _ rows: any EngineCursor, _ uncommitted: OrderedMap<UncommittedRows.Entry>,
    _ range: KeyRange, reverse: Bool
  ) {
    self.reader = reader
    self.rows = rows
    self.uncommitted = OrderedMapCursor(uncommitted)
    self.range = range
    self.reverse = reverse
  }

  mutating func run(
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try reverse ? rows.seekToLast() : rows.seekToFirst()
    seekUncommitted()
    while true {
      let hasUncommitted = uncommitted.isValid && range.contains(uncommitted.key)
      guard hasUncommitted || rows.isValid else { return }
      let order = hasUncommitted ? compare() : -1
      if order < 0 {
        let row = try reader.row(at: rows)
        guard try visit(rows.rowKey, row.value, row.writtenAt) else { return }
      } else {
        let entry = uncommitted.value
        if let value = entry.value {
          let continues = try uncommitted.key.withUnsafeBytes { key in
            try value.withUnsafeBytes { try visit(key, $0, entry.version) }
          }
          guard continues else { return }
        }
        reverse ? uncommitted.previous() : uncommitted.next()
      }
      if order <= 0 { try reverse ? rows.previous() : rows.next() }
    }
  }

  /// Negative if the durable row comes first, zero if both rows have the same key.
  private func compare() -> Int {
    guard rows.isValid else { return 1 }
    let order = uncommitted.key.withUnsafeBytes { compareBytes(rows.rowKey, $0) }
    return reverse ? -order : order
  }

  private mutating func seekUncommitted() {
    if !reverse {
      range.start.withUnsafeBytes { uncommitted.seek($0) }
    } else if let end = range.end {
      end.withUnsafeBytes { uncommitted.seekBelow($0) }
    } else {
      uncommitted.seekToLast()
    }
  }
}
