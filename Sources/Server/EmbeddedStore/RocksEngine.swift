// RocksDB as a storage engine: batches are its write batches, snapshots its snapshots.

internal import CRocksDB
import Locking
internal import OrderedStore

/// The engine on disk.
final class RocksEngine: StorageEngine {
  private let handle: Guarded<RocksHandle?>
  private let closed = Guarded(false)

  /// Opens the engine of a directory. Blocks.
  init(_ directory: DataDirectory, _ options: EmbeddedOptions) throws {
    handle = Guarded(try RocksHandle(directory, options, closed: closed))
  }

  func snapshot() -> any EngineSnapshot {
    guard let handle = handle.withLock({ $0 }) else { return ClosedSnapshot() }
    return RocksSnapshot(handle)
  }

  func makeBatch() -> any EngineBatch { RocksBatch() }

  func commit(_ batch: any EngineBatch) throws {
    guard let batch = batch as? RocksBatch else { throw StoreError(.corrupted, "a batch of another engine") }
    guard let handle = handle.withLock({ $0 }) else { throw RocksEngine.isClosed }
    RocksHandle.countNothing()
    try RocksError.check("writing") { error in
      rocksdb_write(handle.database, handle.synced, batch.inKeyOrder(), error)
    }
  }

  func reclaim(from start: Key, to end: Key) {
    guard let handle = handle.withLock({ $0 }) else { return }
    start.withUnsafeBytes { start in
      end.withUnsafeBytes { end in
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_delete_file_in_range(
          handle.database, start.characters, start.count, end.characters, end.count, &error)
        // A hint that failed costs space until the next compaction, nothing else.
        if let error { rocksdb_free(error) }
      }
    }
  }

  /// Lets go of the database, and waits for reads that still hold it.
  func close() {
    handle.withLock { handle -> RocksHandle? in
      defer { handle = nil }
      return handle
    }.map { _ in () }
    _ = closed.wait(milliseconds: 10_000) { $0 ? true : nil }
  }

  static let isClosed = StoreError.unavailable("the store is closed")
}

/// What a closed engine shows: nothing can be read.
private final class ClosedSnapshot: EngineSnapshot {
  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool
  {
    throw RocksEngine.isClosed
  }

  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor {
    throw RocksEngine.isClosed
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes as RocksDB wants them.
  @inline(__always)
  var characters: UnsafePointer<CChar>? { baseAddress?.assumingMemoryBound(to: CChar.self) }
}
