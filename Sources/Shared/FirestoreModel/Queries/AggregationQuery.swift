// An aggregation query: a query whose result is computed from the documents that it finds.

/// Aggregations over the results of a query.
public struct AggregationQuery: Hashable, Sendable {
  /// The aggregate function.
  public enum Operator: Hashable, Sendable {
    /// The number of documents. Counting stops at the bound.
    case count(upTo: Int64?)
    /// The sum of a field's numbers.
    case sum(FieldPath)
    /// The mean of a field's numbers.
    case average(FieldPath)
  }

  /// One aggregation and the name of its result.
  public struct Aggregation: Hashable, Sendable {
    /// The result's name; empty for a default name.
    public var alias: String
    /// The aggregate function.
    public var op: Operator

    /// Makes an aggregation.
    public init(_ alias: String, _ op: Operator) {
      self.alias = alias
      self.op = op
    }
  }

  /// The query whose results are aggregated.
  public var base: StructuredQuery
  /// The aggregations: at least one, at most ``FirestoreLimits/aggregations``.
  public var aggregations: [Aggregation]

  /// Makes an aggregation query.
  public init(_ base: StructuredQuery, _ aggregations: [Aggregation]) {
    self.base = base
    self.aggregations = aggregations
  }

  /// The aggregations, each with a distinct name. Aggregations without a name get `field_1`, `field_2` and so on.
  ///
  /// - Throws: INVALID_ARGUMENT if there are none, too many, or invalid ones.
  public func namedAggregations(
    limits: FirestoreLimits = .standard
  ) throws(FirestoreError) -> [Aggregation] {
    if aggregations.isEmpty { throw .invalidArgument("Aggregations can not be empty.") }
    if aggregations.count > limits.aggregations {
      throw .invalidArgument(
        "The maximum number of aggregations allowed in an aggregation query is \(limits.aggregations). Received: "
          + "\(aggregations.count)")
    }
    var named: [Aggregation] = []
    var unnamed = 0
    for var aggregation in aggregations {
      if aggregation.alias.isEmpty {
        unnamed += 1
        aggregation.alias = "field_\(unnamed)"
      }
      let alias = aggregation.alias
      try DocumentValidation.validate(fieldName: alias)
      if named.contains(where: { $0.alias.hasSameUTF8(as: alias) }) {
        throw .invalidArgument("Aggregation aliases contain duplicate alias: \(alias).")
      }
      switch aggregation.op {
      case .count(let bound):
        if let bound, bound <= 0 {
          throw .invalidArgument("The 'up_to' of a count must be greater than 0, not \(bound).")
        }
      case .sum(let field), .average(let field):
        if field.isDocumentID { throw .invalidArgument("Aggregations are not supported for __name__.") }
        try field.validateInQuery()
      }
      named.append(aggregation)
    }
    return named
  }

  /// The fields whose numbers are aggregated. All aggregations, including `count`, ignore a document that lacks one of
  /// them.
  public var fields: [FieldPath] {
    aggregations.compactMap { aggregation in
      switch aggregation.op {
      case .count: nil
      case .sum(let field), .average(let field): field
      }
    }
  }
}
