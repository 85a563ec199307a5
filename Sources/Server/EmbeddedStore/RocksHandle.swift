// An open RocksDB and everything it was opened with. Whoever reads holds the handle, so that it is closed when the
// last of them lets go.
//
// Invariant: `database` is open as long as this object lives, and nothing of RocksDB outlives it.

internal import CRocksDB
import Locking
internal import OrderedStore

/// An open RocksDB.
// Safety: RocksDB's handles may be used from any thread; the fields never change.
final class RocksHandle: @unchecked Sendable {
  let database: OpaquePointer
  let synced: OpaquePointer
  private let options: OpaquePointer
  private let cache: OpaquePointer
  private let directory: DataDirectory
  private let closed: Guarded<Bool>

  /// Opens the directory's database, creating it if need be. `closed` becomes true when the handle has gone.
  init(_ directory: DataDirectory, _ settings: EmbeddedOptions, closed: Guarded<Bool>) throws {
    let capacity = settings.blockCacheBytes ?? SystemMemory.bytes / 4
    guard let options = rocksdb_options_create(),
      let cache = rocksdb_cache_create_lru(max(capacity, 1 << 20)),
      let synced = rocksdb_writeoptions_create()
    else { throw StoreError.unavailable("RocksDB is out of memory") }
    RocksHandle.configure(options, cache, settings)
    rocksdb_writeoptions_set_sync(synced, settings.syncsCommits ? 1 : 0)
    var database: OpaquePointer?
    do {
      try LogDamage(directory.path).check(options)
      try RocksError.check("opening \(directory.path)") { error in
        database = rocksdb_open(options, directory.path, error)
      }
      guard let database else { throw StoreError.unavailable("RocksDB did not open \(directory.path)") }
      self.database = database
    } catch {
      rocksdb_writeoptions_destroy(synced)
      rocksdb_options_destroy(options)
      rocksdb_cache_destroy(cache)
      throw error
    }
    self.options = options
    self.cache = cache
    self.synced = synced
    self.directory = directory
    self.closed = closed
  }

  deinit {
    rocksdb_cancel_all_background_work(database, 1)
    rocksdb_close(database)
    rocksdb_writeoptions_destroy(synced)
    rocksdb_options_destroy(options)
    rocksdb_cache_destroy(cache)
    // What is stored here goes after this, which whoever waits to open the directory anew would not wait for.
    directory.unlock()
    closed.withLock { $0 = true }
    closed.broadcast()
  }

  /// Keeps RocksDB from counting what the calling thread does, which costs a look-up of a thread's variable a comparison.
  @inline(__always)
  static func countNothing() { rocksdb_set_perf_level(1) }

  private static func configure(_ options: OpaquePointer, _ cache: OpaquePointer, _ settings: EmbeddedOptions)
  {
    rocksdb_options_set_create_if_missing(options, 1)
    rocksdb_options_set_paranoid_checks(options, 1)
    // Point in time: replay stops at the first torn record, which no sync has covered (LogDamage sees to that).
    rocksdb_options_set_wal_recovery_mode(options, 2)
    // A small memtable and log keep the replay after a kill short.
    rocksdb_options_set_write_buffer_size(options, max(settings.memtableBytes, 64 << 10))
    rocksdb_options_set_max_write_buffer_number(options, 4)
    rocksdb_options_set_max_total_wal_size(options, UInt64(max(settings.memtableBytes, 64 << 10)) * 4)
    // Every written row is looked up for its undo row: a filter tells most new ones from memory's rows too.
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1)
    rocksdb_options_set_memtable_whole_key_filtering(options, 1)
    rocksdb_options_set_max_background_jobs(options, 3)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
    // While a table is written, eight bytes of each of its keys are held for its filter: of short rows that compress well
    // a table of 32 MiB has millions.
    rocksdb_options_set_target_file_size_base(options, 8 << 20)
    rocksdb_options_set_max_bytes_for_level_base(options, 128 << 20)
    rocksdb_options_set_bytes_per_sync(options, 1 << 20)
    rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
    // Tables stay open, so that an absent key costs its filter, and no read waits for a table to be opened: all of
    // them, up to the store's share of what the process may open.
    let tables = settings.openTables ?? OpenFiles.current.tables
    rocksdb_options_set_max_open_files(options, Int32(clamping: tables))
    // RocksDB's own log says what it was opened with and no more. Once a write to that log has failed (a full disk),
    // a RocksDB built with assertions, as Debian's is, ends the process with the next line: there must be none.
    rocksdb_options_set_info_log_level(options, 5)
    rocksdb_options_set_keep_log_file_num(options, 2)
    rocksdb_options_set_stats_dump_period_sec(options, 0)

    guard let table = rocksdb_block_based_options_create() else { return }
    rocksdb_block_based_options_set_block_cache(table, cache)
    rocksdb_block_based_options_set_block_size(table, 8 << 10)
    rocksdb_block_based_options_set_format_version(table, 5)
    // Two bytes a key: of 2,000 look-ups of a row that a table lacks one reads a block of it. With ten bits it were one of
    // a hundred, and a load of new documents, each of which is looked for, would fill the cache with such blocks.
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(16))
    rocksdb_options_set_block_based_table_factory(options, table)
    rocksdb_block_based_options_destroy(table)
  }
}

/// RocksDB's errors, which come as text.
enum RocksError {
  /// Calls RocksDB with a place for an error; throws what it put there.
  @inline(__always)
  static func check(
    _ what: @autoclosure () -> String, _ call: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void
  ) throws {
    var error: UnsafeMutablePointer<CChar>?
    call(&error)
    if let error { throw RocksError.error(what(), error) }
  }

  /// Turns RocksDB's text into an error and frees it.
  static func error(_ what: String, _ text: UnsafeMutablePointer<CChar>) -> any Error {
    defer { rocksdb_free(text) }
    let message = withoutDirectories(String(cString: text))
    if message.hasPrefix("Result incomplete") { return NotAtOnce() }
    if message.hasPrefix("Corruption") { return StoreError(.corrupted, "\(what): \(message)") }
    return StoreError.unavailable("\(what): \(message)")
  }

  /// Leaves of every path the file's name: the message goes to clients, whom the machine's directories don't concern.
  static func withoutDirectories(_ message: String) -> String {
    func name(_ part: Substring) -> Substring? {
      guard part.hasPrefix("/"), let slash = part.lastIndex(of: "/") else { return nil }
      return part[part.index(after: slash)...]
    }
    // Paths, which may have spaces, mostly stand between colons.
    return message.split(separator: ": ", omittingEmptySubsequences: false).map { part in
      if let name = name(part) { return String(name) }
      return part.split(separator: " ", omittingEmptySubsequences: false).map { name($0) ?? $0 }
        .joined(separator: " ")
    }.joined(separator: ": ")
  }
}
