// The current view reads the newest durable state of a database. It uses the current rows of a snapshot and
// no history.

/// A view of a snapshot's current rows.
final class CurrentView: TieredView {
  let version: Version
  private let reader: RowReader
  private var allowance: ReadAllowance
  private(set) var hasMissed = false

  init(_ reader: RowReader, at version: Version) {
    self.reader = reader
    self.version = version
    allowance = ReadAllowance(reader.tier)
  }

  func get(_ key: Key) throws -> VersionedValue? {
    do {
      try allowance.check()
      let row = try reader.get(key)
      allowance.spend(lookUp: row)
      return row
    } catch let miss as MemoryTierMiss {
      hasMissed = true
      throw miss
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    do {
      let cursor = try reader.cursor(range)
      try reverse ? cursor.seekToLast() : cursor.seekToFirst()
      while cursor.isValid {
        let row = try reader.row(at: cursor)
        try allowance.spend(row.value.count)
        guard try visit(cursor.rowKey, row.value, row.writtenAt) else { return }
        try reverse ? cursor.previous() : cursor.next()
      }
    } catch let miss as MemoryTierMiss {
      hasMissed = true
      throw miss
    }
  }
}
