// A query whose result is computed from the documents that it finds.

/// Aggregations over the results of a query.
public struct AggregationQuery: Hashable, Sendable {
  /// What is computed.
  public enum Operator: Hashable, Sendable {
    /// The number of documents, counted at most up to a bound.
    case count(upTo: Int64?)
    /// The sum of a field's numbers.
    case sum(FieldPath)
    /// The mean of a field's numbers.
    case average(FieldPath)
  }

  /// One aggregation and the name of its result.
  public struct Aggregation: Hashable, Sendable {
    /// The result's name; empty for a default one.
    public var alias: String
    /// What is computed.
    public var op: Operator

    /// Makes an aggregation.
    public init(_ alias: String, _ op: Operator) {
      self.alias = alias
      self.op = op
    }
  }

  /// The query whose results are aggregated.
  public var base: StructuredQuery
  /// One to five aggregations.
  public var aggregations: [Aggregation]

  /// Makes an aggregation query.
  public init(_ base: StructuredQuery, _ aggregations: [Aggregation]) {
    self.base = base
    self.aggregations = aggregations
  }
}
