// Serves RunQuery, ListDocuments, ListCollectionIds and ExecutePipeline.

package import Access
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Runs a query at one version and delivers pages, one at a time.
  ///
  /// A nearest-neighbor query scans all documents that match the query's other conditions. So its result is
  /// exact, and it needs no vector index.
  /// - Parameter memory: the account from which memory for the result pages is reserved; nil if `deliver` retains no page.
  /// - Throws: the errors of `deliver`, or a `FirestoreError`: INVALID_ARGUMENT for an invalid query.
  package func runQuery(
    _ query: Query, consistency: ReadConsistency = .latest, explain: ExplainMode = .none,
    as caller: Principal, memory: (any ResultMemory)? = nil,
    deliver: @Sendable (QueryPage) async throws -> Void
  ) async throws {
    do {
      let prepared = try PreparedQuery(query, limits.data)
      let database = try await self.database(query.parent.database)
      try await database.run(
        prepared, deciding: .list(ListedQuery(query)), consistency, explain: explain, as: caller,
        memory: memory, deliver: deliver)
    } catch {
      throw error is StoreError ? FirestoreError(error) : error
    }
  }

  /// Lists the documents directly under a parent, one page per call.
  /// - Throws: INVALID_ARGUMENT for a negative page size, an invalid token or order, or an order with
  ///   `showMissing`.
  package func listDocuments(
    _ request: ListDocumentsRequest, as caller: Principal
  ) async throws(FirestoreError) -> ListDocumentsPage {
    let size = try FirestoreEngine.pageSize(request.pageSize)
    if request.showMissing {
      guard request.orderBy.isEmpty else {
        throw .invalidArgument("Cannot combine order_by and show_missing.")
      }
    }
    if !request.collectionID.isEmpty { try ResourceID.validate(collectionID: request.collectionID) }
    return try await convertingErrors {
      let database = try await self.database(request.parent.database)
      return request.showMissing
        ? try await database.listWithMissing(request, size, as: caller)
        : try await database.list(request, size, as: caller)
    }
  }

  /// Lists the ids of the collections under a parent, one page per call.
  /// - Throws: INVALID_ARGUMENT for a negative page size or an invalid token.
  package func listCollectionIDs(
    _ request: ListCollectionIDsRequest, as caller: Principal
  ) async throws(FirestoreError) -> ListCollectionIDsPage {
    let size = try FirestoreEngine.pageSize(request.pageSize)
    return try await convertingErrors {
      let database = try await self.database(request.parent.database)
      return try await database.listCollectionIDs(request, size, as: caller)
    }
  }

  /// The effective page size of a request.
  static func pageSize(_ requested: Int) throws(FirestoreError) -> Int {
    guard requested >= 0 else { throw .invalidArgument("Page size must be nonnegative.") }
    return requested == 0
      ? EngineLimits.defaultListPageSize : min(requested, EngineLimits.maximumListPageSize)
  }
}

extension FirestoreEngine {
  /// Rejects a pipeline: databases of the standard edition do not support pipelines.
  /// - Throws: INVALID_ARGUMENT; NOT_FOUND if the database does not exist; UNAVAILABLE during shutdown.
  package func executePipeline(in name: DatabaseName, as caller: Principal) async throws(FirestoreError) {
    try await convertingErrors {
      _ = try await self.database(name)
      throw FirestoreError.invalidArgument(
        "ExecutePipeline requires the Database Edition to be `enterprise`.")
    }
  }
}
