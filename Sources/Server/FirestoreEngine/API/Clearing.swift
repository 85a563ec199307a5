// Deleting everything, as tests do between runs.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Deletes all documents at and below a path: a document, a collection, or the root for the whole database.
  ///
  /// Up to 20,000 documents, or 64 MiB of them or of their index entries, go in one commit, so that listeners see them go
  /// in one snapshot; what is beyond goes in further ones. Open transactions do not hold it up: those that hold locks lose
  /// them, go on reading what they have seen so far, and fail when they commit.
  /// - Throws: what the policy says; UNAVAILABLE if the outcome is unknown.
  public func clear(
    _ name: DatabaseName, at path: ResourcePath = .root, as caller: Caller
  ) async throws(FirestoreError) {
    try await reporting {
      let database = try await self.database(name)
      while try await !database.clear(at: path, as: caller) {}
    }
  }
}

extension FirestoreDatabase {
  /// Deletes what one commit may; whether that was all.
  fileprivate func clear(at path: ResourcePath, as caller: Caller) async throws -> Bool {
    let writer = makeWriter()
    defer { locks.leave(writer) }
    let committed = try await rows.execute(validating: nil) { view in
      var writes: [Write] = []
      var bytes = 0
      var removed = 0
      var isAll = true
      try SubtreeWalk(view: view, database: self.name).documents(at: path) { path in
        guard let name = DocumentName(database: self.name, path: path) else { return true }
        guard writes.count < EngineLimits.clearedDocuments, bytes < EngineLimits.clearedBytes else {
          isAll = false
          return false
        }
        guard let row = try view.get(KeyLayout.document(path))?.value else { return true }
        // Before they are collected: small documents may have a hundred times as much in their entries.
        let keys = try self.bytesRemoved(with: name, row)
        guard writes.isEmpty || removed + keys <= EngineLimits.clearedKeyBytes else {
          isAll = false
          return false
        }
        bytes += row.count
        removed += keys
        writes.append(Write(.delete(name)))
        return true
      }
      let plan = try self.plan(writes, as: caller, view)
      try plan.write(to: view)
      // Only now that nothing is in the way: it ends all transactions that hold locks.
      if !plan.changes.isEmpty { self.locks.seize(plan.footprint, as: writer) }
      return isAll
    }
    return committed.result
  }

  /// What a document's deletion adds to its commit, at most: the keys of its rows, and its part of the log record.
  private func bytesRemoved(with name: DocumentName, _ row: StoredValue) throws -> Int {
    let path = name.path
    let entries = try DocumentEntries(
      of: try DocumentRow.decode(row, name).fields(), at: path,
      in: indexes.current.possible(in: path.segments.dropLast().last ?? ""), limits: nil)
    let group = KeyLayout.group(path).count
    // The log names the document in no more bytes than its group row does, but for the length.
    let rows = KeyLayout.document(path).count + 2 * group + 4
    return entries.composite.reduce(entries.automatic.reduce(rows) { $0 + $1.count }) { $0 + $1.key.count }
  }
}
