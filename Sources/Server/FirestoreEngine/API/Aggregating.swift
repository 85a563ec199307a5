// RunAggregationQuery.

public import FirestoreModel
import OrderedStore

/// What an aggregation query gave.
public struct AggregationResult: Sendable {
  /// The token of the transaction that the query began; nil if it began none.
  public var transaction: [UInt8]?
  /// The values by alias.
  public var fields: MapValue
  /// The snapshot's time.
  public var readTime: Timestamp
  /// How the query was, or would be, answered, if asked for. Without statistics there are no values.
  public var explanation: QueryExplanation?
}

extension FirestoreEngine {
  /// Computes aggregates over a query's results, at one version.
  ///
  /// Documents that lack a field which is summed or averaged are no results, also for a count beside it. Cursors, offset
  /// and limit of the base query hold; its projection does not matter. A sum is an integer where all numbers are and it
  /// fits, else a double; an average is a double, null without numbers.
  /// - Throws: INVALID_ARGUMENT for a query or aggregations that break the rules, and what `runQuery` throws.
  public func runAggregationQuery(
    _ query: AggregationQuery, under parent: ParentName, consistency: ReadConsistency = .latest,
    explain: ExplainMode = .none, as caller: Caller
  ) async throws(FirestoreError) -> AggregationResult {
    try await reporting {
      var run = try AggregationRun(query, under: parent, self.limits.data)
      var result = AggregationResult(transaction: nil, fields: MapValue(), readTime: .epoch)
      let database = try await self.database(parent.database)
      try await database.run(run.query, consistency, explain: explain, as: caller) { page in
        if let token = page.transaction { result.transaction = token }
        result.readTime = page.readTime
        try run.add(page.documents)
        result.explanation = page.explanation?.aggregating
      }
      if explain != .plan { result.fields = run.result }
      return result
    }
  }
}
