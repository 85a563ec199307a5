// The past view reads a state of a database before the newest. For a row that has changed since, it reads the
// undo row: the old value, stored with the version `until` that replaced it.
//
// For a key k and a version v, let u be the first undo row of k with until > v. At v the value of the key is
//   current(k)   if current(k).writtenAt <= v
//   u.value      else, if u exists and u.writtenAt <= v
//   absent       else.
// An insertion writes no undo row. Therefore u.writtenAt > v means that the key had no row at v.

/// A view of a snapshot at an older version.
final class PastView: TieredView {
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
    try recordingMisses {
      try allowance.check()
      let row = try reader.get(key)
      allowance.spend(lookUp: row)
      if let row, row.writtenAt <= version { return row }
      let range = KeyRange(start: key, end: key + [0])
      var undo = try UndoRowIterator(reader, range, at: version, reverse: false)
      guard undo.key != nil, let row = try undo.rowAtVersion() else { return nil }
      return VersionedValue(value: StoredValue(row.value), writtenAt: row.writtenAt)
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws { _ = try scan(range, reverse: reverse, maximumHidden: .max, visit) }

  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> HiddenKeys {
    try recordingMisses {
      var hidden = HiddenKeys()
      let rows = try reader.cursor(range)
      var undo = try UndoRowIterator(reader, range, at: version, reverse: reverse)
      try reverse ? rows.seekToLast() : rows.seekToFirst()
      while rows.isValid || undo.key != nil {
        try allowance.spend((rows.isValid ? rows.value.count : 0) + (undo.key?.count ?? 0))
        let order = PastView.order(rows, undo.key, reverse)
        var isVisible = true
        var continues = true
        if order <= 0, try reader.row(at: rows).writtenAt <= version {
          let row = try reader.row(at: rows)
          continues = try visit(rows.rowKey, row.value, row.writtenAt)
        } else if order >= 0, let key = undo.key, let row = try undo.rowAtVersion() {
          continues = try key.withUnsafeBytes { try visit($0, row.value, row.writtenAt) }
        } else {
          isVisible = false
        }
        guard continues else { return hidden }
        if !isVisible {
          hidden.count += 1
          if hidden.count >= limit {
            hidden.last = order < 0 ? Key(rows.rowKey) : undo.key
            return hidden
          }
        }
        if order >= 0 { try undo.nextKey() }
        if order <= 0 { try reverse ? rows.previous() : rows.next() }
      }
      return hidden
    }
  }

  /// Negative if the current row comes first, zero if both have the same key, positive if the undo row comes first.
  private static func order(_ rows: any EngineCursor, _ undoKey: Key?, _ reverse: Bool) -> Int {
    guard let undoKey else { return -1 }
    guard rows.isValid else { return 1 }
    let order = undoKey.withUnsafeBytes { compareBytes(rows.rowKey, $0) }
    return reverse ? -order : order
  }

  private func recordingMisses<Result>(_ read: () throws -> Result) throws -> Result {
    do {
      return try read()
    } catch let miss as MemoryTierMiss {
      hasMissed = true
      throw miss
    }
  }
}
