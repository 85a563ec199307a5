// Commit and the three operations that write one document.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Applies writes in order, all or none, and ends the transaction if one is named.
  ///
  /// Without writes and transaction nothing happens, and there is no commit time. The transaction ends also where the
  /// commit is refused, whatever for: not every client rolls back then.
  /// - Throws: NOT_FOUND, ALREADY_EXISTS or FAILED_PRECONDITION for an unmet precondition, ABORTED for contention,
  ///   INVALID_ARGUMENT for writes that can never be applied, UNAVAILABLE if the outcome is unknown.
  public func commit(
    in name: DatabaseName, _ writes: [Write], transaction: [UInt8]? = nil, as caller: Caller
  ) async throws(FirestoreError) -> CommitResponse {
    do throws(FirestoreError) {
      for write in writes { try write.validate(in: name, limits: limits.data) }
      return try await reporting {
        let database = try await self.database(name)
        // Writes are decided one by one; ending a transaction without any is an operation of its own.
        if writes.isEmpty { try await database.authoriseTransaction(as: caller) }
        if let transaction { return try await database.commit(writes, transaction: transaction, as: caller) }
        if writes.isEmpty { return CommitResponse(writeResults: [], commitTime: nil) }
        return try await database.commit(writes, reads: nil, owner: nil, as: caller)
      }
    } catch {
      if let transaction { failTransaction(transaction, in: name, as: caller) }
      throw error
    }
  }

  /// Applies writes outside of any transaction, in order, all or none, without a task that waits for the outcome.
  ///
  /// - Parameter answer: called once, on any thread, where it must be quick and must not block: with what
  ///   ``commit(in:_:transaction:as:)`` would return or throw, or with nil if that has to be called instead, because
  ///   something has to be waited for: the database's opening, or another transaction's locks. Nothing has been
  ///   written then.
  public func tryCommit(
    in name: DatabaseName, _ writes: [Write], as caller: Caller,
    answer: @escaping @Sendable (Result<CommitResponse, FirestoreError>?) -> Void
  ) {
    do throws(FirestoreError) {
      for write in writes { try write.validate(in: name, limits: limits.data) }
    } catch {
      return answer(.failure(error))
    }
    guard !writes.isEmpty, let database = openDatabase(name) else { return answer(nil) }
    database.tryCommit(writes, as: caller, answer: answer)
  }

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
}
