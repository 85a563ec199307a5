// RocksDB's write batch, its rows in the order of their keys. A group of commits brings rows from all over the key
// space; RocksDB sorts them into a list in memory one by one, and finds the place of a row several times faster when
// the row before it lies close by.
//
// Invariant: of several changes of one key the last asked for is the last in the batch, and a removed range keeps its
// place among all changes.

internal import CRocksDB
internal import OrderedStore

/// Changes gathered for RocksDB.
// Safety: the store guards a batch with the lock of the group it belongs to.
final class RocksBatch: EngineBatch, @unchecked Sendable {
  /// One change; its key and value lie one behind the other in `bytes`.
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
  private var used = 0
  private var rangesBytes = 0

  init() { batch = rocksdb_writebatch_create() }

  deinit {
    rocksdb_writebatch_destroy(batch)
    bytes.deallocate()
  }

  var byteCount: Int { used + rangesBytes }

  var isEmpty: Bool { changes.isEmpty && rangesBytes == 0 }

  func put(_ key: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    let valueCount = head.count + value.count
    changes.append(Change(kind: .put, start: used, keyCount: key.count, valueCount: valueCount))
    reserve(key.count + valueCount)
    append(key)
    append(head)
    append(value)
  }

  func delete(_ key: UnsafeRawBufferPointer) {
    changes.append(Change(kind: .delete, start: used, keyCount: key.count, valueCount: 0))
    reserve(key.count)
    append(key)
  }

  func deleteRange(from start: UnsafeRawBufferPointer, to end: UnsafeRawBufferPointer) {
    flush()
    rangesBytes += start.count + end.count + 1
    rocksdb_writebatch_delete_range(batch, start.characters, start.count, end.characters, end.count)
  }

  func removeAll() {
    rocksdb_writebatch_clear(batch)
    changes.removeAll(keepingCapacity: true)
    used = 0
    rangesBytes = 0
  }

  /// Everything gathered, for RocksDB to write.
  func inKeyOrder() -> OpaquePointer? {
    flush()
    return batch
  }

  /// Hands what was gathered to RocksDB, in key order.
  private func flush() {
    guard !changes.isEmpty, let start = bytes.baseAddress else { return }
    let base = UnsafeRawPointer(start)
    changes.withUnsafeMutableBufferPointer { changes in
      // Equal keys keep their order: they lie in `bytes` in the order they were asked for.
      changes.sort { a, b in
        let order = compareBytes(
          UnsafeRawBufferPointer(start: base + a.start, count: a.keyCount),
          UnsafeRawBufferPointer(start: base + b.start, count: b.keyCount))
        return order != 0 ? order < 0 : a.start < b.start
      }
      for change in changes {
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
    guard used + count > bytes.count else { return }
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(bytes.count * 2, used + count), alignment: 8)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<used]))
    bytes.deallocate()
    bytes = larger
  }

  private func append(_ part: UnsafeRawBufferPointer) {
    guard !part.isEmpty else { return }
    UnsafeMutableRawBufferPointer(rebasing: bytes[used...]).copyMemory(from: part)
    used += part.count
  }
}
