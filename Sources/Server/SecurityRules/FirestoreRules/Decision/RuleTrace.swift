/// The values that expressions had in one evaluation.
struct RuleTrace {
  /// A value, or why there is none.
  enum Outcome {
    case value(RuleValue)
    case failure(RuleEvaluator.Failure)
  }

  /// The outcome of each evaluated node; the last one for a node that was evaluated several times.
  private(set) var outcomes: [Int32: Outcome] = [:]

  /// Records an outcome.
  mutating func record(_ outcome: Outcome, of node: Int32) { outcomes[node] = outcome }
}
