// A snapshot of RocksDB and the walks over it.

internal import CRocksDB
internal import OrderedStore

/// One state of the database.
// Safety: snapshots and read options are only read after they were made, which RocksDB allows from any thread.
final class RocksSnapshot: EngineSnapshot, @unchecked Sendable {
  fileprivate let handle: RocksHandle
  fileprivate let snapshot: OpaquePointer?
  private let fromMemory: OpaquePointer?
  private let fromDisk: OpaquePointer?

  init(_ handle: RocksHandle) {
    self.handle = handle
    snapshot = rocksdb_create_snapshot(handle.database)
    fromMemory = RocksSnapshot.options(snapshot, .memory)
    fromDisk = RocksSnapshot.options(snapshot, .disk)
  }

  deinit {
    rocksdb_readoptions_destroy(fromMemory)
    rocksdb_readoptions_destroy(fromDisk)
    rocksdb_release_snapshot(handle.database, snapshot)
  }

  fileprivate static func options(_ snapshot: OpaquePointer?, _ tier: ReadTier) -> OpaquePointer? {
    let options = rocksdb_readoptions_create()
    rocksdb_readoptions_set_snapshot(options, snapshot)
    // RocksDB's tier 1 is its block cache and memtables.
    if tier == .memory { rocksdb_readoptions_set_read_tier(options, 1) }
    if tier == .withoutCacheFill { rocksdb_readoptions_set_fill_cache(options, 0) }
    return options
  }

  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool
  {
    var error: UnsafeMutablePointer<CChar>?
    // One row is not worth options of its own.
    let options = tier == .memory ? fromMemory : fromDisk
    let slice = rocksdb_get_pinned(handle.database, options, key.characters, key.count, &error)
    if let error { throw RocksError.error("reading", error) }
    guard let slice else { return false }
    defer { rocksdb_pinnableslice_destroy(slice) }
    var size = 0
    let bytes = rocksdb_pinnableslice_value(slice, &size)
    // Of a table that is not open RocksDB knows in memory only that the key may be there, and gives an empty value for
    // it without an error. After a start that is all tables but the first 16.
    if size == 0, tier == .memory { throw MemoryTierMiss() }
    use(UnsafeRawBufferPointer(start: bytes, count: size))
    return true
  }

  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor {
    RocksCursor(self, from: start, to: end, tier)
  }
}

/// A walk over a snapshot, inside bounds that RocksDB knows too, so that it does not read beyond them.
final class RocksCursor: EngineCursor {
  private let snapshot: RocksSnapshot
  private let options: OpaquePointer?
  private let iterator: OpaquePointer?
  /// The bounds' bytes, which RocksDB refers to as long as the iterator lives.
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
    // Rows removed and not yet compacted away are walked over unseen: not far on a caller's thread.
    if tier == .memory { rocksdb_readoptions_set_max_skippable_internal_keys(options, 256) }
    rocksdb_readoptions_set_iterate_lower_bound(options, lower.characters, lower.count)
    rocksdb_readoptions_set_iterate_upper_bound(options, upper.characters, upper.count)
    iterator = rocksdb_create_iterator(snapshot.handle.database, options)
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
    try settle()
  }

  func seekToLast() throws {
    guard compareBytes(lower, upper) < 0 else { return }
    rocksdb_iter_seek_to_last(iterator)
    try settle()
  }

  func seek(_ key: UnsafeRawBufferPointer) throws {
    guard compareBytes(lower, upper) < 0 else { return }
    let target = compareBytes(lower, key) > 0 ? lower : key
    rocksdb_iter_seek(iterator, target.characters, target.count)
    try settle()
  }

  func seekBelow(_ key: UnsafeRawBufferPointer) throws {
    guard compareBytes(lower, upper) < 0 else { return }
    guard compareBytes(key, upper) < 0 else { return try seekToLast() }
    rocksdb_iter_seek_for_prev(iterator, key.characters, key.count)
    try settle()
    if isValid, compareBytes(self.key, key) == 0 { try previous() }
  }

  func next() throws {
    rocksdb_iter_next(iterator)
    try settle()
  }

  func previous() throws {
    rocksdb_iter_prev(iterator)
    try settle()
  }

  /// Notes whether the iterator stands on a row, and throws if it stopped for another reason than the end.
  @inline(__always)
  private func settle() throws {
    isValid = rocksdb_iter_valid(iterator) != 0
    guard !isValid else { return }
    try RocksError.check("reading") { rocksdb_iter_get_error(iterator, $0) }
  }
}
