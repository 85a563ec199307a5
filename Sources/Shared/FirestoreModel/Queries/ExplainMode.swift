// The explain mode of a query: whether the response contains its plan and statistics.

/// Whether a query is explained, and whether it runs.
public enum ExplainMode: Hashable, Sendable {
  /// The query runs; the response contains only its results.
  case none
  /// The query does not run; the response contains only its plan.
  case plan
  /// The query runs; the response contains its results, its plan and execution statistics.
  case analyze
}
