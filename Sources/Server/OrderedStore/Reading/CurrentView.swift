// The newest durable state: current rows only, no history touched.

/// A view of a snapshot as it is.
final class CurrentView: ReadView {
  let version: Version
  private let reader: RowReader
  /// Whether a read wanted the disk where only memory was allowed.
  private(set) var missed = false

  init(_ reader: RowReader, at version: Version) {
    self.reader = reader
    self.version = version
  }

  func get(_ key: Key) throws -> VersionedValue? {
    do {
      return try reader.get(key)
    } catch let miss as NotInMemory {
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
        guard try visit(cursor.rowKey, row.value, row.writtenAt) else { return }
        try reverse ? cursor.previous() : cursor.next()
      }
    } catch let miss as NotInMemory {
      missed = true
      throw miss
    }
  }
}
