// ExecutePipeline.

public import FirestoreModel

extension FirestoreEngine {
  /// Refuses a pipeline: databases here are of the standard edition, which has none.
  /// - Throws: INVALID_ARGUMENT; NOT_FOUND if there is no such database; UNAVAILABLE while shutting down.
  public func executePipeline(in name: DatabaseName, as caller: Caller) async throws(FirestoreError) {
    try await reporting {
      _ = try await self.database(name)
      throw FirestoreError.invalidArgument(
        "ExecutePipeline requires the Database Edition to be `enterprise`.")
    }
  }
}
