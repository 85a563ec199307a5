// A RocksDB batch sorts the changes of a commit group by key before RocksDB gets them. The commits of a group
// change rows all over the key space. RocksDB inserts them one by one into its memtable. It finds the
// position of a row several times faster if the previous row is close.
//
// Invariants
//   1. Changes between two range removals reach RocksDB in ascending key order. Changes of the same key keep
//      the order in which they were added.
//   2. A range removal applies after the changes added before it, and before those added after it.
//
// Decision: docs/decisions/0008-rows-in-key-order.md

internal import CRocksDB
internal import OrderedStore

/// A batch of changes for RocksDB.
// SAFETY: the store accesses a batch only under the lock of the commit group that contains it.
final class RocksBatch: EngineBatch, @unchecked Sendable {
  /// One change. Its key and value are adjacent in `bytes`.
  private struct Change {
    enum Kind { case put, delete }

    var kind: Kind
    var start: Int
    var keyCount: Int
    var valueCount: Int
  }

  private let batch: OpaquePointer?
  private var changes: [Change] = []
  private var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 8)
  private var usedBytes = 0
  private var rangeBytes = 0

  init() { batch = rocksdb_writebatch_create() }

  deinit {
    rocksdb_writebatch_destroy(batch)
    bytes.deallocate()
  }

  var byteCount: Int { usedBytes + rangeBytes }

  var isEmpty: Bool { changes.isEmpty && rangeBytes == 0 }

  func put(_ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    let valueCount = head.count + value.count
    changes.append(Change(kind: .put, start: usedBytes, keyCount: key.count, valueCount: valueCount))
    reserve(key.count + valueCount)
    append(key)
    append(head)
    append(value)
  }

  func delete(_ key: UnsafeRawBufferPointer) {
    changes.append(Change(kind: .delete, start: usedBytes, keyCount: key.count, valueCount: 0))
    reserve(key.count)
    append(key)
  }

  func deleteRange(from start: UnsafeRawBufferPointer, to end: UnsafeRawBufferPointer) {
    flush()
    rangeBytes += start.count + end.count + 1
    rocksdb_writebatch_delete_range(batch, start.characters, start.count, end.characters, end.count)
  }

  func removeAll() {
    rocksdb_writebatch_clear(batch)
    changes.removeAll(keepingCapacity: true)
    usedBytes = 0
    rangeBytes = 0
  }

  /// Returns RocksDB's write batch with all changes.
  func rocksBatch() -> OpaquePointer? {
    flush()
    return batch
  }

  /// Passes the added changes to RocksDB, in key order.
  private func flush() {
    guard !changes.isEmpty, let start = bytes.baseAddress else { return }
    let base = UnsafeRawPointer(start)
    changes.withUnsafeMutableBufferPointer { changes in
      // `start` rises with each added change, so it keeps the order of changes to the same key.
      changes.sort { a, b in
        let order = compareBytes(
          UnsafeRawBufferPointer(start: base + a.start, count: a.keyCount),
          UnsafeRawBufferPointer(start: base + b.start, count: b.keyCount))
        return order != 0 ? order < 0 : a.start < b.start
      }
      assert(
        changes.indices.dropFirst().allSatisfy { index in
          let (previous, next) = (changes[index - 1], changes[index])
          let order = compareBytes(
            UnsafeRawBufferPointer(start: base + previous.start, count: previous.keyCount),
            UnsafeRawBufferPointer(start: base + next.start, count: next.keyCount))
          return order < 0 || (order == 0 && previous.start < next.start)
        }, "invariant: a batch reaches the engine in key order")
      for change in changes {
        precondition(
          change.start + change.keyCount + change.valueCount <= usedBytes,
          "invariant: a change of a batch is within its bytes")
        let key = (base + change.start).assumingMemoryBound(to: CChar.self)
        switch change.kind {
        case .put:
          rocksdb_writebatch_put(batch, key, change.keyCount, key + change.keyCount, change.valueCount)
        case .delete: rocksdb_writebatch_delete(batch, key, change.keyCount)
        }
      }
    }
    changes.removeAll(keepingCapacity: true)
  }

  private func reserve(_ count: Int) {
    guard usedBytes + count > bytes.count else { return }
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(bytes.count * 2, usedBytes + count), alignment: 8)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<usedBytes]))
    bytes.deallocate()
    bytes = larger
  }

  private func append(_ part: UnsafeRawBufferPointer) {
    guard !part.isEmpty else { return }
    UnsafeMutableRawBufferPointer(rebasing: bytes[usedBytes...]).copyMemory(from: part)
    usedBytes += part.count
  }
}
