// What a storage engine must give: an ordered map on physical keys with snapshots and atomic batches. Everything else
// of the contract (versions, history, sequencer, group commit, log, catalogue) is built on this once, for all engines.
//
// Invariants an engine keeps
//   1. A snapshot never changes, and shows only batches that are durable.
//   2. A batch is applied whole or not at all, over power cuts too.
//   3. Batches become durable in the order they were applied.

/// Where a read may look, which is decided by whose thread it runs on.
package enum ReadTier: Sendable {
  /// In memory only, and only little: what would need the disk or a long walk throws ``NotAtOnce``. For the threads
  /// of callers, who have others to serve.
  case memory
  /// Everywhere and for long; may block. For the store's own threads.
  case disk
  /// As ``disk``, for walks over so much that it would take the place of what others read again and again: an engine that
  /// keeps what it reads need not keep this.
  case withoutCacheFill
}

/// Thrown inside the store by a read that would keep the caller's thread, because it needs the disk or walks over
/// many rows; never seen by callers.
package struct MemoryTierMiss: Error {
  package init() {}
}

/// The map under a store.
package protocol StorageEngine: AnyObject, Sendable {
  /// The current state.
  func snapshot() -> any EngineSnapshot

  /// An empty batch.
  func makeBatch() -> any EngineBatch

  /// Applies a batch; it is on disk when this returns. Called by one thread at a time or by several.
  /// - Throws: ``StoreError``; the outcome is then unknown.
  func commit(_ batch: any EngineBatch) throws

  /// Gives back the space of a range that has been cleared, if the engine can at once. A hint.
  func reclaim(from start: Key, to end: Key)

  /// Releases the directory. All snapshots and cursors must have been released before.
  func close()
}

/// One unchanging state of the map.
package protocol EngineSnapshot: AnyObject, Sendable {
  /// Hands the value of a key to `use`, valid during the call; returns whether there is one.
  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void) throws
    -> Bool

  /// A cursor over `start <= key < end`.
  func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor
}

/// A place in a snapshot, inside the range it was made for. Not to be shared between threads.
package protocol EngineCursor: AnyObject {
  /// Whether it stands on a row.
  var isValid: Bool { get }
  /// The key under the cursor, valid until it moves.
  var key: UnsafeRawBufferPointer { get }
  /// The value under the cursor, valid until it moves.
  var value: UnsafeRawBufferPointer { get }
  /// Moves to the first row of the range.
  func seekToFirst() throws
  /// Moves to the last row of the range.
  func seekToLast() throws
  /// Moves to the first row not below `key`.
  func seek(_ key: UnsafeRawBufferPointer) throws
  /// Moves to the last row below `key`.
  func seekBelow(_ key: UnsafeRawBufferPointer) throws
  /// Moves on by one.
  func next() throws
  /// Moves back by one.
  func previous() throws
}

/// Changes to apply together. Not to be shared between threads without a lock.
package protocol EngineBatch: AnyObject, Sendable {
  /// Bytes gathered so far, about.
  var byteCount: Int { get }
  /// Whether nothing was gathered.
  var isEmpty: Bool { get }
  /// Sets a key to the concatenation of two byte strings.
  func put(_ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer)
  /// Removes a key.
  func delete(_ key: UnsafeRawBufferPointer)
  /// Removes `start <= key < end`.
  func deleteRange(from start: UnsafeRawBufferPointer, to end: UnsafeRawBufferPointer)
  /// Empties it for use again.
  func removeAll()
}
