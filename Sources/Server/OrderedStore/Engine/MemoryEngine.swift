// The memory engine is a storage engine in memory: an ordered map, copied on write. Its data ends with the
// process. The option `--ephemeral` uses it, and tests compare the engine on disk with it.
//
// Invariant: a snapshot is a copy of the map's value. It cannot change, and making it is O(1).

import Locking

/// The storage engine in memory.
package final class MemoryEngine: StorageEngine {
  private let map = Guarded(OrderedMap<StoredValue>())

  /// Makes an empty engine.
  package init() {}

  package func snapshot() -> any EngineSnapshot { MemorySnapshot(map.withLock { $0 }) }

  package func makeBatch() -> any EngineBatch { MemoryBatch() }

  package func commit(_ batch: any EngineBatch) throws {
    guard let batch = batch as? MemoryBatch else {
      preconditionFailure("invariant: a batch is committed to the engine that made it")
    }
    map.withLock { map in
      for change in batch.changes {
        switch change {
        case .put(let key, let value): map.updateValue(value, forKey: key)
        case .delete(let key): map.removeValue(forKey: key)
        case .deleteRange(let start, let end): MemoryEngine.clear(from: start, to: end, in: &map)
        }
      }
    }
  }

  private static func clear(from start: Key, to end: Key, in map: inout OrderedMap<StoredValue>) {
    var cleared: [Key] = []
    var cursor = OrderedMapCursor(map)
    start.withUnsafeBytes { cursor.seek($0) }
    while cursor.isValid, compareKeys(cursor.key, end) < 0 {
      cleared.append(cursor.key)
      cursor.next()
    }
    for key in cleared { map.removeValue(forKey: key) }
  }

  package func reclaim(from start: Key, to end: Key) {}

  package func close() {}
}

/// A snapshot: a copy of the map.
final class MemorySnapshot: EngineSnapshot {
  private let map: OrderedMap<StoredValue>

  init(_ map: OrderedMap<StoredValue>) { self.map = map }

  func get(_ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool
  {
    guard let value = map.value(of: key) else { return false }
    value.withUnsafeBytes(body)
    return true
  }

  func cursor(from start: Key, to end: Key, _ tier: ReadTier) -> any EngineCursor {
    MemoryCursor(map, from: start, to: end)
  }
}

/// A cursor over a copy of the map. It copies the current row to a buffer, whose address is stable until it moves.
final class MemoryCursor: EngineCursor {
  private var cursor: OrderedMapCursor<StoredValue>
  private let start: Key
  private let end: Key
  private var buffer: UnsafeMutableRawBufferPointer
  private(set) var isValid = false
  private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
  private(set) var value = UnsafeRawBufferPointer(start: nil, count: 0)

  init(_ map: OrderedMap<StoredValue>, from start: Key, to end: Key) {
    cursor = OrderedMapCursor(map)
    self.start = start
    self.end = end
    buffer = .allocate(byteCount: 256, alignment: 8)
  }

  deinit { buffer.deallocate() }

  func seekToFirst() {
    start.withUnsafeBytes { cursor.seek($0) }
    load()
  }

  func seekToLast() {
    end.withUnsafeBytes { cursor.seekBelow($0) }
    load()
  }

  func seek(_ key: UnsafeRawBufferPointer) {
    start.withUnsafeBytes { cursor.seek(compareBytes($0, key) > 0 ? $0 : key) }
    load()
  }

  func seekBelow(_ key: UnsafeRawBufferPointer) {
    end.withUnsafeBytes { cursor.seekBelow(compareBytes($0, key) < 0 ? $0 : key) }
    load()
  }

  func next() {
    cursor.next()
    load()
  }

  func previous() {
    cursor.previous()
    load()
  }

  private func load() {
    isValid = cursor.isValid && compareKeys(cursor.key, end) < 0 && compareKeys(cursor.key, start) >= 0
    guard isValid else { return }
    let size = cursor.key.count + cursor.value.count
    if buffer.count < size {
      buffer.deallocate()
      buffer = .allocate(byteCount: size * 2, alignment: 8)
    }
    buffer.copyBytes(from: cursor.key)
    UnsafeMutableRawBufferPointer(rebasing: buffer[cursor.key.count...]).copyBytes(from: cursor.value)
    key = UnsafeRawBufferPointer(rebasing: buffer[0..<cursor.key.count])
    value = UnsafeRawBufferPointer(rebasing: buffer[cursor.key.count..<size])
  }
}

/// Changes in the order in which they were added.
// SAFETY: the store accesses a batch only under the lock of the commit group that contains it.
final class MemoryBatch: EngineBatch, @unchecked Sendable {
  enum Change {
    case put(Key, StoredValue)
    case delete(Key)
    case deleteRange(Key, Key)
  }

  private(set) var changes: [Change] = []
  private(set) var byteCount = 0

  var isEmpty: Bool { changes.isEmpty }

  func put(_ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    var joined = StoredValue()
    joined.reserveCapacity(head.count + value.count)
    joined.append(contentsOf: head)
    joined.append(contentsOf: value)
    byteCount += key.count + joined.count
    changes.append(.put(Key(key), joined))
  }

  func delete(_ key: UnsafeRawBufferPointer) {
    byteCount += key.count
    changes.append(.delete(Key(key)))
  }

  func deleteRange(from start: UnsafeRawBufferPointer, to end: UnsafeRawBufferPointer) {
    byteCount += start.count + end.count
    changes.append(.deleteRange(Key(start), Key(end)))
  }

  func removeAll() {
    changes.removeAll(keepingCapacity: true)
    byteCount = 0
  }
}
