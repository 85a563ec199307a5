// BatchWrite: many writes, each a commit of its own.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
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
          group.addTask { (index, await database.single(write, as: caller)) }
        }
        // So many at once share syncs; the rest follow one by one.
        for _ in 0..<EngineLimits.batchWritesAtOnce { start() }
        while let (index, outcome) = await group.next() {
          outcomes[index] = outcome
          start()
        }
      }
      return outcomes.map { $0 ?? .failure(.internalError("A write of the batch was left out.")) }
    }
  }
}

extension FirestoreDatabase {
  /// Commits one write alone.
  fileprivate func single(_ write: Write, as caller: Caller) async -> Result<WriteResult, FirestoreError> {
    do {
      try write.validate(in: name, limits: options.limits.data)
      let response = try await commit([write], reads: nil, owner: nil, as: caller)
      guard let result = response.writeResults.first else {
        return .failure(.internalError("The write of \(write.document) has no result."))
      }
      return .success(result)
    } catch { return .failure(FirestoreError(error)) }
  }
}
