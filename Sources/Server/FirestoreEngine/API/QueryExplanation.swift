// What a query's caller is told about how it is answered.

/// How a query was, or would be, answered.
public struct QueryExplanation: Sendable, Equatable {
  /// An index that is read.
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

  /// What running the query took.
  public struct Statistics: Sendable, Equatable {
    /// Documents, or one for an aggregation.
    public var resultsReturned: Int
    /// From the first look to the last, delivery included.
    public var microseconds: Int
    /// What the hosted product would charge for the result. Hearth charges nothing.
    public var readOperations: Int
    /// Index entries read.
    public var entriesScanned: Int
    /// Documents read, results or not.
    public var documentsScanned: Int
    /// Documents that the product would charge for: results and what the offset skips.
    public var documentsBillable: Int
    /// Index entries that it would charge for: those of an aggregation.
    public var entriesBillable = 0
    /// What it charges for a query without results.
    public var minimumCost: Int
  }

  /// The indexes that are read; without any, nothing can match.
  public var indexesUsed: [Index]
  /// What running took; nil if the query was not run.
  public var statistics: Statistics?

  /// The same for the aggregation over the query's results: one result, charged by index entries.
  var aggregating: QueryExplanation {
    guard var statistics else { return self }
    statistics.resultsReturned = 1
    statistics.entriesBillable = max(statistics.entriesScanned, statistics.documentsBillable)
    statistics.documentsBillable = 0
    statistics.readOperations = max((statistics.entriesBillable + 999) / 1_000, 1)
    statistics.minimumCost = statistics.entriesBillable == 0 ? 1 : 0
    return QueryExplanation(indexesUsed: indexesUsed, statistics: statistics)
  }
}
