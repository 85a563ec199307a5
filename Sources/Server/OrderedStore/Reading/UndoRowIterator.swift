// An undo row iterator visits the undo rows of a range key by key, in either direction. An undo row is an old value of
// a key, stored under the key and the version that replaced it.
//
// Most keys have few undo rows. The iterator steps over them one by one, because a step costs a fraction of a seek.
// After eight steps on one key it seeks, so that the cost of a key does not grow with its history.

/// Iterates over the keys that have undo rows.
struct UndoRowIterator {
  /// The number of steps over the undo rows of one key before the iterator seeks.
  static let maximumSteps = 8

  private let reader: RowReader
  private let cursor: any EngineCursor
  private let version: Version
  private let reverse: Bool
  /// The key whose undo rows come next; nil at the end.
  private(set) var key: Key?
  /// The physical key of every undo row of `key`, without the version at its end.
  private var keyPrefix = Key()

  init(_ reader: RowReader, _ range: KeyRange, at version: Version, reverse: Bool) throws {
    let bounds = reader.layout.undoBounds(of: range)
    cursor = try reader.snapshot.cursor(from: bounds.start, to: bounds.end, reader.tier)
    self.reader = reader
    self.version = version
    self.reverse = reverse
    try reverse ? cursor.seekToLast() : cursor.seekToFirst()
    try load()
  }

  /// Returns the value of the current key at the iterator's version, if an undo row contains it. The bytes are valid
  /// until the iterator moves. Call this once for each key.
  mutating func rowAtVersion() throws -> (value: UnsafeRawBufferPointer, writtenAt: Version)? {
    // A key's undo rows are ordered by time: each was written when the previous one was replaced, or later. The first
    // one whose `until` is above the version determines the value.
    for _ in 0..<UndoRowIterator.maximumSteps {
      guard isAtKey else { return nil }
      let row = try undoRow()
      if until > version {
        if row.writtenAt <= version { return row }
        if !reverse { return nil }
      } else if reverse {
        return nil
      }
      try reverse ? cursor.previous() : cursor.next()
    }
    guard let key else { return nil }
    let after = Version(microseconds: version.microseconds &+ 1)
    try key.withUnsafeBytes { try reader.layout.withUndo($0, until: after) { try cursor.seek($0) } }
    guard isAtKey else { return nil }
    let row = try undoRow()
    return row.writtenAt <= version ? row : nil
  }

  /// Moves to the next key.
  mutating func nextKey() throws {
    var remainingSteps = UndoRowIterator.maximumSteps
    while remainingSteps > 0, isAtKey {
      try reverse ? cursor.previous() : cursor.next()
      remainingSteps -= 1
    }
    if remainingSteps == 0, isAtKey, let key {
      try key.withUnsafeBytes { key in
        if reverse {
          try reader.layout.withUndo(key, until: .zero) { try cursor.seekBelow($0) }
        } else {
          try reader.layout.withUndo(key, until: Version(microseconds: .max)) { try cursor.seek($0) }
        }
      }
    }
    try load()
  }

  private mutating func load() throws {
    guard cursor.isValid else {
      key = nil
      return
    }
    guard let undo = StorageKeyLayout.rowKey(ofUndo: cursor.key) else { throw RowReader.corruptedRow }
    key = undo.key
    keyPrefix = Key(cursor.key.dropLast(RowReader.versionBytes))
  }

  /// Whether the cursor is at an undo row of the key.
  private var isAtKey: Bool {
    guard cursor.isValid, cursor.key.count == keyPrefix.count + RowReader.versionBytes else { return false }
    return keyPrefix.withUnsafeBytes {
      compareBytes(UnsafeRawBufferPointer(rebasing: cursor.key.dropLast(RowReader.versionBytes)), $0) == 0
    }
  }

  /// The undo row at the cursor.
  /// - Throws: ``RowReader/corruptedRow`` if the stored versions contradict each other: the row must be
  ///   written before it is replaced.
  private func undoRow() throws -> (value: UnsafeRawBufferPointer, writtenAt: Version) {
    let row = try reader.row(at: cursor)
    guard row.writtenAt < until else { throw RowReader.corruptedRow }
    return row
  }

  /// The version that replaced the undo row at the cursor.
  private var until: Version { StorageKeyLayout.version(in: cursor.key, at: keyPrefix.count) }
}
