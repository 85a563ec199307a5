// Deletes every document at and below a path. Clients' tests use this between runs.

package import Access
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Deletes all documents at and below a path: a document, a collection, or the root for the complete
  /// database.
  ///
  /// One commit deletes up to 20,000 documents, or 64 MiB of documents or of their index entries; listeners
  /// see it as one snapshot. More commits delete the remaining documents. Open transactions do not delay the deletion.
  /// They lose their locks, continue to read the version that they have read, and fail when they commit.
  /// - Throws: the policy's errors; UNAVAILABLE if the outcome is unknown.
  package func clear(
    _ name: DatabaseName, at path: ResourcePath = .root, as caller: Principal
  ) async throws(FirestoreError) {
    try await convertingErrors {
      let database = try await self.database(name)
      while try await !database.clear(at: path, as: caller) {}
    }
  }
}

extension FirestoreDatabase {
  /// Deletes as many documents as one commit may. Returns true if no document remains.
  fileprivate func clear(at path: ResourcePath, as caller: Principal) async throws -> Bool {
    let writer = makeWriter()
    defer { locks.removeFootprint(of: writer) }
    let committed = try await rows.execute(validating: nil) { view in
      var writes: [Write] = []
      var bytes = 0
      var keyBytes = 0
      var isAll = true
      try SubtreeWalk(view: view, database: self.name).documents(at: path) { path in
        guard let name = DocumentName(database: self.name, path: path) else { return true }
        guard writes.count < EngineLimits.maximumClearedDocuments, bytes < EngineLimits.maximumClearedBytes
        else {
          isAll = false
          return false
        }
        guard let row = try view.get(FirestoreKeyLayout.document(path))?.value else { return true }
        // The bytes are checked for each document, since the index entries of a small document may be a
        // hundred times its size.
        let documentKeyBytes = try self.bytesRemoved(with: name, row)
        guard writes.isEmpty || keyBytes + documentKeyBytes <= EngineLimits.maximumClearedKeyBytes else {
          isAll = false
          return false
        }
        bytes += row.count
        keyBytes += documentKeyBytes
        writes.append(Write(.delete(name)))
        return true
      }
      let plan = try self.plan(writes, as: caller, view)
      try plan.write(to: view)
      // All transactions lose their locks here. This must be the last step, because an error of an earlier step must
      // leave the locks unchanged.
      if !plan.changes.isEmpty { self.locks.preemptAll(plan.footprint, as: writer) }
      return isAll
    }
    return committed.result
  }

  /// The maximum bytes that a document's deletion adds to the commit: the keys of its rows, and its part of
  /// the log record.
  private func bytesRemoved(with name: DocumentName, _ row: StoredValue) throws -> Int {
    let path = name.path
    let entries = try DocumentEntries(
      of: try DocumentRow.decode(row, name).fields(), at: path,
      in: indexes.current.possible(in: path.segments.dropLast().last ?? ""), limits: nil)
    let group = FirestoreKeyLayout.group(path).count
    // The document's part of the log record is its path and a length of 4 bytes. The path is not longer than the key of
    // its group row, by which collection group queries find the document.
    let rows = FirestoreKeyLayout.document(path).count + 2 * group + 4
    return entries.composite.reduce(entries.automatic.reduce(rows) { $0 + $1.count }) { $0 + $1.key.count }
  }
}
