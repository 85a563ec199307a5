// The newest durable state: current rows only, no history touched.

/// A view of a snapshot as it is.
final class CurrentView: ReadView {
  let version: Version
  private let reader: RowReader
  private var allowance: ReadAllowance
  /// Whether a read stopped, since it may not go on on this thread.
  private(set) var missed = false

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
      missed = true
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
        let row = try cursor.row()
        try allowance.spend(row.value.count)
        guard try visit(cursor.rowKey, row.value, row.writtenAt) else { return }
        try reverse ? cursor.previous() : cursor.next()
      }
    } catch let miss as MemoryTierMiss {
      missed = true
      throw miss
    }
  }
}
