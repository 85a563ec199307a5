// Whether something read long ago has changed since, by the versions of rows and undo rows: the way for read sets
// that are older than what the sequencer remembers. An insertion leaves a row newer than the read, an overwrite too,
// and a removal leaves an undo row that held until after the read.

/// A search for changes in the stored history and the rows in flight.
struct ChangeSearch {
  private let reader: RowReader
  private let uncommitted: UncommittedRows

  init(_ reader: RowReader, _ uncommitted: UncommittedRows) {
    self.reader = reader
    self.uncommitted = uncommitted
  }

  /// Whether any key or range of a read set has changed.
  func changed(since reads: ReadSet) throws -> Bool {
    for key in reads.keys where try changed(KeyRange(start: key, end: key + [0]), since: reads.version) {
      return true
    }
    for range in reads.ranges where try changed(range, since: reads.version) { return true }
    return false
  }

  private func changed(_ range: KeyRange, since version: Version) throws -> Bool {
    var flights = OrderedMapCursor(uncommitted.entries)
    range.start.withUnsafeBytes { flights.seek($0) }
    if flights.isValid, range.contains(flights.key) { return true }
    let rows = try reader.cursor(range)
    try rows.seekToFirst()
    while rows.isValid {
      if try rows.row().writtenAt > version { return true }
      try rows.next()
    }
    let bounds = reader.layout.undoBounds(of: range)
    let undo = try reader.snapshot.cursor(from: bounds.start, to: bounds.end, reader.tier)
    try undo.seekToFirst()
    while undo.isValid {
      guard undo.key.count >= StorageKeyLayout.prefixLength + 8 else { throw RowReader.damage }
      if StorageKeyLayout.version(in: undo.key, at: undo.key.count - 8) > version { return true }
      try undo.next()
    }
    return false
  }
}
