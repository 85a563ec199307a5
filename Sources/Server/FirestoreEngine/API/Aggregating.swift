// Serves RunAggregationQuery.

package import Access
public import FirestoreModel
import OrderedStore

/// The result of an aggregation query.
public struct AggregationResult: Sendable {
  /// The token of the transaction that the query began; nil if it began none.
  public var transaction: [UInt8]?
  /// The values by alias.
  public var fields: MapValue
  /// The snapshot's time.
  public var readTime: Timestamp
  /// How the query was, or would be, executed; nil unless requested. If it has no statistics, the query was
  /// not executed, and the result has no values.
  public var explanation: QueryExplanation?
}

extension FirestoreEngine {
  /// Computes aggregates over a query's results, at one version.
  ///
  /// A document that lacks a summed or averaged field is not included, not even in a count of the same
  /// request. Cursors, offset and limit of the base query apply. Its projection is ignored. A sum is an
  /// integer if all numbers are integers and it fits, else a double. An average is a double, or null without
  /// numbers.
  /// - Throws: INVALID_ARGUMENT for an invalid query or aggregation, and the errors of `runQuery`.
  package func runAggregationQuery(
    _ query: AggregationQuery, under parent: ParentName, consistency: ReadConsistency = .latest,
    explain: ExplainMode = .none, as caller: Principal
  ) async throws(FirestoreError) -> AggregationResult {
    try await convertingErrors {
      var run = try AggregationRun(query, under: parent, self.limits.data)
      var result = AggregationResult(transaction: nil, fields: MapValue(), readTime: .epoch)
      let database = try await self.database(parent.database)
      let requested = ListedQuery(Query(parent: parent, query.base))
      try await database.run(
        run.query, deciding: .aggregate(requested), consistency, explain: explain, as: caller
      ) { page in
        if let token = page.transaction { result.transaction = token }
        result.readTime = page.readTime
        try run.add(page.documents)
        result.explanation = page.explanation?.ofAggregation
      }
      if explain != .plan { result.fields = run.result }
      return result
    }
  }
}
