// Taking stored rows apart: every value on disk begins with the version that wrote it.

/// Reads rows of one database from a snapshot.
struct RowReader {
  let snapshot: any EngineSnapshot
  let layout: StorageKeyLayout
  let tier: ReadTier

  /// The current row of a key.
  func get(_ key: Key) throws -> VersionedValue? {
    var row: VersionedValue?
    var damaged = false
    let found = try key.withUnsafeBytes { key in
      try layout.withRow(key) { physical in
        try snapshot.get(physical, tier) { bytes in
          if bytes.count < 8 { damaged = true } else { row = RowReader.row(bytes) }
        }
      }
    }
    if found, damaged { throw RowReader.damage }
    return row
  }

  /// The version that wrote the current row of a key, without its value.
  func writtenAt(_ key: Key) throws -> Version? {
    var version: Version?
    _ = try key.withUnsafeBytes { key in
      try layout.withRow(key) { physical in
        try snapshot.get(physical, tier) { if $0.count >= 8 { version = StorageKeyLayout.version(in: $0, at: 0) } }
      }
    }
    return version
  }

  /// A cursor over the current rows of a range.
  func cursor(_ range: KeyRange) throws -> any EngineCursor {
    let bounds = layout.bounds(of: range)
    return try snapshot.cursor(from: bounds.start, to: bounds.end, tier)
  }

  static let damage = StoreError(.corrupted, "a stored row is shorter than its version")

  /// A row's bytes apart. `bytes` holds at least the version.
  @inline(__always)
  static func row(_ bytes: UnsafeRawBufferPointer) -> VersionedValue {
    VersionedValue(value: StoredValue(bytes.dropFirst(8)), writtenAt: StorageKeyLayout.version(in: bytes, at: 0))
  }
}

extension EngineCursor {
  /// The key of the row under the cursor, without the database's prefix.
  @inline(__always)
  var rowKey: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: key.dropFirst(StorageKeyLayout.prefixLength))
  }

  /// The value under the cursor, with the version that wrote it.
  @inline(__always)
  func row() throws -> (value: UnsafeRawBufferPointer, writtenAt: Version) {
    let bytes = value
    guard bytes.count >= 8 else { throw RowReader.damage }
    return (UnsafeRawBufferPointer(rebasing: bytes.dropFirst(8)), StorageKeyLayout.version(in: bytes, at: 0))
  }
}
