// A compiled regular expression: the instructions of a nondeterministic automaton, which the matcher simulates.

/// A compiled regular expression.
package struct Pattern: Sendable {
  /// An instruction. Positions are indices of `instructions`.
  enum Instruction: Sendable, Hashable {
    /// Consumes one unit of the set with this index.
    case set(Int32)
    /// Continues at both positions; the first is preferred.
    case split(Int32, Int32)
    /// Continues at a position.
    case jump(Int32)
    /// Continues if the assertion holds.
    case assertion(PatternAssertion)
    /// Records the current offset in a slot.
    case save(Int32)
    /// Ends a match.
    case match
  }

  let instructions: [Instruction]
  let sets: [UnitSet]

  /// The number of capturing groups.
  package let groupCount: Int

  /// Whether every match starts at the start of the text.
  let isAnchoredAtStart: Bool

  /// The memory that the compiled form needs, in instructions. A file of rules limits the sum over its patterns.
  package var instructionCount: Int { instructions.count }

  /// The largest compiled size of one regular expression, in instructions.
  package static let maximumInstructions = 10_000

  /// Compiles a syntax tree.
  ///
  /// - Throws: ``PatternError/tooLarge`` if the compiled form has more than `maximumInstructions`. Counted repetitions
  ///   are expanded, so that a short text can be too large. ``PatternError/exhausted`` if the budget does not suffice.
  package init(
    _ node: PatternNode, maximumInstructions: Int = Pattern.maximumInstructions, budget: inout PatternBudget
  ) throws(PatternError) {
    var compiler = PatternCompiler(maximumInstructions: maximumInstructions, budget: budget)
    defer { budget = compiler.budget }
    try compiler.append(node)
    try compiler.emit(.match)
    instructions = compiler.instructions
    sets = compiler.sets
    groupCount = compiler.groupCount
    isAnchoredAtStart = node.isAnchoredAtStart
  }

  /// Compiles a syntax tree of a trusted author. Only the limit of the compiled size bounds the time.
  package init(
    _ node: PatternNode, maximumInstructions: Int = Pattern.maximumInstructions
  ) throws(PatternError) {
    var budget = PatternBudget.unlimited
    try self.init(node, maximumInstructions: maximumInstructions, budget: &budget)
  }
}

/// An error of a regular expression.
package enum PatternError: Error, Sendable, Hashable {
  /// The text is not a regular expression of the language. `offset` counts units from the start of the text.
  case syntax(offset: Int, message: String)
  /// The compiled form is too large.
  case tooLarge
  /// The budget of the evaluation does not suffice to compile the expression.
  case exhausted
}

extension PatternNode {
  /// Whether every match of the node begins with the assertion of the text's start.
  fileprivate var isAnchoredAtStart: Bool {
    switch self {
    case .assertion(.textStart): true
    case .concatenation(let nodes): nodes.first?.isAnchoredAtStart ?? false
    case .alternation(let nodes): !nodes.isEmpty && nodes.allSatisfy(\.isAnchoredAtStart)
    case .group(let node, _): node.isAnchoredAtStart
    case .repetition(let node, let minimum, _, _): minimum > 0 && node.isAnchoredAtStart
    case .empty, .set, .assertion: false
    }
  }
}
