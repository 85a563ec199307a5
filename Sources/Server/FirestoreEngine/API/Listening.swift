// Listen.

public import FirestoreModel

extension FirestoreEngine {
  /// Opens a Listen stream on a database. Its answers go to `output` until it is closed.
  /// - Throws: NOT_FOUND if there is no such database, UNAVAILABLE while shutting down.
  public func watch(
    _ name: DatabaseName, as caller: Caller, output: any WatchOutput
  ) async throws(FirestoreError) -> WatchStream {
    try await reporting {
      let database = try await self.database(name)
      let stream = WatchStream(database, database.hub, caller, output)
      guard database.hub.add(stream) else {
        throw FirestoreError.unavailable("The server is shutting down.")
      }
      return stream
    }
  }
}
