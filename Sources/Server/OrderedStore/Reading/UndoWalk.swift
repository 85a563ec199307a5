// The undo rows of a range, key by key, in either direction.
//
// Most keys have one undo row, or few: they are stepped over, which costs a fraction of a seek. Keys with many are left,
// and searched, by seeks, so that what a key costs does not grow with its history.

/// A walk over the keys that have undo rows.
struct UndoWalk {
  /// The rows of one key that are stepped over before a seek.
  static let steps = 8

  private let cursor: any EngineCursor
  private let layout: StorageKeyLayout
  private let version: Version
  private let reverse: Bool
  /// The key whose undo rows come next; nil at the end.
  private(set) var key: Key?
  /// Its undo rows' physical keys without their versions.
  private var head = Key()

  init(_ reader: RowReader, _ range: KeyRange, at version: Version, reverse: Bool) throws {
    let bounds = reader.layout.undoBounds(of: range)
    cursor = try reader.snapshot.cursor(from: bounds.start, to: bounds.end, reader.tier)
    layout = reader.layout
    self.version = version
    self.reverse = reverse
    try reverse ? cursor.seekToLast() : cursor.seekToFirst()
    load()
  }

  /// What the key held at the version by its undo rows, valid until the walk goes on. To be asked once for a key.
  mutating func held() throws -> (value: UnsafeRawBufferPointer, writtenAt: Version)? {
    // Of one key's undo rows each was written when, or after, the one before it was undone.
    for _ in 0..<UndoWalk.steps {
      guard isOfKey else { return nil }
      let row = try cursor.row()
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
    try key.withUnsafeBytes { try layout.withUndo($0, until: after) { try cursor.seek($0) } }
    guard isOfKey else { return nil }
    let row = try cursor.row()
    return row.writtenAt <= version ? row : nil
  }

  /// Goes on to the next key.
  mutating func skip() throws {
    var left = UndoWalk.steps
    while left > 0, isOfKey {
      try reverse ? cursor.previous() : cursor.next()
      left -= 1
    }
    if left == 0, isOfKey, let key {
      try key.withUnsafeBytes { key in
        if reverse {
          try layout.withUndo(key, until: .zero) { try cursor.seekBelow($0) }
        } else {
          try layout.withUndo(key, until: Version(microseconds: .max)) { try cursor.seek($0) }
        }
      }
    }
    load()
  }

  private mutating func load() {
    guard cursor.isValid, let found = StorageKeyLayout.rowKey(ofUndo: cursor.key) else {
      key = nil
      return
    }
    key = found.key
    head = Key(cursor.key.dropLast(8))
  }

  /// Whether the cursor stands on an undo row of the key.
  private var isOfKey: Bool {
    guard cursor.isValid, cursor.key.count == head.count + 8 else { return false }
    return head.withUnsafeBytes {
      compareBytes(UnsafeRawBufferPointer(rebasing: cursor.key.dropLast(8)), $0) == 0
    }
  }

  /// The version until which the row under the cursor held.
  private var until: Version { StorageKeyLayout.version(in: cursor.key, at: head.count) }
}
