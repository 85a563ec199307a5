// A row reader reads and decodes the stored rows of one database. Every stored value begins with the version
// that wrote it.
//
// Invariant: a row's version is at most the newest version of the snapshot. Writers assert it. Readers report
// a row that breaks it as corrupted, because the file may be damaged.

/// Reads rows of one database from a snapshot.
struct RowReader {
  let snapshot: any EngineSnapshot
  let layout: StorageKeyLayout
  let tier: ReadTier
  /// The newest version whose commits the snapshot contains.
  let newestVersion: Version

  static let versionBytes = 8

  /// The current row of a key.
  func get(_ key: Key) throws -> VersionedValue? {
    var row: VersionedValue?
    let isFound = try key.withUnsafeBytes { key in
      try layout.withRow(key) { physical in
        try snapshot.get(physical, tier) { bytes in
          guard let writtenAt = writtenAt(bytes) else { return }
          row = VersionedValue(
            value: StoredValue(bytes.dropFirst(RowReader.versionBytes)), writtenAt: writtenAt)
        }
      }
    }
    if isFound, row == nil { throw RowReader.corruptedRow }
    return row
  }

  /// The version that wrote the current row of a key, without reading its value.
  func writtenAt(_ key: Key) throws -> Version? {
    var version: Version?
    let isFound = try key.withUnsafeBytes { key in
      try layout.withRow(key) { physical in try snapshot.get(physical, tier) { version = writtenAt($0) } }
    }
    if isFound, version == nil { throw RowReader.corruptedRow }
    return version
  }

  /// A cursor over the current rows of a range.
  func cursor(_ range: KeyRange) throws -> any EngineCursor {
    let bounds = layout.bounds(of: range)
    return try snapshot.cursor(from: bounds.start, to: bounds.end, tier)
  }

  /// The value at a cursor, and the version that wrote it.
  @inline(__always)
  func row(
    at cursor: any EngineCursor
  ) throws -> (value: UnsafeRawBufferPointer, writtenAt: Version) {
    let bytes = cursor.value
    guard let writtenAt = writtenAt(bytes) else { throw RowReader.corruptedRow }
    return (UnsafeRawBufferPointer(rebasing: bytes.dropFirst(RowReader.versionBytes)), writtenAt)
  }

  /// The version at the beginning of a stored value; nil if the value is too short, or if no commit of the
  /// snapshot can have that version.
  @inline(__always)
  private func writtenAt(_ bytes: UnsafeRawBufferPointer) -> Version? {
    guard bytes.count >= RowReader.versionBytes else { return nil }
    let version = StorageKeyLayout.version(in: bytes, at: 0)
    return version <= newestVersion ? version : nil
  }

  /// The log records with versions above `version`, at most `limit`.
  func logRecords(after version: Version, limit: Int) throws -> [LogRecord] {
    let start = layout.withLog(Version(microseconds: version.microseconds + 1)) { Key($0) }
    let cursor = try snapshot.cursor(from: start, to: layout.end(of: .log), tier)
    var records: [LogRecord] = []
    var allowance = ReadAllowance(tier)
    try cursor.seekToFirst()
    while cursor.isValid, records.count < limit {
      try allowance.spend(cursor.value.count)
      let key = cursor.key
      guard key.count == StorageKeyLayout.prefixBytes + RowReader.versionBytes else {
        throw RowReader.corruptedRow
      }
      let recordVersion = StorageKeyLayout.version(in: key, at: StorageKeyLayout.prefixBytes)
      guard recordVersion <= newestVersion else { break }
      records.append(LogRecord(version: recordVersion, payload: StoredValue(cursor.value)))
      try cursor.next()
    }
    return records
  }

  static let corruptedRow = StoreError(.corrupted, "a stored row has no version, or a version of no commit")
}

extension EngineCursor {
  /// The key of the row at the cursor, without the database's prefix.
  @inline(__always)
  var rowKey: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: key.dropFirst(StorageKeyLayout.prefixBytes))
  }
}
