// A change search finds out whether rows have changed since a transaction read them. It searches the stored
// rows, and is used for read sets that are too old for ``RecentWrites``.
//
// An inserted or overwritten row has a version above the read's version. A removed row leaves an undo row (its old
// value), whose `until` version is above the read's version.

/// A search for changes in the stored history and the uncommitted rows.
struct ChangeSearch {
  private let reader: RowReader
  private let uncommitted: OrderedMap<UncommittedRows.Entry>

  init(_ reader: RowReader, _ uncommitted: OrderedMap<UncommittedRows.Entry>) {
    self.reader = reader
    self.uncommitted = uncommitted
  }

  /// Whether any key or range of a read set has changed.
  func hasChanged(since reads: ReadSet) throws -> Bool {
    for key in reads.keys
    where try hasChanged(KeyRange(start: key, end: key + [0]), since: reads.version) {
      return true
    }
    for range in reads.ranges where try hasChanged(range, since: reads.version) { return true }
    return false
  }

  private func hasChanged(_ range: KeyRange, since version: Version) throws -> Bool {
    var uncommitted = OrderedMapCursor(uncommitted)
    range.start.withUnsafeBytes { uncommitted.seek($0) }
    // Rows of published commits are among the uncommitted rows for some time.
    while uncommitted.isValid, range.contains(uncommitted.key) {
      if uncommitted.value.version > version { return true }
      uncommitted.next()
    }
    let rows = try reader.cursor(range)
    try rows.seekToFirst()
    while rows.isValid {
      if try reader.row(at: rows).writtenAt > version { return true }
      try rows.next()
    }
    let bounds = reader.layout.undoBounds(of: range)
    let undo = try reader.snapshot.cursor(from: bounds.start, to: bounds.end, reader.tier)
    try undo.seekToFirst()
    while undo.isValid {
      guard let until = StorageKeyLayout.trailingVersion(of: undo.key) else { throw RowReader.corruptedRow }
      if until > version { return true }
      try undo.next()
    }
    return false
  }
}
