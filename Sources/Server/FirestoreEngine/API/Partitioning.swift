// Serves PartitionQuery.

package import Access
public import FirestoreModel
import OrderedStore

/// A request for points that split a collection group into parts of similar size.
public struct PartitionQueryRequest: Sendable {
  /// The query. It must select one collection group in ascending name order, without filters, cursors, offset
  /// or limit.
  public var query: Query
  /// Maximum number of points, above 0. Small groups have fewer; no group has more than 1,024.
  public var count: Int
  /// Maximum number of points on a page; 0 for the default of 300. Negative is INVALID_ARGUMENT.
  public var pageSize: Int
  /// The token from the previous page; empty for the first page.
  public var pageToken: String
  /// The state to read: `latest` or a read time.
  public var consistency: ReadConsistency

  /// Makes a request for the first page.
  public init(
    _ query: Query, count: Int, pageSize: Int = 0, pageToken: String = "",
    consistency: ReadConsistency = .latest
  ) {
    self.query = query
    self.count = count
    self.pageSize = pageSize
    self.pageToken = pageToken
    self.consistency = consistency
  }
}

/// A page of points.
public struct PartitionQueryPage: Sendable {
  /// The names of the documents before which to split the group, in ascending order.
  public var points: [DocumentName]
  /// The token of the next page; empty on the last page.
  public var nextPageToken: String
}

extension FirestoreEngine {
  /// Finds points at which a collection group can be split for parallel queries. Each document is in the
  /// result of exactly one of these queries: before the first point, between two adjacent points, or after
  /// the last point.
  ///
  /// All pages of one request show the same version. Each call scans all names of the group.
  /// - Throws: INVALID_ARGUMENT for a count that is not positive, a negative page size, an invalid token, or
  ///   a query that cannot be partitioned. For an invalid read time, the errors of `runQuery`.
  package func partitionQuery(
    _ request: PartitionQueryRequest, as caller: Principal
  ) async throws(FirestoreError) -> PartitionQueryPage {
    guard request.count > 0 else {
      throw .invalidArgument("The partition count must be positive; it is \(request.count).")
    }
    let size = try FirestoreEngine.pageSize(request.pageSize)
    let group = try collectionGroup(of: request.query)
    return try await convertingErrors {
      let database = try await self.database(request.query.parent.database)
      return try await database.partition(request, group, size, as: caller)
    }
  }

  /// The id of the collection group that a query selects.
  /// - Throws: INVALID_ARGUMENT for a query that cannot be partitioned.
  private func collectionGroup(of query: Query) throws(FirestoreError) -> String {
    let prepared = try PreparedQuery(query, limits.data)
    guard case .group(let id) = prepared.scope else {
      throw .invalidArgument(
        "Only queries of one collection group, with all descendants, can be partitioned.")
    }
    let structured = query.structured
    guard structured.filter == nil, structured.startAt == nil, structured.endAt == nil,
      structured.offset == 0,
      structured.limit == nil, structured.findNearest == nil
    else {
      throw .invalidArgument("Queries with filters, cursors, an offset or a limit cannot be partitioned.")
    }
    guard prepared.nameDirection == .ascending else {
      throw .invalidArgument("Only queries in ascending order of __name__ can be partitioned.")
    }
    return id
  }
}
