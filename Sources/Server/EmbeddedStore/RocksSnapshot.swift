// A RocksDB snapshot is an immutable state of the database. Its cursors scan ranges of it.

internal import CRocksDB
internal import OrderedStore

/// An immutable state of the database.
// SAFETY: snapshots and read options do not change after they were made, and RocksDB allows reading them from any thread.
final class RocksSnapshot: EngineSnapshot, @unchecked Sendable {
  fileprivate let database: RocksDatabase
  fileprivate let snapshot: OpaquePointer?
  private let memoryOptions: OpaquePointer?
  private let diskOptions: OpaquePointer?

  init(_ database: RocksDatabase) {
    self.database = database
    snapshot = rocksdb_create_snapshot(database.handle)
    memoryOptions = RocksSnapshot.options(snapshot, .memory)
    diskOptions = RocksSnapshot.options(snapshot, .disk)
  }

  deinit {
    rocksdb_readoptions_destroy(memoryOptions)
    rocksdb_readoptions_destroy(diskOptions)
    rocksdb_release_snapshot(database.handle, snapshot)
  }

  fileprivate static func options(_ snapshot: OpaquePointer?, _ tier: ReadTier) -> OpaquePointer? {
    let options = rocksdb_readoptions_create()
    rocksdb_readoptions_set_snapshot(options, snapshot)
    // Read tier 1 limits RocksDB to its block cache and memtables.
    if tier == .memory { rocksdb_readoptions_set_read_tier(options, 1) }
    if tier == .withoutCacheFill { rocksdb_readoptions_set_fill_cache(options, 0) }
    return options
  }

  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ body: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool
  {
    var error: UnsafeMutablePointer<CChar>?
    // Look-ups always fill the cache: one row evicts little.
    let options = tier == .memory ? memoryOptions : diskOptions
    let slice = rocksdb_get_pinned(database.handle, options, key.characters, key.count, &error)
    if let error { throw RocksError.error("reading", error) }
    guard let slice else { return false }
    defer { rocksdb_pinnableslice_destroy(slice) }
    var size = 0
    let bytes = rocksdb_pinnableslice_value(slice, &size)
    // An empty value in the memory tier may mean that the row is unknown. If a table is not open, RocksDB
    // cannot know in memory whether it contains the key, and returns an empty value without an error. After a
    // start only the first 16 tables are open.
    if size == 0, tier == .memory { throw MemoryTierMiss() }
    body(UnsafeRawBufferPointer(start: bytes, count: size))
    return true
  }

  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor {
    RocksCursor(self, from: start, to: end, tier)
  }
}

/// A cursor over a range of a snapshot. RocksDB gets the bounds, so that it does not read beyond them.
final class RocksCursor: EngineCursor {
  private let snapshot: RocksSnapshot
  private let options: OpaquePointer?
  private let iterator: OpaquePointer?
  /// The bytes of the bounds, which RocksDB references while the iterator exists.
  private let bounds: UnsafeMutableRawBufferPointer
  private let lower: UnsafeRawBufferPointer
  private let upper: UnsafeRawBufferPointer
  private(set) var isValid = false

  init(_ snapshot: RocksSnapshot, from start: Key, to end: Key, _ tier: ReadTier) {
    self.snapshot = snapshot
    bounds = .allocate(byteCount: max(start.count + end.count, 1), alignment: 1)
    bounds.copyBytes(from: start)
    UnsafeMutableRawBufferPointer(rebasing: bounds[start.count...]).copyBytes(from: end)
    lower = UnsafeRawBufferPointer(rebasing: bounds[0..<start.count])
    upper = UnsafeRawBufferPointer(rebasing: bounds[start.count..<(start.count + end.count)])
    options = RocksSnapshot.options(snapshot.snapshot, tier)
    // The iterator must step over removed rows that are not compacted yet. On a caller's thread this option
    // makes it fail after 256 of them, so that the read moves to a reader thread.
    if tier == .memory { rocksdb_readoptions_set_max_skippable_internal_keys(options, 256) }
    rocksdb_readoptions_set_iterate_lower_bound(options, lower.characters, lower.count)
    rocksdb_readoptions_set_iterate_upper_bound(options, upper.characters, upper.count)
    iterator = rocksdb_create_iterator(snapshot.database.handle, options)
  }

  deinit {
    rocksdb_iter_destroy(iterator)
    rocksdb_readoptions_destroy(options)
    bounds.deallocate()
  }

  var key: UnsafeRawBufferPointer {
    var size = 0
    let bytes = rocksdb_iter_key(iterator, &size)
    return UnsafeRawBufferPointer(start: bytes, count: size)
  }

  var value: UnsafeRawBufferPointer {
    var size = 0
    let bytes = rocksdb_iter_value(iterator, &size)
    return UnsafeRawBufferPointer(start: bytes, count: size)
  }

  func seekToFirst() throws {
    guard compareBytes(lower, upper) < 0 else { return }
    rocksdb_iter_seek_to_first(iterator)
    try updateValidity()
  }

  func seekToLast() throws {
    guard compareBytes(lower, upper) < 0 else { return }
    rocksdb_iter_seek_to_last(iterator)
    try updateValidity()
  }

  func seek(_ key: UnsafeRawBufferPointer) throws {
    guard compareBytes(lower, upper) < 0 else { return }
    let target = compareBytes(lower, key) > 0 ? lower : key
    rocksdb_iter_seek(iterator, target.characters, target.count)
    try updateValidity()
  }

  func seekBelow(_ key: UnsafeRawBufferPointer) throws {
    guard compareBytes(lower, upper) < 0 else { return }
    guard compareBytes(key, upper) < 0 else { return try seekToLast() }
    rocksdb_iter_seek_for_prev(iterator, key.characters, key.count)
    try updateValidity()
    if isValid, compareBytes(self.key, key) == 0 { try previous() }
  }

  func next() throws {
    rocksdb_iter_next(iterator)
    try updateValidity()
  }

  func previous() throws {
    rocksdb_iter_prev(iterator)
    try updateValidity()
  }

  /// Updates ``isValid``.
  /// - Throws: RocksDB's error if the iterator stopped before the end.
  @inline(__always)
  private func updateValidity() throws {
    isValid = rocksdb_iter_valid(iterator) != 0
    guard !isValid else { return }
    try RocksError.check("reading") { rocksdb_iter_get_error(iterator, $0) }
  }
}
