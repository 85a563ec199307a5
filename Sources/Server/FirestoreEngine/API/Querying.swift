// RunQuery, ListDocuments and ListCollectionIds.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Runs a query at one version, in pages; each is delivered when the one before was taken.
  ///
  /// Neighbours are found by going over all documents that the rest of the query gives: exactly, without an index.
  /// - Throws: what `deliver` throws, or a `FirestoreError`: INVALID_ARGUMENT for a query that breaks the rules.
  public func runQuery(
    _ query: Query, consistency: ReadConsistency = .latest, explain: ExplainMode = .none, as caller: Caller,
    deliver: @Sendable (QueryPage) async throws -> Void
  ) async throws {
    do {
      let prepared = try PreparedQuery(query, limits.data)
      let database = try await self.database(query.parent.database)
      try await database.run(prepared, consistency, explain: explain, as: caller, deliver: deliver)
    } catch {
      throw error is StoreError ? FirestoreError(error) : error
    }
  }

  /// Lists the documents directly under a parent, a page at a time.
  /// - Throws: INVALID_ARGUMENT for a negative page size, a bad token or order, or an order with `showMissing`.
  public func listDocuments(
    _ request: ListDocumentsRequest, as caller: Caller
  ) async throws(FirestoreError) -> ListDocumentsPage {
    let size = try FirestoreEngine.pageSize(request.pageSize)
    if request.showMissing {
      guard request.orderBy.isEmpty else {
        throw .invalidArgument("Cannot combine order_by and show_missing.")
      }
    }
    if !request.collectionID.isEmpty { try ResourceID.validate(collectionID: request.collectionID) }
    return try await reporting {
      let database = try await self.database(request.parent.database)
      return request.showMissing
        ? try await database.listWithMissing(request, size, as: caller)
        : try await database.list(request, size, as: caller)
    }
  }

  /// Lists the ids of the collections under a parent.
  /// - Throws: INVALID_ARGUMENT for a negative page size or a bad token.
  public func listCollectionIDs(
    _ request: ListCollectionIDsRequest, as caller: Caller
  ) async throws(FirestoreError) -> ListCollectionIDsPage {
    let size = try FirestoreEngine.pageSize(request.pageSize)
    return try await reporting {
      let database = try await self.database(request.parent.database)
      return try await database.listCollectionIDs(request, size, as: caller)
    }
  }

  /// The page size that a request gets.
  static func pageSize(_ asked: Int) throws(FirestoreError) -> Int {
    guard asked >= 0 else { throw .invalidArgument("Page size must be nonnegative.") }
    return asked == 0 ? EngineLimits.listPage : min(asked, EngineLimits.listPageMaximum)
  }
}
