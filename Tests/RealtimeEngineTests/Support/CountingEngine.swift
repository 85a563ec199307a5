// Wraps the storage engine in memory and counts row reads.

import Locking
import OrderedStore

/// A storage engine in memory that counts row reads.
final class CountingEngine: StorageEngine {
  private let engine = MemoryEngine()
  let rows = Guarded(0)

  func snapshot() -> any EngineSnapshot { Snapshot(base: engine.snapshot(), rows: rows) }
  func makeBatch() -> any EngineBatch { engine.makeBatch() }
  func commit(_ batch: any EngineBatch) throws { try engine.commit(batch) }
  func reclaim(from start: [UInt8], to end: [UInt8]) {}
  func close() {}

  /// Returns the number of rows that `work` reads.
  func count(_ work: () async throws -> Void) async rethrows -> Int {
    let before = rows.withLock { $0 }
    try await work()
    return rows.withLock { $0 } - before
  }

  private final class Snapshot: EngineSnapshot {
    let base: any EngineSnapshot
    let rows: Guarded<Int>

    init(base: any EngineSnapshot, rows: Guarded<Int>) {
      self.base = base
      self.rows = rows
    }

    func get(
      _ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void
    ) throws -> Bool {
      rows.withLock { $0 += 1 }
      return try base.get(key, tier, use)
    }

    func cursor(from start: [UInt8], to end: [UInt8], _ tier: ReadTier) throws -> any EngineCursor {
      Cursor(base: try base.cursor(from: start, to: end, tier), rows: rows)
    }
  }

  private final class Cursor: EngineCursor {
    let base: any EngineCursor
    let rows: Guarded<Int>

    init(base: any EngineCursor, rows: Guarded<Int>) {
      self.base = base
      self.rows = rows
    }

    var isValid: Bool { base.isValid }
    var key: UnsafeRawBufferPointer { base.key }
    var value: UnsafeRawBufferPointer { base.value }
    func seekToFirst() throws { try count { try base.seekToFirst() } }
    func seekToLast() throws { try count { try base.seekToLast() } }
    func seek(_ key: UnsafeRawBufferPointer) throws { try count { try base.seek(key) } }
    func seekBelow(_ key: UnsafeRawBufferPointer) throws { try count { try base.seekBelow(key) } }
    func next() throws { try count { try base.next() } }
    func previous() throws { try count { try base.previous() } }

    private func count(_ move: () throws -> Void) throws {
      rows.withLock { $0 += 1 }
      try move()
    }
  }
}
