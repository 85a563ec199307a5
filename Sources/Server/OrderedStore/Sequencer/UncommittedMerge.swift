// Walks durable rows and rows in flight together, in key order; a row in flight hides the durable one of its key.

/// One scan over the durable rows of a range and the overlay as it was when the scan began.
struct UncommittedMerge {
  private let rows: any EngineCursor
  private var flights: OrderedMapCursor<UncommittedRows.Entry>
  private let range: KeyRange
  private let reverse: Bool

  init(_ rows: any EngineCursor, _ uncommitted: UncommittedRows, _ range: KeyRange, reverse: Bool) {
    self.rows = rows
    flights = OrderedMapCursor(uncommitted.entries)
    self.range = range
    self.reverse = reverse
  }

  mutating func run(
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try reverse ? rows.seekToLast() : rows.seekToFirst()
    seekFlights()
    while true {
      let inFlight = flights.isValid && range.contains(flights.key)
      guard inFlight || rows.isValid else { return }
      let order = inFlight ? compare() : -1
      if order < 0 {
        let row = try rows.row()
        guard try visit(rows.rowKey, row.value, row.writtenAt) else { return }
      } else {
        let entry = flights.value
        if let value = entry.value {
          let goesOn = try flights.key.withUnsafeBytes { key in
            try value.withUnsafeBytes { try visit(key, $0, entry.version) }
          }
          guard goesOn else { return }
        }
        reverse ? flights.previous() : flights.next()
      }
      if order <= 0 { try reverse ? rows.previous() : rows.next() }
    }
  }

  /// Below zero if the durable row comes first, zero if both are of one key.
  private func compare() -> Int {
    guard rows.isValid else { return 1 }
    let order = flights.key.withUnsafeBytes { compareBytes(rows.rowKey, $0) }
    return reverse ? -order : order
  }

  private mutating func seekFlights() {
    if !reverse {
      range.start.withUnsafeBytes { flights.seek($0) }
    } else if let end = range.end {
      end.withUnsafeBytes { flights.seekBelow($0) }
    } else {
      flights.seekToLast()
    }
  }
}
