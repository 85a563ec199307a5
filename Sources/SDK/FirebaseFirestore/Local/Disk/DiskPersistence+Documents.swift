// Stores the cached documents and their index entries on disk.

import FirestoreModel
import FirestoreWire
import Foundation
import GRDB

extension DiskPersistence {
  func document(_ name: DocumentName) -> CachedDocument {
    (use { db in try row(of: name, in: db)?.document } ?? nil) ?? CachedDocument(name: name)
  }

  private func row(of name: DocumentName, in db: Database) throws -> (
    number: Int64, document: CachedDocument
  )? {
    guard let collection = try number(of: name.collectionPath, in: db) else { return nil }
    let sql = "SELECT number, \(CachedDocument.columnNames) FROM documents WHERE collection = ? AND id = ?"
    let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [collection, name.id.column])
    return try row.map { (try $0.at(0), try CachedDocument($0, from: 1, name: name)) }
  }

  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument] {
    use { db in
      guard let number = try number(of: collection, in: db) else { return [] }
      let columns = "SELECT id, \(CachedDocument.columnNames) FROM documents WHERE collection = ?"
      let rows =
        readAfter == .epoch
        ? try Row.fetchCursor(db.cachedStatement(sql: columns), arguments: [number])
        : try Row.fetchCursor(
          db.cachedStatement(sql: columns + " AND read > ?"), arguments: [number, readAfter.column])
      var found: [CachedDocument] = []
      while let row = try rows.next() {
        found.append(try CachedDocument(row, from: 1, name: try name(collection, row.at(0))))
      }
      return found
    } ?? []
  }

  func collections(inGroup collectionID: String) -> [ResourcePath] {
    use { db in
      try Data.fetchAll(
        db.cachedStatement(sql: "SELECT path FROM collections WHERE id = ?"), arguments: [collectionID.column]
      ).map { ResourcePath(splitting: try String(column: $0)) }
    } ?? []
  }

  func setDocument(_ document: CachedDocument) {
    use { db in
      let (document, fields) = DiskPersistence.readable(document)
      guard let kind = document.kindColumn else { return }
      let old = try row(of: document.name, in: db)
      let collection = try assignedNumber(of: document.name.collectionPath, in: db)
      let values: StatementArguments = [
        kind, document.changes != .none, document.version.column, document.createTime.column,
        document.readTime.column, fields, sequenceOfGroup(),
      ]
      let number: Int64
      if let old {
        number = old.number
        let sql =
          "UPDATE documents SET kind = ?, committed = ?, version = ?, created = ?, read = ?, fields = ?, used = ?"
          + " WHERE number = ?"
        try db.cachedStatement(sql: sql).execute(arguments: values + [number])
      } else {
        let sql =
          "INSERT INTO documents (\(CachedDocument.columnNames), used, collection, id) VALUES"
          + " (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        try db.cachedStatement(sql: sql).execute(arguments: values + [collection, document.name.id.column])
        number = db.lastInsertedRowID
      }
      try replaceEntries(of: old?.document, by: document, number, collection, in: db)
    }
  }

  /// Returns a document that can be decoded after it was stored, and its fields as a column.
  ///
  /// With results of transforms from the server, the fields may be nested too deeply for the decoder. The
  /// contents are then stored as unknown until watch sends the document. Otherwise the next read would report
  /// damage.
  private static func readable(_ document: CachedDocument) -> (CachedDocument, Data) {
    guard document.isFound else { return (document, Data()) }
    let bytes = DocumentCodec.encode(fields: document.fields)
    // A document that the server or a bundle sent was decoded with a lower limit, so it can be decoded again.
    guard document.hasPendingWrites, (try? DocumentCodec.decodeFields(bytes)) == nil else {
      return (document, Data(bytes))
    }
    var unknown = document
    unknown.setUnknown(version: document.version)
    return (unknown, Data())
  }

  func removeDocument(_ name: DocumentName) {
    use { db in
      guard let old = try row(of: name, in: db), let collection = try number(of: name.collectionPath, in: db)
      else { return }
      try db.cachedStatement(sql: "DELETE FROM documents WHERE number = ?").execute(arguments: [old.number])
      try replaceEntries(of: old.document, by: nil, old.number, collection, in: db)
    }
  }

  /// Records that an orphaned document was used until now. Garbage collection removes it later.
  func recordOrphan(_ name: DocumentName) {
    use { db in
      guard let collection = try number(of: name.collectionPath, in: db) else { return }
      try db.cachedStatement(sql: "UPDATE documents SET used = ? WHERE collection = ? AND id = ?").execute(
        arguments: [sequenceOfGroup(), collection, name.id.column])
    }
  }

  // MARK: Indexes

  var fieldIndexes: Set<FieldIndex> { Set(state.indexes.keys) }

  func setFieldIndexes(_ wanted: Set<FieldIndex>) {
    use { db in
      for (index, number) in state.indexes where !wanted.contains(index) {
        try db.execute(sql: "DELETE FROM field_indexes WHERE number = ?", arguments: [number])
        try db.execute(sql: "DELETE FROM index_entries WHERE field_index = ?", arguments: [number])
        state.indexes[index] = nil
      }
      for index in wanted where state.indexes[index] == nil {
        try db.execute(sql: "INSERT INTO field_indexes (definition) VALUES (?)", arguments: [index.column])
        let number = db.lastInsertedRowID
        state.indexes[index] = number
        for path in collections(inGroup: index.collectionID) { try fill(index, number, path, in: db) }
      }
    }
  }

  private func fill(_ index: FieldIndex, _ indexNumber: Int64, _ path: ResourcePath, in db: Database) throws {
    guard let collection = try number(of: path, in: db) else { return }
    let sql =
      "SELECT number, id, \(CachedDocument.columnNames) FROM documents WHERE collection = ? AND kind = 2"
    let rows = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: [collection])
    while let row = try rows.next() {
      let document = try CachedDocument(row, from: 2, name: try name(path, row.at(1)))
      for key in index.keys(of: document.fields) {
        try addEntry(indexNumber, collection, key, document.name, row.at(0), in: db)
      }
    }
  }

  private func addEntry(
    _ index: Int64, _ collection: Int64, _ key: [UInt8], _ name: DocumentName, _ document: Int64,
    in db: Database
  ) throws {
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO index_entries VALUES (?, ?, ?, ?, ?)").execute(
      arguments: [index, collection, Data(key), DiskPersistence.sortedID(name), document])
  }

  /// The ID of a document as bytes that sort in the order of names.
  private static func sortedID(_ name: DocumentName) -> Data {
    var encoder = IndexKeyEncoder()
    encoder.append(segment: name.id)
    return Data(encoder.bytes)
  }

  private func replaceEntries(
    of old: CachedDocument?, by new: CachedDocument?, _ document: Int64, _ collection: Int64, in db: Database
  ) throws {
    guard let name = old?.name ?? new?.name, let id = name.collectionPath.id else { return }
    for (index, number) in state.indexes where index.collectionID == id {
      let before = old.map { $0.isFound ? index.keys(of: $0.fields) : [] } ?? []
      let after = new.map { $0.isFound ? index.keys(of: $0.fields) : [] } ?? []
      let sql = "DELETE FROM index_entries WHERE field_index = ? AND collection = ? AND key = ? AND name = ?"
      for key in before.subtracting(after) {
        try db.cachedStatement(sql: sql).execute(
          arguments: [number, collection, Data(key), DiskPersistence.sortedID(name)])
      }
      for key in after.subtracting(before) { try addEntry(number, collection, key, name, document, in: db) }
    }
  }

  func scan(
    _ index: FieldIndex, in collection: ResourcePath, _ range: IndexRange, reversed: Bool,
    _ visit: (_ key: [UInt8], _ document: CachedDocument) -> Bool
  ) {
    use { db in
      guard let number = state.indexes[index], let collectionNumber = try self.number(of: collection, in: db)
      else {
        return
      }
      let order = reversed ? "DESC" : "ASC"
      let columns = CachedDocument.columnNames.split(separator: ", ").map { "d.\($0)" }.joined(
        separator: ", ")
      var sql =
        "SELECT e.key, d.id, \(columns) FROM index_entries e JOIN documents d ON d.number = e.document"
        + " WHERE e.field_index = ? AND e.collection = ? AND e.key >= ?"
      var arguments: StatementArguments = [number, collectionNumber, Data(range.start)]
      if let end = range.end {
        sql += " AND e.key < ?"
        arguments += [Data(end)]
      }
      sql += " ORDER BY e.key \(order), e.name \(order)"
      // The statement is not cached, because `visit` may start another scan.
      let rows = try Row.fetchCursor(db.makeStatement(sql: sql), arguments: arguments)
      while let row = try rows.next() {
        let document = try CachedDocument(row, from: 2, name: try name(collection, row.at(1)))
        if !visit([UInt8]((try row.at(0) as Data)), document) { return }
      }
    }
  }
}
