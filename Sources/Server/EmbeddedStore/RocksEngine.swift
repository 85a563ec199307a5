// The RocksDB engine is the storage engine on disk. It uses RocksDB's write batches and snapshots.
//
// Snapshots and cursors retain the ``RocksDatabase``. Their last release closes it.
//
// Decision: docs/decisions/0001-rocksdb.md

internal import CRocksDB
import Locking
internal import OrderedStore

/// The storage engine on disk.
final class RocksEngine: StorageEngine {
  /// The maximum time that ``close()`` waits for reads in progress, in milliseconds.
  private static let closeTimeout = 10_000

  /// The open database; nil once the engine is closed.
  private let database: Guarded<RocksDatabase?>
  /// Whether RocksDB has been closed.
  private let isReleased = Guarded(false)

  /// Opens the engine of a directory. Blocks.
  init(_ directory: DataDirectory, _ options: EmbeddedOptions) throws {
    database = Guarded(try RocksDatabase(directory, options, isReleased: isReleased))
  }

  func snapshot() -> any EngineSnapshot {
    guard let database = database.withLock({ $0 }) else { return ClosedSnapshot() }
    return RocksSnapshot(database)
  }

  func makeBatch() -> any EngineBatch { RocksBatch() }

  func commit(_ batch: any EngineBatch) throws {
    guard let batch = batch as? RocksBatch else {
      preconditionFailure("invariant: a batch is committed to the engine that made it")
    }
    guard let database = database.withLock({ $0 }) else { throw RocksEngine.closed }
    RocksDatabase.disablePerfCounters()
    try RocksError.check("writing") { error in
      rocksdb_write(database.handle, database.syncedWrite, batch.rocksBatch(), error)
    }
    try database.newestLog.update(for: database.handle)
  }

  func reclaim(from start: Key, to end: Key) {
    guard let database = database.withLock({ $0 }) else { return }
    start.withUnsafeBytes { start in
      end.withUnsafeBytes { end in
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_delete_file_in_range(
          database.handle, start.characters, start.count, end.characters, end.count, &error)
        // A failure is ignored: the disk space is then released by the next compaction.
        if let error { rocksdb_free(error) }
      }
    }
  }

  /// Releases the database and waits for reads in progress.
  func close() {
    // The closure returns the reference, so that its release, which may close RocksDB, happens outside the
    // lock.
    _ = database.withLock { database -> RocksDatabase? in
      defer { database = nil }
      return database
    }
    _ = isReleased.wait(milliseconds: RocksEngine.closeTimeout) { $0 ? true : nil }
  }

  static let closed = StoreError.unavailable("the store is closed")
}

/// The snapshot of a closed engine. Every read fails.
private final class ClosedSnapshot: EngineSnapshot {
  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ body: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool
  {
    throw RocksEngine.closed
  }

  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor {
    throw RocksEngine.closed
  }
}

extension UnsafeRawBufferPointer {
  /// The pointer to the bytes as RocksDB's C interface expects it.
  @inline(__always)
  var characters: UnsafePointer<CChar>? { baseAddress?.assumingMemoryBound(to: CChar.self) }
}
