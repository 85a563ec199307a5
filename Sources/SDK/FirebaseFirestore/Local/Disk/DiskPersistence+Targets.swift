// Stores the targets, bundles and named queries on disk, and collects garbage.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import GRDB
import SwiftProtobuf

extension DiskPersistence {
  func target(_ target: Target) -> TargetData? {
    use { db in
      let sql = "SELECT number, sequence, version, in_sync, token FROM targets WHERE key = ?"
      let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [try target.column()])
      return try row.map { row in
        var data = TargetData(target: target, id: try row.at(0), sequence: try row.at(1))
        data.snapshotVersion = try ModelTimestamp(column: row.at(2))
        data.lastLimboFreeVersion = try ModelTimestamp(column: row.at(3))
        data.resumeToken = [UInt8]((try row.at(4) as Data))
        return data
      }
    } ?? nil
  }

  func allocateTarget(_ target: Target) -> TargetData {
    lastTarget += 2
    let data = TargetData(target: target, id: lastTarget, sequence: sequenceOfGroup())
    setTarget(data)
    return data
  }

  func setTarget(_ data: TargetData) {
    use { db in
      try db.cachedStatement(sql: "INSERT OR REPLACE INTO targets VALUES (?, ?, ?, ?, ?, ?)").execute(
        arguments: [
          data.id, try data.target.column(), data.sequence, data.snapshotVersion.column,
          data.lastLimboFreeVersion.column, Data(data.resumeToken),
        ])
    }
  }

  func releaseTarget(_ data: TargetData) {
    var data = data
    data.sequence = sequenceOfGroup()
    setTarget(data)
  }

  func matchingKeys(of id: TargetID) -> Set<DocumentName> {
    use { db in
      let sql = "SELECT collection, id FROM target_documents WHERE target = ?"
      var names: Set<DocumentName> = []
      let rows = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: [id])
      while let row = try rows.next() { names.insert(try name(try path(of: row.at(0), in: db), row.at(1))) }
      return names
    } ?? []
  }

  func addMatchingKeys(_ added: Set<DocumentName>, to id: TargetID) {
    for name in added {
      use { db in
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO target_documents VALUES (?, ?, ?)").execute(
          arguments: [id, try assignedNumber(of: name.collectionPath, in: db), name.id.column])
        if db.changesCount > 0 { recordOrphan(name) }
      }
    }
  }

  func removeMatchingKeys(_ removed: Set<DocumentName>, from id: TargetID) {
    for name in removed {
      use { db in
        guard let collection = try number(of: name.collectionPath, in: db) else { return }
        let sql = "DELETE FROM target_documents WHERE target = ? AND collection = ? AND id = ?"
        try db.cachedStatement(sql: sql).execute(arguments: [id, collection, name.id.column])
      }
      recordOrphan(name)
    }
  }

  var lastRemoteVersion: ModelTimestamp {
    get { state.lastRemoteVersion }
    set {
      state.lastRemoteVersion = newValue
      use { db in
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO counters VALUES ('remote_version', ?)").execute(
          arguments: [newValue.column])
      }
    }
  }

  // MARK: Bundles

  func bundle(_ id: String) -> BundleMetadata? {
    use { db in
      let sql = "SELECT version, created, documents, bytes FROM bundles WHERE id = ?"
      return try Row.fetchOne(db, sql: sql, arguments: [id.column]).map { row in
        BundleMetadata(
          id: id, version: try row.at(0), createTime: try ModelTimestamp(column: row.at(1)),
          totalDocuments: try row.at(2), totalBytes: try row.at(3))
      }
    } ?? nil
  }

  func setBundle(_ metadata: BundleMetadata) {
    use { db in
      try db.execute(
        sql: "INSERT OR REPLACE INTO bundles VALUES (?, ?, ?, ?, ?)",
        arguments: [
          metadata.id.column, metadata.version, metadata.createTime.column, metadata.totalDocuments,
          metadata.totalBytes,
        ])
    }
  }

  func namedQuery(_ name: String) -> NamedQuery? {
    use { db in
      let sql = "SELECT parent, query, limit_to_last, read FROM named_queries WHERE name = ?"
      return try Row.fetchOne(db, sql: sql, arguments: [name.column]).map { row in
        let message = try Google_Firestore_V1_StructuredQuery(serializedBytes: (row.at(1) as Data))
        let query = ModelQuery(parent: try ParentName(parsing: row.at(0)), try StructuredQuery(message))
        return NamedQuery(
          name: name, query: query, isLimitToLast: try row.at(2),
          readTime: try ModelTimestamp(column: row.at(3)))
      }
    } ?? nil
  }

  func setNamedQuery(_ query: NamedQuery) {
    use { db in
      let structured: Data = try Google_Firestore_V1_StructuredQuery(query.query.structured).serializedBytes()
      try db.execute(
        sql: "INSERT OR REPLACE INTO named_queries VALUES (?, ?, ?, ?, ?)",
        arguments: [
          query.name.column, query.query.parent.description, structured, query.isLimitToLast,
          query.readTime.column,
        ])
    }
  }

  // MARK: Garbage

  /// The size in bytes of the used pages of the file.
  var approximateSize: Int {
    use { db in
      let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      let free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
      return (pages - free) * (try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
    } ?? 0
  }

  func collectGarbage(
    active: Set<TargetID>, share: Double, maximumCount: Int, isPinned: (DocumentName) -> Bool
  ) {
    use { db in
      let unreferenced =
        "NOT EXISTS (SELECT 1 FROM target_documents t WHERE t.collection = d.collection AND t.id = d.id)"
      let targets = try Row.fetchAll(db, sql: "SELECT number, sequence FROM targets").filter {
        !active.contains(try $0.at(0))
      }
      let unused = try Int.fetchAll(db, sql: "SELECT used FROM documents d WHERE \(unreferenced)")
      let uses = (try targets.map { try $0.at(1) as Int } + unused).sorted()
      let count = min(Int((Double(uses.count) * share).rounded(.up)), maximumCount)
      guard count > 0, count <= uses.count else { return }
      let newest = uses[count - 1]
      for row in targets where (try row.at(1) as Int) <= newest {
        let target: Int64 = try row.at(0)
        try db.execute(sql: "DELETE FROM target_documents WHERE target = ?", arguments: [target])
        try db.execute(sql: "DELETE FROM targets WHERE number = ?", arguments: [target])
      }
      let sql =
        "SELECT collection, id FROM documents d WHERE used <= ? AND \(unreferenced) AND NOT EXISTS"
        + " (SELECT 1 FROM batch_documents b WHERE b.collection = d.collection AND b.id = d.id)"
      for row in try Row.fetchAll(db, sql: sql, arguments: [newest]) {
        let name = try self.name(try path(of: row.at(0), in: db), row.at(1))
        if !isPinned(name) { removeDocument(name) }
      }
      try db.execute(sql: "PRAGMA incremental_vacuum")
    }
  }
}
