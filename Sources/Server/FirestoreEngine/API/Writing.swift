// CreateDocument, UpdateDocument, DeleteDocument and BatchWrite. Commit is in Commits/Committing.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Creates a document; without an id under one of twenty random letters and digits.
  /// - Throws: ALREADY_EXISTS if there is one.
  public func createDocument(
    in collection: CollectionName, id: String?, fields: MapValue, mask: FieldMask? = nil, as caller: Caller
  ) async throws(FirestoreError) -> StoredDocument {
    var random = SystemRandomNumberGenerator()
    let id = id ?? AutoID.make(using: &random)
    try ResourceID.validate(collectionID: collection.id)
    try ResourceID.validate(documentID: id)
    // The whole name has limits of its own.
    let name = try DocumentName(parsing: collection.document(id).description)
    let write = Write(.update(name, fields: fields), precondition: .exists(false))
    return try await put(write, mask: mask, as: caller)
  }

  /// Creates or changes a document and returns it as it is then, reduced to `mask`.
  public func updateDocument(
    _ name: DocumentName, fields: MapValue, updateMask: [FieldPath]?, mask: FieldMask? = nil,
    precondition: Precondition? = nil, as caller: Caller
  ) async throws(FirestoreError) -> StoredDocument {
    let write = Write(.update(name, fields: fields), mask: updateMask, precondition: precondition)
    return try await put(write, mask: mask, as: caller)
  }

  /// Deletes a document; none to delete is no error unless the precondition says so.
  public func deleteDocument(
    _ name: DocumentName, precondition: Precondition? = nil, as caller: Caller
  ) async throws(FirestoreError) {
    _ = try await commit(
      in: name.database, [Write(.delete(name), precondition: precondition)], as: caller)
  }

  /// Commits one update and returns the document that it made.
  private func put(
    _ write: Write, mask: FieldMask?, as caller: Caller
  ) async throws(FirestoreError) -> StoredDocument {
    try write.validate(in: write.document.database, limits: limits.data)
    return try await reporting {
      let database = try await self.database(write.document.database)
      let document = try await database.update(write, as: caller)
      return try document.masked(mask)
    }
  }

  /// Applies writes to distinct documents, each by itself: one that fails does not keep the others from happening, and
  /// they may happen in any order.
  ///
  /// - Returns: for each write, in order, what became of it: its result, or what ``commit(in:_:transaction:as:)`` would
  ///   have thrown for it alone.
  /// - Throws: INVALID_ARGUMENT, before anything happens, if two writes are for one document; NOT_FOUND if there is no
  ///   such database; UNAVAILABLE while shutting down.
  public func batchWrite(
    in name: DatabaseName, _ writes: [Write], as caller: Caller
  ) async throws(FirestoreError) -> [Result<WriteResult, FirestoreError>] {
    var documents: Set<DocumentName> = []
    for write in writes where !documents.insert(write.document).inserted {
      throw .invalidArgument("the same document cannot be written more than once in a single request")
    }
    return try await reporting {
      let database = try await self.database(name)
      if writes.isEmpty { try await database.authoriseTransaction(as: caller) }
      var outcomes = [Result<WriteResult, FirestoreError>?](repeating: nil, count: writes.count)
      await withTaskGroup(of: (Int, Result<WriteResult, FirestoreError>).self) { group in
        var next = 0
        func start() {
          guard next < writes.count else { return }
          let index = next
          next += 1
          let write = writes[index]
          group.addTask { (index, await self.single(write, in: name, as: caller)) }
        }
        // So many at once share syncs; the rest follow one by one.
        for _ in 0..<EngineLimits.batchWritesAtOnce { start() }
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
  private func single(
    _ write: Write, in name: DatabaseName, as caller: Caller
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
