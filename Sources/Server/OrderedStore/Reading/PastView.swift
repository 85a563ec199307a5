// A state in the past: rows not newer than the version as they are; for the others the undo row that held then.
//
// Algebra: for a key k and a version v, let u be the first undo row of k with until > v. At v the key held
//   current(k)   if current(k).writtenAt <= v
//   u.value      else, if u exists and u.writtenAt <= v
//   nothing      else.
// An insertion writes no undo row, so that u.writtenAt > v means that the key did not exist between.

/// A view of a snapshot as it was at a version.
final class PastView: ReadView {
  let version: Version
  private let reader: RowReader
  private var allowance: Allowance
  /// Whether a read stopped, since it may not go on on this thread.
  private(set) var missed = false

  init(_ reader: RowReader, at version: Version) {
    self.reader = reader
    self.version = version
    allowance = Allowance(reader.tier)
  }

  func get(_ key: Key) throws -> VersionedValue? {
    try noting {
      try allowance.check()
      let row = try reader.get(key)
      allowance.spend(lookUp: row)
      if let row, row.writtenAt <= version { return row }
      var undo = try UndoWalk(reader, KeyRange(start: key, end: key + [0]), at: version, reverse: false)
      guard undo.key != nil, let held = try undo.held() else { return nil }
      return VersionedValue(value: StoredValue(held.value), writtenAt: held.writtenAt)
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
    try noting {
      var hidden = HiddenKeys()
      let rows = try reader.cursor(range)
      var undo = try UndoWalk(reader, range, at: version, reverse: reverse)
      try reverse ? rows.seekToLast() : rows.seekToFirst()
      while rows.isValid || undo.key != nil {
        try allowance.spend((rows.isValid ? rows.value.count : 0) + (undo.key?.count ?? 0))
        let order = PastView.order(rows, undo.key, reverse)
        var isShown = true
        var goesOn = true
        if order <= 0, try rows.row().writtenAt <= version {
          let row = try rows.row()
          goesOn = try visit(rows.rowKey, row.value, row.writtenAt)
        } else if order >= 0, let key = undo.key, let held = try undo.held() {
          goesOn = try key.withUnsafeBytes { try visit($0, held.value, held.writtenAt) }
        } else {
          isShown = false
        }
        guard goesOn else { return hidden }
        if !isShown {
          hidden.count += 1
          if hidden.count >= limit {
            hidden.last = order < 0 ? Key(rows.rowKey) : undo.key
            return hidden
          }
        }
        if order >= 0 { try undo.skip() }
        if order <= 0 { try reverse ? rows.previous() : rows.next() }
      }
      return hidden
    }
  }

  /// Below zero if the row comes first, zero if both are of one key, above if the undone key comes first.
  private static func order(_ rows: any EngineCursor, _ undone: Key?, _ reverse: Bool) -> Int {
    guard let undone else { return -1 }
    guard rows.isValid else { return 1 }
    let order = undone.withUnsafeBytes { compareBytes(rows.rowKey, $0) }
    return reverse ? -order : order
  }

  private func noting<Result>(_ read: () throws -> Result) throws -> Result {
    do {
      return try read()
    } catch let miss as NotAtOnce {
      missed = true
      throw miss
    }
  }
}
