// A RocksDB database handle with its options and cache. Reads retain this object, and its release closes the
// database. The database is therefore closed after the last read.
//
// Invariant: `handle` is open while this object exists, and no RocksDB object outlives it.

import Locking

internal import CRocksDB
internal import OrderedStore

/// An open RocksDB database.
// SAFETY: RocksDB's handles may be used from any thread; the fields never change.
final class RocksDatabase: @unchecked Sendable {
  let handle: OpaquePointer
  /// The options for writes: each write is synced.
  let syncedWrite: OpaquePointer
  /// The record of the newest log, updated after each write.
  let newestLog: NewestLogRecord
  private let options: OpaquePointer
  private let cache: OpaquePointer
  private let directory: DataDirectory
  private let isReleased: Guarded<Bool>

  /// Opens the database of a directory, and creates it if it does not exist. `isReleased` becomes true when
  /// the database is closed.
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
      let end = try LogDamage(directory.path).check(options)
      if let end { settings.store.report(end.description) }
      newestLog = try NewestLogRecord(directory.path)
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
    // `directory` is released only after this deinit. The lock is released here, because the waiting process
    // or store opens the directory as soon as `isReleased` is true.
    directory.unlock()
    isReleased.withLock { $0 = true }
    isReleased.broadcast()
  }

  /// Disables RocksDB's performance counters of the calling thread. Enabled counters cost a thread-local look-up for
  /// each key comparison.
  @inline(__always)
  static func disablePerfCounters() { rocksdb_set_perf_level(1) }

  private static func configure(_ options: OpaquePointer, _ cache: OpaquePointer, _ settings: EmbeddedOptions)
  {
    rocksdb_options_set_create_if_missing(options, 1)
    rocksdb_options_set_paranoid_checks(options, 1)
    // Mode 2 is point-in-time recovery: replay stops at the first torn record. LogDamage has checked that
    // this record was not acknowledged.
    rocksdb_options_set_wal_recovery_mode(options, 2)
    // A small memtable and a small log keep the replay after a kill short.
    rocksdb_options_set_write_buffer_size(options, max(settings.memtableBytes, 64 << 10))
    // Two memtables are written as one table. Compactions then read and write about a third less under load, and the
    // memtables stay small, so that insertions stay quick: docs/decisions/0043.
    rocksdb_options_set_min_write_buffer_number_to_merge(options, 2)
    // One memtable that is filled, two that are written, and two that wait.
    rocksdb_options_set_max_write_buffer_number(options, 5)
    // The store looks up every row that it writes, because its old value becomes an undo row. For most new
    // keys this filter shows without a search that the memtable does not contain them.
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1)
    rocksdb_options_set_memtable_whole_key_filtering(options, 1)
    rocksdb_options_set_max_background_jobs(options, 3)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
    // Tables are small to limit memory: while RocksDB writes a table, it holds eight bytes in memory for each
    // key, for the filter. A table of 32 MiB with short, well compressed rows would have millions of keys.
    rocksdb_options_set_target_file_size_base(options, 8 << 20)
    rocksdb_options_set_max_bytes_for_level_base(options, 128 << 20)
    rocksdb_options_set_bytes_per_sync(options, 1 << 20)
    rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
    // Tables stay open, up to the store's share of the open files. An absent key then costs a filter look-up, and no read waits
    // for a table to open.
    let tables = settings.maximumOpenTables ?? OpenFileBudget.current.tables
    rocksdb_options_set_max_open_files(options, Int32(clamping: tables))
    // With this level RocksDB writes only its options to its info log. If a write to that log fails because
    // the disk is full, a RocksDB built with assertions, such as Debian's, ends the process at the next line.
    // There must therefore be no later lines.
    rocksdb_options_set_info_log_level(options, 5)
    rocksdb_options_set_keep_log_file_num(options, 2)
    rocksdb_options_set_stats_dump_period_sec(options, 0)

    guard let table = rocksdb_block_based_options_create() else { return }
    rocksdb_block_based_options_set_block_cache(table, cache)
    rocksdb_block_based_options_set_block_size(table, 8 << 10)
    rocksdb_block_based_options_set_format_version(table, 5)
    // The filter has 16 bits for each key. With them, one of 2,000 look-ups of an absent row needlessly reads
    // a block; with the usual ten bits, one of 100 does. A load of new documents looks up each key. With ten bits it
    // would fill the cache with needless blocks.
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(16))
    rocksdb_options_set_block_based_table_factory(options, table)
    rocksdb_block_based_options_destroy(table)
  }
}
