// Counts the values of expressions while the rules decide an operation, and reports the coverage of a Firestore
// ruleset.
//
// The rules decide an operation in steps: one for each document that it reads or writes, or one for each alternative
// (disjunct) of a query's filter.

import Access
import FirestoreModel
import JSON

/// The evaluation of the rules for one step: a document, or an alternative of a query.
struct StepEvaluation: Sendable {
  let request: RuleRequest
  /// Whether the step is a query, which names a collection instead of a document.
  let isQuery: Bool
  /// Whether a statement allows the step.
  var isAllowed = false
  /// The lines of the evaluated statements, and whether they allow.
  var statements: [(line: Int, isTrue: Bool)] = []
  /// Whether the condition of a statement had no value because of a fault.
  var hasFault = false
  /// The values of calls of `debug()`, as text.
  var debugTexts: [String] = []
}

/// The evaluations behind a decision.
final class EvaluationRecord: DecisionRecord {
  let evaluations: [StepEvaluation]

  init(_ evaluations: [StepEvaluation]) { self.evaluations = evaluations }
}

extension FirestoreRuleset {
  /// Evaluates the statements for a step, up to the first that allows it, and traces the values of their expressions.
  func evaluateAndTrace(_ step: DecisionStep, _ evaluator: inout RuleEvaluator) -> StepEvaluation {
    evaluator.trace = RuleTrace()
    var evaluation = StepEvaluation(request: step.request, isQuery: step.isQuery)
    evaluation.isAllowed = isAllowed(step, &evaluator) { statement, _, outcome in
      var isTrue = false
      switch outcome {
      case .allowed: isTrue = true
      case .denied: break
      case .failed: evaluation.hasFault = true
      }
      evaluation.statements.append((statement.position.line, isTrue))
    }
    if let trace = evaluator.trace { evaluation.debugTexts = debugTexts(of: trace) }
    return evaluation
  }

  /// Adds the values of the expressions in one step to the coverage.
  func count(_ trace: RuleTrace) {
    counts.count(
      trace.entries.lazy.filter { !self.program.isConstant($0.node) }.map { (Int($0.node), $0.outcome) })
  }

  /// The coverage of the rules since they were released.
  package var coverage: CoverageReport {
    CoverageReport(
      source: source,
      roots: program.roots.compactMap { root in
        switch root {
        case .condition(let node): report(node, evaluations: counts.values(of: Int(node)).total)
        case .function(let index): report(program.functions[Int(index)])
        }
      })
  }

  private func report(_ function: RuleProgram.Function) -> CoverageReport.Node? {
    let values = counts.values(of: Int(function.result))
    guard let start = function.start else { return report(function.result, evaluations: values.total) }
    let children = (function.lets + [function.result]).compactMap { report($0, evaluations: values.total) }
    return CoverageReport.Node(
      start: start, offset: text.offset(of: start),
      endOffset: text.offset(of: program.ends[Int(function.result)]), values: values, skipped: 0,
      children: children)
  }

  /// The report of an expression; nil for a literal.
  private func report(_ node: Int32, evaluations: Int) -> CoverageReport.Node? {
    if program.isConstant(node) { return nil }
    let values = counts.values(of: Int(node))
    let start = program.positions[Int(node)]
    return CoverageReport.Node(
      start: start, offset: text.offset(of: start), endOffset: text.offset(of: program.ends[Int(node)]),
      values: values, skipped: max(0, evaluations - values.total),
      children: program.parts(of: node).compactMap { report($0, evaluations: evaluations) })
  }
}

extension FirestoreRuleset.DecisionStep {
  /// Whether the step is a query, which names no document.
  fileprivate var isQuery: Bool { if case .document = self { false } else { true } }
}

extension RuleProgram {
  /// Whether an expression is a literal, which reports omit.
  fileprivate func isConstant(_ node: Int32) -> Bool {
    if case .constant = nodes[Int(node)] { return true }
    return false
  }

  /// The expressions directly inside an expression, in the order of reports. This is the order of the file, except for
  /// `x in y`.
  fileprivate func parts(of node: Int32) -> [Int32] {
    switch nodes[Int(node)] {
    case .constant, .undeclared, .local, .wildcard, .request, .requestMember, .resource: []
    case .list(let items), .constantList(_, let items), .map(let items), .call(_, let items),
      .builtin(_, let items), .fault(_, let items):
      children[items.range].map(\.self)
    case .path(let index):
      paths[Int(index)].compactMap { if case .interpolation(let node) = $0 { node } else { nil } }
    case .member(let base, _), .not(let base), .negate(let base), .type(let base, _): [base]
    case .index(let base, let index): [base, index]
    case .slice(let base, let from, let to): [base, from, to].filter { $0 >= 0 }
    case .method(let base, _, let arguments), .pattern(let base, _, _, let arguments):
      [base] + children[arguments.range]
    case .binary(.in, let left, let right): [right, left]
    case .and(let left, let right), .or(let left, let right), .binary(_, let left, let right): [left, right]
    case .conditional(let condition, let then, let otherwise): [condition, then, otherwise]
    }
  }
}
