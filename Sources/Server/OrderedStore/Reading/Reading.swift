// Where reads run: on the caller's thread as long as memory serves them, else again on a thread that may block.

/// Steps of a read.
enum Reading {
  /// Runs a body over a view. A body may swallow the error of a read that missed memory, so that the view is asked.
  @inline(__always)
  static func attempt<Result>(missed: () -> Bool, _ body: () throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body()
    } catch {
      throw missed() ? NotInMemory() : error
    }
    if missed() { throw NotInMemory() }
    return result
  }

  /// The log records of a range of versions.
  static func log(
    _ layout: KeyLayout, _ snapshot: any EngineSnapshot, after: Version, upTo last: Version, limit: Int,
    _ tier: ReadTier
  ) throws -> [LogRecord] {
    let start = layout.withLog(Version(microseconds: after.microseconds + 1)) { Key($0) }
    let cursor = try snapshot.cursor(from: start, to: layout.end(of: .log), tier)
    var records: [LogRecord] = []
    try cursor.seekToFirst()
    while cursor.isValid, records.count < limit {
      let key = cursor.key
      guard key.count == KeyLayout.prefixLength + 8 else { throw RowReader.damage }
      let version = KeyLayout.version(in: key, at: KeyLayout.prefixLength)
      guard version <= last else { break }
      records.append(LogRecord(version: version, payload: StoredValue(cursor.value)))
      try cursor.next()
    }
    return records
  }
}
