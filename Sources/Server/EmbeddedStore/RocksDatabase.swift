// An open RocksDB database with its options and cache. Reads retain it, so that it is closed after the last of them.
//
// Invariant: `handle` is open while this object exists, and no RocksDB object outlives it.

import Locking

internal import CRocksDB
internal import OrderedStore

/// An open RocksDB database.
// SAFETY: RocksDB's handles may be used from any thread; the fields never change.
final class RocksDatabase: @unchecked Sendable {
  let handle: OpaquePointer
  /// The options of a write that is synced.
  let syncedWrite: OpaquePointer
  private let options: OpaquePointer
  private let cache: OpaquePointer
  private let directory: DataDirectory
  private let isReleased: Guarded<Bool>

  /// Opens the directory's database, and creates it if it does not exist. `isReleased` becomes true when it is closed.
  init(_ directory: DataDirectory, _ settings: EmbeddedOptions, isReleased: Guarded<Bool>) throws {
    let capacity = settings.blockCacheBytes ?? SystemMemory.bytes / 4
    guard let options = rocksdb_options_create(),
      let cache = rocksdb_cache_create_lru(max(capacity, 1 << 20)),
      let syncedWrite = rocksdb_writeoptions_create()
    else { throw StoreError.unavailable("RocksDB is out of memory") }
    RocksDatabase.configure(options, cache, settings)
    rocksdb_writeoptions_set_sync(syncedWrite, settings.syncsCommits ? 1 : 0)
    var handle: OpaquePointer?
    do {
      try LogDamage(directory.path).check(options)
      try RocksError.check("opening \(directory.path)") { error in
        handle = rocksdb_open(options, directory.path, error)
      }
      guard let handle else { throw StoreError.unavailable("RocksDB did not open \(directory.path)") }
      self.handle = handle
    } catch {
      rocksdb_writeoptions_destroy(syncedWrite)
      rocksdb_options_destroy(options)
      rocksdb_cache_destroy(cache)
      throw error
    }
    self.options = options
    self.cache = cache
    self.syncedWrite = syncedWrite
    self.directory = directory
    self.isReleased = isReleased
  }

  deinit {
    rocksdb_cancel_all_background_work(handle, 1)
    rocksdb_close(handle)
    rocksdb_writeoptions_destroy(syncedWrite)
    rocksdb_options_destroy(options)
    rocksdb_cache_destroy(cache)
    // Stored properties are released later, and the next opener of the directory does not wait for them.
    directory.unlock()
    isReleased.withLock { $0 = true }
    isReleased.broadcast()
  }

  /// Disables RocksDB's performance counters of the calling thread. They cost one thread-local look-up for each key comparison.
  @inline(__always)
  static func disablePerfCounters() { rocksdb_set_perf_level(1) }

  private static func configure(_ options: OpaquePointer, _ cache: OpaquePointer, _ settings: EmbeddedOptions)
  {
    rocksdb_options_set_create_if_missing(options, 1)
    rocksdb_options_set_paranoid_checks(options, 1)
    // Point-in-time recovery: replay stops at the first torn record. LogDamage ensures that no sync has covered that record.
    rocksdb_options_set_wal_recovery_mode(options, 2)
    // A small memtable and a small log keep the replay after a kill short.
    rocksdb_options_set_write_buffer_size(options, max(settings.memtableBytes, 64 << 10))
    rocksdb_options_set_max_write_buffer_number(options, 4)
    rocksdb_options_set_max_total_wal_size(options, UInt64(max(settings.memtableBytes, 64 << 10)) * 4)
    // Every written row is looked up for its undo row. The filter answers most look-ups of new keys without a search of the memtable.
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1)
    rocksdb_options_set_memtable_whole_key_filtering(options, 1)
    rocksdb_options_set_max_background_jobs(options, 3)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
    // While RocksDB writes a table, it holds eight bytes of each key for the filter. A table of 32 MiB with short rows that
    // compress well has millions of keys.
    rocksdb_options_set_target_file_size_base(options, 8 << 20)
    rocksdb_options_set_max_bytes_for_level_base(options, 128 << 20)
    rocksdb_options_set_bytes_per_sync(options, 1 << 20)
    rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
    // Tables stay open, up to the store's share of the open files. An absent key then costs a filter look-up, and no read waits
    // for a table to open.
    let tables = settings.maximumOpenTables ?? OpenFileBudget.current.tables
    rocksdb_options_set_max_open_files(options, Int32(clamping: tables))
    // RocksDB's info log contains only its options. After a failed write to that log (full disk), a RocksDB built with assertions,
    // such as Debian's, ends the process at the next line. There must be no further line.
    rocksdb_options_set_info_log_level(options, 5)
    rocksdb_options_set_keep_log_file_num(options, 2)
    rocksdb_options_set_stats_dump_period_sec(options, 0)

    guard let table = rocksdb_block_based_options_create() else { return }
    rocksdb_block_based_options_set_block_cache(table, cache)
    rocksdb_block_based_options_set_block_size(table, 8 << 10)
    rocksdb_block_based_options_set_format_version(table, 5)
    // Two bytes for each key: one of 2,000 look-ups of an absent row reads a block. With ten bits it is one of 100. A load of new
    // documents, each of which is looked up, would then fill the cache with such blocks.
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(16))
    rocksdb_options_set_block_based_table_factory(options, table)
    rocksdb_block_based_options_destroy(table)
  }
}
