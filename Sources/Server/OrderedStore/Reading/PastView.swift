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
      if let row = try reader.get(key), row.writtenAt <= version { return row }
      let undo = try undoCursor(KeyRange(start: key, end: key + [0]))
      return try key.withUnsafeBytes { key in
        guard let held = try held(key, undo) else { return nil }
        return VersionedValue(value: StoredValue(held.value), writtenAt: held.writtenAt)
      }
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try noting {
      let rows = try reader.cursor(range)
      let undo = try undoCursor(range)
      try reverse ? rows.seekToLast() : rows.seekToFirst()
      try reverse ? undo.seekToLast() : undo.seekToFirst()
      while true {
        let undone = undo.isValid ? KeyLayout.rowKey(ofUndo: undo.key)?.key : nil
        guard rows.isValid || undone != nil else { return }
        try allowance.spend((rows.isValid ? rows.value.count : 0) + (undone?.count ?? 0))
        let order = PastView.order(rows, undone, reverse)
        let goesOn =
          try order <= 0
          ? visitRow(rows, undo, isUndone: order == 0, reverse, visit)
          : visitUndone(undone ?? [], undo, reverse, visit)
        guard goesOn else { return }
        if order <= 0 { try reverse ? rows.previous() : rows.next() }
      }
    }
  }

  /// Below zero if the row comes first, zero if both are of one key, above if the undone key comes first.
  private static func order(_ rows: any EngineCursor, _ undone: Key?, _ reverse: Bool) -> Int {
    guard let undone else { return -1 }
    guard rows.isValid else { return 1 }
    let order = undone.withUnsafeBytes { compareBytes(rows.rowKey, $0) }
    return reverse ? -order : order
  }

  /// Visits the row under `rows` as it was; leaves `undo` past that key.
  private func visitRow(
    _ rows: any EngineCursor, _ undo: any EngineCursor, isUndone: Bool, _ reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> Bool {
    let row = try rows.row()
    if row.writtenAt <= version {
      guard try visit(rows.rowKey, row.value, row.writtenAt) else { return false }
    } else if isUndone, let held = try held(rows.rowKey, undo) {
      guard try visit(rows.rowKey, held.value, held.writtenAt) else { return false }
    }
    if isUndone { try skip(rows.rowKey, undo, reverse) }
    return true
  }

  /// Visits a key that has no current row; leaves `undo` past that key.
  private func visitUndone(
    _ key: Key, _ undo: any EngineCursor, _ reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> Bool {
    try key.withUnsafeBytes { key in
      if let held = try held(key, undo) {
        guard try visit(key, held.value, held.writtenAt) else { return false }
      }
      try skip(key, undo, reverse)
      return true
    }
  }

  /// What a key held at the version by its undo rows.
  private func held(
    _ key: UnsafeRawBufferPointer, _ undo: any EngineCursor
  ) throws -> (value: UnsafeRawBufferPointer, writtenAt: Version)? {
    let after = Version(microseconds: version.microseconds &+ 1)
    try reader.layout.withUndo(key, until: after) { try undo.seek($0) }
    guard undo.isValid, let found = KeyLayout.rowKey(ofUndo: undo.key),
      found.key.withUnsafeBytes({ compareBytes($0, key) == 0 })
    else { return nil }
    let row = try undo.row()
    return row.writtenAt <= version ? row : nil
  }

  /// Moves `undo` past all undo rows of a key.
  private func skip(_ key: UnsafeRawBufferPointer, _ undo: any EngineCursor, _ reverse: Bool) throws {
    if reverse {
      try reader.layout.withUndo(key, until: .zero) { try undo.seekBelow($0) }
    } else {
      let last = Version(microseconds: .max)
      try reader.layout.withUndo(key, until: last) { try undo.seek($0) }
    }
  }

  private func undoCursor(_ range: KeyRange) throws -> any EngineCursor {
    let bounds = reader.layout.undoBounds(of: range)
    return try reader.snapshot.cursor(from: bounds.start, to: bounds.end, reader.tier)
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
