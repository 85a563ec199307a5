// Serves CreateDocument, UpdateDocument, DeleteDocument and BatchWrite. Commit is in Commits/Committing.

package import Access
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Creates a document. If `id` is nil, the document gets an id of twenty random letters and digits.
  /// - Throws: ALREADY_EXISTS if the document exists.
  package func createDocument(
    in collection: CollectionName, id: String?, fields: MapValue, mask: FieldMask? = nil, as caller: Principal
  ) async throws(FirestoreError) -> StoredDocument {
    var random = SystemRandomNumberGenerator()
    let id = id ?? AutoID.make(using: &random)
    try ResourceID.validate(collectionID: collection.id)
    try ResourceID.validate(documentID: id)
    // Parsing the name also checks the limits on complete names.
    let name = try DocumentName(parsing: collection.document(id).description)
    let write = Write(.update(name, fields: fields), precondition: .exists(false))
    return try await commitUpdate(write, mask: mask, as: caller)
  }

  /// Creates or updates a document and returns the result, reduced to `mask`.
  package func updateDocument(
    _ name: DocumentName, fields: MapValue, updateMask: [FieldPath]?, mask: FieldMask? = nil,
    precondition: Precondition? = nil, as caller: Principal
  ) async throws(FirestoreError) -> StoredDocument {
    let write = Write(.update(name, fields: fields), mask: updateMask, precondition: precondition)
    return try await commitUpdate(write, mask: mask, as: caller)
  }

  /// Deletes a document. A missing document is an error only if the precondition requires it.
  package func deleteDocument(
    _ name: DocumentName, precondition: Precondition? = nil, as caller: Principal
  ) async throws(FirestoreError) {
    _ = try await commit(
      in: name.database, [Write(.delete(name), precondition: precondition)], as: caller)
  }

  /// Commits one write of type update and returns the resulting document.
  private func commitUpdate(
    _ write: Write, mask: FieldMask?, as caller: Principal
  ) async throws(FirestoreError) -> StoredDocument {
    try write.validate(in: write.document.database, limits: limits.data)
    return try await convertingErrors {
      let database = try await self.database(write.document.database)
      let document = try await database.update(write, as: caller)
      return try document.masked(mask)
    }
  }

  /// Applies writes to distinct documents, each as a separate commit, in any order. A failed write does not
  /// affect the others.
  ///
  /// - Returns: for each write, in order, its result, or the error that ``commit(in:_:transaction:as:)`` throws for this
  ///   write.
  /// - Throws: INVALID_ARGUMENT, before any write, if two writes are for one document; NOT_FOUND if the
  ///   database does not exist; PERMISSION_DENIED for callers other than service accounts; UNAVAILABLE during
  ///   shutdown.
  package func batchWrite(
    in name: DatabaseName, _ writes: [Write], as caller: Principal
  ) async throws(FirestoreError) -> [Result<WriteResult, FirestoreError>] {
    var documents: Set<DocumentName> = []
    for write in writes where !documents.insert(write.document).inserted {
      throw .invalidArgument("the same document cannot be written more than once in a single request")
    }
    return try await convertingErrors {
      let database = try await self.database(name)
      try await database.authoriseWithoutData(caller, .batchWrite)
      var outcomes = [Result<WriteResult, FirestoreError>?](repeating: nil, count: writes.count)
      await withTaskGroup(of: (Int, Result<WriteResult, FirestoreError>).self) { group in
        var next = 0
        func start() {
          guard next < writes.count else { return }
          let index = next
          next += 1
          let write = writes[index]
          group.addTask { (index, await self.commitSeparately(write, in: name, as: caller)) }
        }
        // The writes are committed concurrently, since concurrent commits share one sync to disk.
        for _ in 0..<EngineLimits.maximumConcurrentBatchWrites { start() }
        while let (index, outcome) = await group.next() {
          outcomes[index] = outcome
          start()
        }
      }
      return outcomes.map { outcome in
        guard let outcome else { preconditionFailure("invariant: every write of a batch has an outcome") }
        return outcome
      }
    }
  }

  /// Commits one write of a batch.
  private func commitSeparately(
    _ write: Write, in name: DatabaseName, as caller: Principal
  ) async -> Result<WriteResult, FirestoreError> {
    do throws(FirestoreError) {
      let response = try await commit(in: name, [write], as: caller)
      guard let result = response.writeResults.first else {
        preconditionFailure("invariant: a commit has a result for each write")
      }
      return .success(result)
    } catch { return .failure(error) }
  }
}
