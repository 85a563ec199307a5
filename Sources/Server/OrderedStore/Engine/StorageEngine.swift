// A storage engine is the ordered map under a store, with snapshots and atomic batches. All other parts of
// the store contract (versions, history, sequencer, group commit, log, catalogue) are built once on this
// protocol, for all engines.
//
// Invariants of an engine
//   1. A snapshot never changes, and contains only durable batches.
//   2. A batch is applied completely or not at all, also across power cuts.
//   3. Batches become durable in the order of their commits.

/// The storage that a read may access. It depends on the thread that runs the read.
package enum ReadTier: Sendable {
  /// Memory only, for short reads on callers' threads, which also serve other connections. A read that needs
  /// the disk or a long scan throws ``MemoryTierMiss``.
  case memory
  /// Memory and disk, for reads on the store's threads. Such a read may block and take long.
  case disk
  /// Like ``disk``, but without caching the rows that are read. For scans so long that they would evict
  /// frequently used rows from the cache.
  case withoutCacheFill
}

/// The error of a read that must leave its caller's thread, because it needs the disk or scans many rows. The store
/// catches it; callers never receive it.
package struct MemoryTierMiss: Error {
  package init() {}
}

/// The ordered map under a store.
package protocol StorageEngine: AnyObject, Sendable {
  /// The current state.
  func snapshot() -> any EngineSnapshot

  /// An empty batch.
  func makeBatch() -> any EngineBatch

  /// Applies a batch. It is durable when this returns. Any thread may call it, also concurrently.
  /// - Throws: ``StoreError``; the outcome is then unknown.
  func commit(_ batch: any EngineBatch) throws

  /// Releases the disk space of a cleared range immediately if the engine can do so. The engine may ignore
  /// this call.
  func reclaim(from start: Key, to end: Key)

  /// Releases the directory. All snapshots and cursors must have been released.
  func close()
}

/// An immutable state of the map.
package protocol EngineSnapshot: AnyObject, Sendable {
  /// Passes the value of a key to `body`; its bytes are valid during the call.
  /// - Returns: whether the key has a value.
  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ body: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool

  /// A cursor over `start <= key < end`.
  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor
}

/// A position in a range of a snapshot. Not to be shared between threads.
package protocol EngineCursor: AnyObject {
  /// Whether the cursor is at a row.
  var isValid: Bool { get }
  /// The key at the cursor, valid until it moves.
  var key: UnsafeRawBufferPointer { get }
  /// The value at the cursor, valid until it moves.
  var value: UnsafeRawBufferPointer { get }
  /// Moves to the first row of the range.
  func seekToFirst() throws
  /// Moves to the last row of the range.
  func seekToLast() throws
  /// Moves to the first row not below `key`.
  func seek(_ key: UnsafeRawBufferPointer) throws
  /// Moves to the last row below `key`.
  func seekBelow(_ key: UnsafeRawBufferPointer) throws
  /// Moves to the next row.
  func next() throws
  /// Moves to the previous row.
  func previous() throws
}

/// Changes that are applied together. Not to be shared between threads without a lock.
package protocol EngineBatch: AnyObject, Sendable {
  /// The approximate size of the changes, in bytes.
  var byteCount: Int { get }
  /// Whether the batch contains no change.
  var isEmpty: Bool { get }
  /// Sets a key to the concatenation of two byte strings.
  func put(_ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer)
  /// Removes a key.
  func delete(_ key: UnsafeRawBufferPointer)
  /// Removes `start <= key < end`.
  func deleteRange(from start: UnsafeRawBufferPointer, to end: UnsafeRawBufferPointer)
  /// Removes all changes, so that the batch can be used again.
  func removeAll()
}
