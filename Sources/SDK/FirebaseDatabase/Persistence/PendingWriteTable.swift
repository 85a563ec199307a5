// The table of pending writes: the app's sets and updates that the server has not acknowledged, with unresolved server
// values. Transactions and onDisconnect operations are not stored, as in Google's SDK.

import Foundation
import GRDB
import JSON
import RealtimeModel

/// The stored pending writes.
struct PendingWriteTable {
  private enum Kind: Int64 {
    case put = 1
    case merge = 2
  }

  let db: GRDB.Database

  /// Stores a write.
  func append(_ write: OutgoingWrite) throws {
    let (kind, value): (Kind, [UInt8]) =
      switch write.change {
      case .put(let node, _): (.put, node.json())
      case .merge(let changes): (.merge, PendingWriteTable.json(changes))
      }
    try db.run(
      "INSERT OR REPLACE INTO pending_writes (id, kind, path, value) VALUES (?, ?, ?, ?)", Int64(write.id),
      kind.rawValue, RowPath.encode(write.path).data, value.data)
  }

  /// Removes an answered write.
  func remove(_ id: Int) throws {
    try db.run("DELETE FROM pending_writes WHERE id = ?", Int64(id))
  }

  /// Removes every write.
  func removeAll() throws {
    try db.run("DELETE FROM pending_writes")
  }

  /// All writes in their order.
  ///
  /// - Throws: `CacheFailure` if a row is damaged.
  func load() throws -> [OutgoingWrite] {
    var writes: [OutgoingWrite] = []
    try db.visit("SELECT id, kind, path, value FROM pending_writes ORDER BY id", []) { row in
      let id: Int64 = row[0]
      let path = Path(keys: try RowPath.decode(row[2] as Data))
      let change = try (row[3] as Data).withUnsafeBytes { try PendingWriteTable.change(row[1], $0) }
      writes.append(OutgoingWrite(id: Int(id), path: path, change: change))
    }
    return writes
  }

  private static func json(_ changes: [(Path, Node)]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    for (path, node) in changes {
      writer.key(path.description)
      writer.node(node)
    }
    writer.endObject()
    return writer.bytes
  }

  private static func change(_ kind: Int64, _ bytes: UnsafeRawBufferPointer) throws -> OutgoingWrite.Change {
    switch Kind(rawValue: kind) {
    case .put: return .put(try NodeBuilder.node(bytes), hash: nil)
    case .merge:
      var changes: [(Path, Node)] = []
      do {
        var reader = try JSONReader(unsafeBytes: bytes)
        try reader.beginObject()
        while let name = try reader.nextKey() { changes.append((Path(name), try reader.readNode(.read))) }
        try reader.finish()
      } catch {
        throw CacheFailure.damaged("a pending write is not JSON")
      }
      return .merge(changes)
    case nil: throw CacheFailure.damaged("a pending write has the unknown kind \(kind)")
    }
  }
}
