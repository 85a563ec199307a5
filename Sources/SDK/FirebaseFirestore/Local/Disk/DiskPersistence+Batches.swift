// Stores the mutation queues and overlays of all users on disk.

import FirestoreModel
import Foundation
import GRDB

extension DiskPersistence {
  /// The user ID as a column. It is empty if no user is signed in, because no user has an empty ID.
  private var userColumn: Data { (state.user ?? "").column }

  func switchUser(to user: UserID) { state.user = user }

  func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch {
    let batch = MutationBatch(id: nextBatch, localWriteTime: time, baseWrites: base, writes: writes)
    nextBatch += 1
    queuesWrite = true
    use { db in
      try db.cachedStatement(sql: "INSERT INTO batches VALUES (?, ?, ?, ?, ?)").execute(arguments: [
        batch.id, userColumn, time.column, try WriteColumn.encode(base), try WriteColumn.encode(writes),
      ])
      for name in batch.documents {
        try db.cachedStatement(sql: "INSERT INTO batch_documents VALUES (?, ?, ?, ?)").execute(arguments: [
          userColumn, try assignedNumber(of: name.collectionPath, in: db), name.id.column, batch.id,
        ])
      }
    }
    return batch
  }

  func removeBatch(_ batch: MutationBatch) {
    use { db in
      try db.cachedStatement(sql: "DELETE FROM batches WHERE number = ?").execute(arguments: [batch.id])
      for name in batch.documents {
        guard let collection = try number(of: name.collectionPath, in: db) else { continue }
        let sql = "DELETE FROM batch_documents WHERE user = ? AND collection = ? AND id = ? AND batch = ?"
        try db.cachedStatement(sql: sql).execute(arguments: [
          userColumn, collection, name.id.column, batch.id,
        ])
      }
    }
    for name in batch.documents { recordOrphan(name) }
  }

  private static let batchColumns = "SELECT number, time, base, writes FROM batches"

  private func batches(_ db: Database, _ condition: String, _ arguments: StatementArguments) throws
    -> [MutationBatch]
  {
    let statement = try db.cachedStatement(sql: "\(DiskPersistence.batchColumns) WHERE \(condition)")
    return try Row.fetchAll(statement, arguments: arguments).map { row in
      MutationBatch(
        id: try row.at(0), localWriteTime: try ModelTimestamp(column: row.at(1)),
        baseWrites: try WriteColumn.decode(row.at(2), in: database),
        writes: try WriteColumn.decode(row.at(3), in: database))
    }
  }

  func batch(after id: BatchID?) -> MutationBatch? {
    use { db in
      try batches(db, "user = ? AND number > ? ORDER BY number LIMIT 1", [userColumn, id ?? -1]).first
    } ?? nil
  }

  var lastBatch: BatchID? {
    use { db in
      try Int.fetchOne(
        db.cachedStatement(sql: "SELECT MAX(number) FROM batches WHERE user = ?"), arguments: [userColumn])
    } ?? nil
  }

  var allBatches: [MutationBatch] {
    use { db in try batches(db, "user = ? ORDER BY number", [userColumn]) } ?? []
  }

  func batches(touching document: DocumentName) -> [MutationBatch] {
    use { db in
      guard let collection = try number(of: document.collectionPath, in: db) else { return [] }
      let condition =
        "number IN (SELECT batch FROM batch_documents WHERE user = ? AND collection = ? AND id = ?) ORDER BY number"
      return try batches(db, condition, [userColumn, collection, document.id.column])
    } ?? []
  }

  // MARK: Overlays

  func overlay(of document: DocumentName) -> Overlay? {
    use { db in
      guard let collection = try number(of: document.collectionPath, in: db) else { return nil }
      let sql = "SELECT batch, body FROM overlays WHERE user = ? AND collection = ? AND id = ?"
      let row = try Row.fetchOne(
        db.cachedStatement(sql: sql), arguments: [userColumn, collection, document.id.column])
      return try row.map { try overlay($0, from: 0) }
    } ?? nil
  }

  private func overlay(_ row: Row, from start: Int) throws -> Overlay {
    guard let write = try WriteColumn.decode(row.at(start + 1), in: database).first else {
      throw DamagedRow(description: "an overlay is damaged")
    }
    return Overlay(batch: (try row.at(start)), write: write)
  }

  func overlays(in collection: ResourcePath) -> [DocumentName: Overlay] {
    use { db in
      guard let number = try number(of: collection, in: db) else { return [:] }
      return try overlays(of: number, collection, in: db)
    } ?? [:]
  }

  func overlays(inGroup collectionID: String) -> [DocumentName: Overlay] {
    var result: [DocumentName: Overlay] = [:]
    for path in collections(inGroup: collectionID) { result.merge(overlays(in: path)) { first, _ in first } }
    return result
  }

  private func overlays(
    of number: Int64, _ path: ResourcePath, in db: Database
  ) throws -> [DocumentName: Overlay] {
    let sql = "SELECT id, batch, body FROM overlays WHERE user = ? AND collection = ?"
    var result: [DocumentName: Overlay] = [:]
    let rows = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: [userColumn, number])
    while let row = try rows.next() { result[try name(path, row.at(0))] = try overlay(row, from: 1) }
    return result
  }

  func setOverlay(_ overlay: Overlay, of document: DocumentName) {
    use { db in
      try db.cachedStatement(sql: "INSERT OR REPLACE INTO overlays VALUES (?, ?, ?, ?, ?)").execute(
        arguments: [
          userColumn, try assignedNumber(of: document.collectionPath, in: db), document.id.column,
          overlay.batch,
          try WriteColumn.encode([overlay.write]),
        ])
    }
  }

  func removeOverlay(of document: DocumentName, ifFrom batch: BatchID) {
    use { db in
      guard let collection = try number(of: document.collectionPath, in: db) else { return }
      let sql = "DELETE FROM overlays WHERE user = ? AND collection = ? AND id = ? AND batch = ?"
      try db.cachedStatement(sql: sql).execute(arguments: [userColumn, collection, document.id.column, batch])
    }
  }
}
