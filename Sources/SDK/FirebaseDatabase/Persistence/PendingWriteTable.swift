// The table of pending writes: the app's sets and updates that the server has not acknowledged. Server values
// in them are unresolved. Transactions and onDisconnect operations are not stored, as in Google's SDK.

import Foundation
import GRDB
import JSON
import RealtimeModel

/// The pending writes that were read from a file.
struct RestoredWrites {
  /// The readable writes in their order.
  var writes: [OutgoingWrite] = []
  /// The reason why other writes are missing; nil if every write was read.
  var failure: CacheFailure?
}

/// The stored pending writes.
struct PendingWriteTable {
  private enum Kind: Int64 {
    case put = 1
    case merge = 2
  }

  /// The maximum identifier that a file may contain. Identifiers above it remain available for later runs.
  private static let maximumID: Int64 = 1 << 53

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

  /// Removes a write to which the server has responded.
  func remove(_ id: Int) throws {
    try db.run("DELETE FROM pending_writes WHERE id = ?", Int64(id))
  }

  /// Removes every write.
  func removeAll() throws {
    try db.run("DELETE FROM pending_writes")
  }

  /// Whether a write changes this location, an ancestor or a descendant.
  func hasWrite(near path: Path) throws -> Bool {
    let key = RowPath.encode(path)
    // The encoding of a path is a prefix of the encodings of all paths below it.
    return try db.integer(
      "SELECT 1 FROM pending_writes WHERE (path >= ? AND path < ?) OR substr(?, 1, length(path)) = path LIMIT 1",
      [key.data, RowPath.upperBound(key).data, key.data]) != nil
  }

  /// Reads all writes. A damaged row loses only its write, and a damaged page loses the writes in the page.
  ///
  /// - Throws: errors other than damage.
  func load() throws -> RestoredWrites {
    let columns = "SELECT id, kind, path, value FROM pending_writes"
    var scan = Scan()
    if let damage = try scan.run(db, "\(columns) ORDER BY id") {
      // The scan ends at a damaged page. A scan from the other end finds the writes after the last damaged
      // page. Reads of single identifiers find the writes between damaged pages, even if the second scan
      // finds nothing.
      let lower = scan.writes.keys.max() ?? -1
      _ = try scan.run(db, "\(columns) WHERE id > ? ORDER BY id DESC", Int64(lower))
      let upper = scan.writes.keys.filter { $0 > lower }.min() ?? .max
      for id in (lower + 1..<upper).prefix(PendingWriteTable.maximumSingleReads) {
        _ = try scan.run(db, "\(columns) WHERE id = ?", Int64(id))
      }
      return scan.result("pending writes may be lost: \(damage)")
    }
    guard scan.unreadable > 0 else { return scan.result(nil) }
    return scan.result("\(scan.unreadable) pending writes are lost: \(scan.reason)")
  }

  /// The maximum number of reads of single identifiers, so that a damaged identifier does not delay the
  /// start.
  private static let maximumSingleReads = 100_000

  /// The writes that scans of the table have found.
  private struct Scan {
    var writes: [Int: OutgoingWrite] = [:]
    /// The number of damaged rows.
    var unreadable = 0
    /// The reason why the first of the damaged rows is damaged.
    var reason = ""

    func result(_ damage: String?) -> RestoredWrites {
      RestoredWrites(
        writes: writes.values.sorted { $0.id < $1.id }, failure: damage.map { CacheFailure.damaged($0) })
    }

    /// Reads rows until the end of the table or a damaged page.
    ///
    /// - Returns: the reason why the scan ended early; nil at the end of the table.
    mutating func run(
      _ db: GRDB.Database, _ sql: String, _ arguments: any DatabaseValueConvertible...
    ) throws -> String? {
      do {
        try db.visit(sql, arguments) { row in
          do {
            let write = try PendingWriteTable.write(row)
            writes[write.id] = write
          } catch CacheFailure.damaged(let text) {
            unreadable += 1
            if reason.isEmpty { reason = text }
          }
        }
        return nil
      } catch {
        guard case .damaged(let text) = CacheFailure(error) else { throw error }
        return text
      }
    }
  }

  private static func write(_ row: Row) throws -> OutgoingWrite {
    let id = try row.integer(0)
    guard (0...maximumID).contains(id) else {
      throw CacheFailure.damaged("a pending write has an invalid identifier")
    }
    let path = Path(keys: try RowPath.decode(row.bytes(2)))
    let change = try row.bytes(3).withUnsafeBytes { try PendingWriteTable.change(row.integer(1), $0) }
    return OutgoingWrite(id: Int(id), path: path, change: change)
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
        var reader = try JSONReader(unsafeBytes: bytes, limits: NodeBuilder.limits)
        try reader.beginObject()
        while let name = try reader.nextKey() {
          changes.append((Path(name), try reader.readNode(.read)))
        }
        try reader.finish()
      } catch {
        throw CacheFailure.damaged("a pending write is not JSON")
      }
      guard changes.allSatisfy({ $0.0.count <= RowPath.maximumLevels }) else {
        throw CacheFailure.damaged("a pending write has a path of more than \(RowPath.maximumLevels) levels")
      }
      return .merge(changes)
    case nil: throw CacheFailure.damaged("a pending write has the unknown kind \(kind)")
    }
  }
}
