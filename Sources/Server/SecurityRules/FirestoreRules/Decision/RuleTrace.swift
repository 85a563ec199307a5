/// The values that expressions had in one evaluation.
struct RuleTrace {
  /// A value, or why there is none.
  enum Outcome: Sendable {
    case value(RuleValue)
    case failure(RuleEvaluator.Failure)
  }

  /// The outcomes in the order in which nodes were evaluated; a node of a function occurs once for each call.
  private(set) var entries: [(node: Int32, outcome: Outcome)] = []

  init() { entries.reserveCapacity(64) }

  /// The last outcome of each evaluated node.
  var outcomes: [Int32: Outcome] {
    Dictionary(entries.map { ($0.node, $0.outcome) }, uniquingKeysWith: { $1 })
  }

  /// Records an outcome.
  mutating func record(_ outcome: Outcome, of node: Int32) { entries.append((node, outcome)) }
}
