// Explains to operators why a request was denied. A server never sends it to a client, because it contains values of
// stored documents. An emulator sends `text`, which has the positions of the statements, and the fault (the reason that
// a condition has no value) of each.

package import FirestoreModel

/// Why the rules deny an operation.
package struct DenialExplanation: Sendable {
  /// An expression that determined the result, with its value.
  package struct Term: Sendable, Hashable {
    /// The position of the expression.
    package var position: SourcePosition
    /// The expression as written in the file, at most about 96 characters.
    package var expression: String
    /// The value in words, or the fault.
    package var value: String
  }

  /// An allow statement that was evaluated.
  package struct Statement: Sendable, Hashable {
    /// The position of the statement.
    package var position: SourcePosition
    /// The fault that left the condition without a value; nil if it is false.
    package var fault: RuleFault?
    /// The position of the expression with the fault.
    package var faultPosition: SourcePosition?
    /// The deciding expressions, outermost first.
    package var terms: [Term]
  }

  /// The method that the operation needs.
  package var method: RuleMethod
  /// The path of the operation.
  package var path: ResourcePath
  /// The statements for the method whose blocks cover the path, and those that were not reached because a limit was
  /// exhausted; none if no block covers the path.
  package var statements: [Statement]

  /// The denial for a log: method, path, and for each statement its line, fault and deciding values.
  package var report: String {
    let subject = "the rules deny '\(method.rawValue)' of \(path)"
    guard !statements.isEmpty else { return subject + ": no allow statement matches" }
    return subject + ": "
      + statements.map { statement in
        let outcome = statement.fault.map(\.text) ?? "false"
        let terms = statement.terms.map { "\($0.position.line):\($0.position.column) = \($0.value)" }
        return "line \(statement.position.line) is \(outcome) [\(terms.joined(separator: "; "))]"
      }.joined(separator: ", ")
  }
}

extension FirestoreRuleset {
  /// Explains the denial of a read of one document.
  package func explainGet(_ path: ResourcePath, _ fields: MapValue?, _ context: Context) -> DenialExplanation
  {
    explain(
      Denial(
        step: .document(requestToRead(path, fields, context)), lookups: context.lookups(operationCount: 1),
        work: RuleBudget.maximumWork))
  }

  /// Explains the denial of a commit; nil if it is allowed.
  package func explainChanges(_ changes: [RuleChange], _ context: Context) -> DenialExplanation? {
    denial(
      of: steps(changes, context), context.lookups(operationCount: changes.count), context.workLimit
    ).map { explain($0) }
  }

  /// Explains the denial of a query; nil if it is allowed.
  /// - Throws: any error that reading a document through `context` throws.
  package func explainQuery(_ query: RuleQuery, _ context: Context) throws -> DenialExplanation? {
    try explain(.query(query), context)
  }

  /// A denied step with the limits that it had, so that repeating its evaluation gives the same result. A step is one
  /// document, or one alternative (disjunct) of a query's filter.
  struct Denial {
    let step: DecisionStep
    /// The index of the step in the operation.
    var index = 0
    /// The lookups after the step: the documents that it has read, and whether it reached a limit.
    let lookups: RuleLookups
    /// The units of work that were available to the step.
    let work: Int
  }

  /// Decides the steps, and returns the first denied one; nil if all steps are allowed.
  func denial(of steps: [DecisionStep], _ lookups: RuleLookups, _ limit: WorkLimit) -> Denial? {
    let decision = decide(steps, lookups, limit)
    guard !decision.isAllowed, let index = decision.deniedOperation else { return nil }
    return Denial(step: steps[index], index: index, lookups: lookups, work: decision.workOfDenied)
  }

  /// Explains a denied step by repeating its evaluation.
  func explain(_ denial: Denial) -> DenialExplanation {
    let (step, request) = (denial.step, denial.step.request)
    var explanation = DenialExplanation(method: request.method, path: request.path, statements: [])
    denial.lookups.beginOperation()
    var evaluator = RuleEvaluator(self, request: request, lookups: denial.lookups, work: denial.work)
    evaluator.trace = RuleTrace()
    _ = isAllowed(step, &evaluator) { statement, evaluator, outcome in
      var failure: RuleEvaluator.Failure?
      if case .failed(let error) = outcome { failure = error }
      explanation.statements.append(
        DenialExplanation.Statement(
          position: statement.position, fault: failure?.fault,
          faultPosition: failure.map {
            $0.node < 0 ? statement.position : self.program.positions[Int($0.node)]
          },
          terms: self.terms(below: statement.condition, evaluator.trace ?? RuleTrace())))
    }
    return explanation
  }

  /// The expressions that determined a condition: the comparisons inside `&&`, `||`, `!`, conditionals and
  /// calls, and the operands of these comparisons.
  private func terms(below root: Int32, _ trace: RuleTrace) -> [DenialExplanation.Term] {
    var terms: [DenialExplanation.Term] = []
    var stack = [root]
    let outcomes = trace.outcomes
    while let node = stack.popLast(), terms.count < 64 {
      guard let outcome = outcomes[node] else { continue }
      if case .constant = program.nodes[Int(node)] { continue }
      let position = program.positions[Int(node)]
      terms.append(
        DenialExplanation.Term(
          position: position,
          expression: text.characters(from: position, through: program.ends[Int(node)], limit: 96),
          value: Self.describe(outcome)))
      stack += program.operands(of: node).reversed()
    }
    return terms
  }

  private static func describe(_ outcome: RuleTrace.Outcome) -> String {
    switch outcome {
    case .value(let value): value.summary
    case .failure(let failure): failure.fault.text
    }
  }
}

extension RuleProgram {
  /// The operands that determine a node's value.
  fileprivate func operands(of node: Int32) -> [Int32] {
    switch nodes[Int(node)] {
    case .not(let operand), .negate(let operand), .type(let operand, _): [operand]
    case .and(let left, let right), .or(let left, let right), .binary(_, let left, let right): [left, right]
    case .conditional(let condition, let then, let otherwise): [condition, then, otherwise]
    case .call(let function, let arguments):
      arguments.range.map { children[$0] } + [functions[Int(function)].result]
    case .builtin(_, let arguments): arguments.range.map { children[$0] }
    case .method(let base, _, let arguments), .pattern(let base, _, _, let arguments):
      [base] + arguments.range.map { children[$0] }
    case .member(let base, _): if case .member = nodes[Int(base)] { [base] } else { [] }
    case .fault(_, let operands): operands.range.map { children[$0] }
    default: []
    }
  }
}

extension RuleValue {
  /// The value in a few words, at most about 80 characters.
  package var summary: String {
    let text =
      switch self {
      case .null: "null"
      case .bool(let value): String(value)
      case .int(let value): String(value)
      case .float(let value): RuleNumbers.text(value)
      case .string(let value): "'\(value.string.prefix(64))'"
      case .bytes(let value): "\(value.count) bytes"
      case .timestamp(let value): value.rfc3339
      case .duration(let value): "\(value.seconds)s \(value.nanoseconds)ns"
      case .latlng(let value): "latlng(\(value.latitude), \(value.longitude))"
      case .path(let value): String(value.text.string.prefix(80))
      case .list(let list): "list of \(list.count)"
      case .map(let map): "map of \(map.keys.prefix(8).map(\.string).joined(separator: ", "))"
      case .set(let set): "set of \(set.members.count)"
      case .mapDiff: "difference of maps"
      case .vector(let value): "vector of \(value.count)"
      case .constraint: "known from the query's filters"
      case .unknownPath: "unknown path"
      }
    return String(text.prefix(96))
  }
}
