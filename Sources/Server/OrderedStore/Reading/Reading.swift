// Where reads run: on the caller's thread as long as memory serves them and they are short, else again from the start
// on a thread of the store's own.
//
// Invariant: a read keeps its caller's thread, which is an event loop with other connections to serve, for a bounded
// number of rows and bytes only. Beyond it a query costs a change of threads, below it none.

/// Steps of a read.
enum Reading {
  /// Runs a body over a view. A body may swallow the error of a read that stopped, so that the view is asked.
  @inline(__always)
  static func attempt<Result>(missed: () -> Bool, _ body: () throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body()
    } catch {
      throw missed() ? MemoryTierMiss() : error
    }
    if missed() { throw MemoryTierMiss() }
    return result
  }

  /// The log records of a range of versions.
  static func log(
    _ layout: StorageKeyLayout, _ snapshot: any EngineSnapshot, after: Version, upTo last: Version, limit: Int,
    _ tier: ReadTier
  ) throws -> [LogRecord] {
    let start = layout.withLog(Version(microseconds: after.microseconds + 1)) { Key($0) }
    let cursor = try snapshot.cursor(from: start, to: layout.end(of: .log), tier)
    var records: [LogRecord] = []
    var allowance = ReadAllowance(tier)
    try cursor.seekToFirst()
    while cursor.isValid, records.count < limit {
      try allowance.spend(cursor.value.count)
      let key = cursor.key
      guard key.count == StorageKeyLayout.prefixLength + 8 else { throw RowReader.damage }
      let version = StorageKeyLayout.version(in: key, at: StorageKeyLayout.prefixLength)
      guard version <= last else { break }
      records.append(LogRecord(version: version, payload: StoredValue(cursor.value)))
      try cursor.next()
    }
    return records
  }
}

/// What a read may still walk over where it runs.
struct ReadAllowance {
  /// The rows that a read may walk over on its caller's thread, all scans together: more than a page of a hundred, which
  /// takes less than a millisecond with a row looked up for each.
  static let rows = 160
  /// The bytes that these rows' values may have, and those of rows that are looked up; one row may have more.
  static let bytes = 256 << 10

  private var rows: Int
  private var bytes: Int

  init(_ tier: ReadTier) {
    rows = tier == .memory ? ReadAllowance.rows : .max
    bytes = tier == .memory ? ReadAllowance.bytes : .max
  }

  /// Takes note of a row that is walked over.
  /// - Throws: ``NotAtOnce`` if it is one too many.
  @inline(__always)
  mutating func spend(_ size: Int) throws {
    rows -= 1
    bytes -= size
    if rows < 0 || bytes < 0 { throw MemoryTierMiss() }
  }

  /// Whether a row may still be looked up.
  /// - Throws: ``NotAtOnce`` if not.
  @inline(__always)
  func check() throws {
    if bytes < 0 { throw MemoryTierMiss() }
  }

  /// Takes note of a row that was looked up. The next one is refused if it was too large.
  @inline(__always)
  mutating func spend(lookUp row: VersionedValue?) {
    if let row { bytes -= row.value.count }
  }
}
