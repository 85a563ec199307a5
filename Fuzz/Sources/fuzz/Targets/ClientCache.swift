// Fuzz target: a damaged cache file of the Realtime Database SDK. The input is a complete file, rows of values, or rows
// of pending writes. Accepted rows are written again and read back unchanged, and a later write is stored.

import Foundation
import GRDB
import RealtimeModel

@testable import FirebaseDatabase

/// The first byte selects the part; the rest is the file, or rows with a length before each field.
func fuzzClientCache(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let rest = UnsafeRawBufferPointer(rebasing: input.dropFirst())
  switch first % 3 {
  case 0: try fuzzCacheFile(rest)
  case 1: try fuzzValueRows(FieldReader(rest))
  default: try fuzzWriteRows(FieldReader(rest))
  }
}

// SAFETY: used by one thread.
private final class FuzzedCore: StorageSource, @unchecked Sendable {
  var storageContents = StorageContents()
  func retryStorage(after delay: Int64) {}
}

private func fuzzCacheFile(_ bytes: UnsafeRawBufferPointer) throws {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  let url = folder.appendingPathComponent("cache.sqlite")
  try Data(bytes).write(to: url)
  let core = FuzzedCore()
  var hasFailed = false
  func open() -> DiskStorage {
    let storage = DiskStorage(
      url: url, policy: CachePolicy(maximumBytes: 1 << 20), now: { 0 },
      report: { if $0.code != CachePersistenceError.damaged.rawValue { hasFailed = true } })
    storage.source = core
    return storage
  }
  let storage = open()
  core.storageContents.writes = storage.restore()
  let id = (core.storageContents.writes.last?.id ?? 0) + 1
  let write = OutgoingWrite(id: id, path: "last", change: .put(.leaf(.int(1)), hash: nil))
  core.storageContents.writes.append(write)
  storage.append(write)
  _ = storage.load(.default, at: "list")
  storage.activate(.default, at: "list")
  storage.store(.leaf(.int(2)), at: "list/a", query: .default, replacing: nil)
  storage.commit()
  storage.close()
  guard !hasFailed else { return }
  let again = open()
  let restored = again.restore()
  again.close()
  try require(hasFailed || restored.last?.id == id, "a write was lost: \(restored.map(\.id)), \(id)")
}

/// A database in memory with the tables of a cache.
private let tables: DatabaseQueue? = {
  guard let queue = try? DatabaseQueue() else { return nil }
  try? queue.inDatabase { try CacheSchema.prepare($0, migrations: CacheSchema.migrations) }
  return queue
}()

/// Rows of a path and a value.
private func fuzzValueRows(_ fields: FieldReader) throws {
  var fields = fields
  var rows: [[UInt8]: [UInt8]] = [:]
  while let path = fields.next(), let value = fields.next() { rows[path] = value }
  var builder = NodeBuilder()
  let node: Node
  do {
    for (path, value) in rows.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      try value.withUnsafeBytes { try builder.add(path, $0) }
    }
    node = try builder.finish()
  } catch { return try require(error is CacheFailure, "a damaged row is \(error)") }
  for path in rows.keys {
    guard let keys = try? RowPath.decode(path) else { continue }
    let again = try? RowPath.decode(RowPath.encode(Path(keys: keys)))
    try require(again == keys, "a path is another one after writing")
  }
  let written = try tables?.inDatabase { db in
    try db.execute(sql: "DELETE FROM server_values")
    try ServerValueTable(db: db).overwrite(node, at: "list")
    return try ServerValueTable(db: db).node(at: "list")
  }
  try require(written == node, "a value is another one after writing")
}

/// Rows of an identifier, a kind, a path and a value.
private func fuzzWriteRows(_ fields: FieldReader) throws {
  var fields = fields
  try tables?.inDatabase { db in
    try db.execute(sql: "DELETE FROM pending_writes")
    while let id = fields.next(), let kind = fields.next(), let path = fields.next(),
      let value = fields.next()
    {
      try db.run(
        "INSERT OR REPLACE INTO pending_writes (id, kind, path, value) VALUES (?, ?, ?, ?)",
        id.reduce(Int64(0)) { $0 << 8 | Int64($1) }, Int64(kind.first ?? 0), path.data, value.data)
    }
    let table = PendingWriteTable(db: db)
    let writes: [OutgoingWrite]
    do { writes = try table.load().writes } catch {
      return try require(error is CacheFailure, "a damaged row is \(error)")
    }
    try table.removeAll()
    for write in writes { try table.append(write) }
    let again = try table.load()
    try require(again.failure == nil, "a written row is damaged")
    try require(again.writes.map(text) == writes.map(text), "a write is another one after writing")
  }
}

private func text(_ write: OutgoingWrite) -> String {
  let changes: [(Path, Node)] =
    switch write.change {
    case .put(let node, _): [(.root, node)]
    case .merge(let changes): changes
    }
  let values = changes.map { "\($0.description)=\(String(decoding: $1.json(), as: UTF8.self))" }
  return "\(write.id) \(write.path) \(values)"
}

/// Reads fields, each after one byte with its length.
private struct FieldReader {
  private var rest: UnsafeRawBufferPointer.SubSequence

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

  mutating func next() -> [UInt8]? {
    guard let count = rest.popFirst() else { return nil }
    defer { rest = rest.dropFirst(Int(count)) }
    return Array(rest.prefix(Int(count)))
  }
}
