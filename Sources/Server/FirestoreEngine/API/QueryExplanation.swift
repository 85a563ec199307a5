// The explanation of a query: the indexes that it reads, and its cost.

/// How a query was, or would be, executed.
public struct QueryExplanation: Sendable, Equatable {
  /// An index that the query reads.
  public struct Index: Sendable, Hashable {
    /// `Collection`, `Collection group` or `Database`.
    public var queryScope: String
    /// Its fields, such as `(genre ASC, __name__ ASC)`.
    public var properties: String

    /// Names an index.
    public init(queryScope: String, properties: String) {
      self.queryScope = queryScope
      self.properties = properties
    }
  }

  /// The cost of one execution.
  public struct Statistics: Sendable, Equatable {
    /// The number of result documents; 1 for an aggregation.
    public var resultsReturned: Int
    /// The time from the first read to the last, including delivery, in microseconds.
    public var microseconds: Int
    /// The reads that Firebase would charge for. Hearth charges nothing.
    public var readOperations: Int
    /// Index entries read.
    public var entriesScanned: Int
    /// Documents read, including those that do not match.
    public var documentsScanned: Int
    /// Documents that Firebase would charge for: results and skipped results.
    public var documentsBillable: Int
    /// Index entries that Firebase would charge for. Only aggregations are charged by index entries.
    public var entriesBillable = 0
    /// The minimum number of reads that Firebase would charge for: 1 for a query without results, otherwise 0.
    public var minimumCost: Int
  }

  /// The indexes that the query reads; empty if nothing can match.
  public var indexesUsed: [Index]
  /// The cost; nil if the query was not executed.
  public var statistics: Statistics?

  /// The explanation of an aggregation over this query. An aggregation has one result, and Firebase would
  /// charge it by index entries.
  var ofAggregation: QueryExplanation {
    guard var statistics else { return self }
    statistics.resultsReturned = 1
    statistics.entriesBillable = max(statistics.entriesScanned, statistics.documentsBillable)
    statistics.documentsBillable = 0
    statistics.readOperations = max((statistics.entriesBillable + 999) / 1_000, 1)
    statistics.minimumCost = statistics.entriesBillable == 0 ? 1 : 0
    return QueryExplanation(indexesUsed: indexesUsed, statistics: statistics)
  }
}
