// What a query's caller wants to be told about how it is answered.

/// Whether a query is explained, and whether it is run for that.
public enum ExplainMode: Hashable, Sendable {
  /// It is answered alone.
  case none
  /// It is not run; the answer is its plan.
  case plan
  /// It is run; after its results come its plan and what running it took.
  case analyze
}
