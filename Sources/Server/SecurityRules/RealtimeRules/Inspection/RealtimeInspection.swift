// The inspection of a ruleset explains its decisions. For the first explanation it compiles the rules a second time,
// with marks: an evaluation records the value of each marked expression (see RealtimeMarks.swift).

import Access
import Locking
import RealtimeModel

/// Explains decisions by one ruleset of the Realtime Database.
package final class RealtimeInspection: Sendable {
  /// The SHA-256 hash of the rules file in hexadecimal digits, which identifies a release for operators.
  package let fingerprint: String
  private let text: String
  private let marked = Guarded<RealtimeRuleset?>(nil)
  /// The recorded coverage; empty unless decisions are recorded.
  let counts = CoverageCounts<RealtimeOutcome>()

  init(_ text: String) {
    self.text = text
    fingerprint = RulesFingerprint.of(text)
  }

  /// The ruleset with marked expressions.
  func markedRuleset() -> RealtimeRuleset? {
    marked.withLock { marked in
      if marked == nil { marked = try? RealtimeRuleset(marking: text) }
      return marked
    }
  }

  /// Decides an operation by the marked rules, and counts the values of all expressions.
  ///
  /// - Returns: nil if the rules cannot be marked.
  /// - Throws: any error that reading through `view` throws.
  func decideAndCount(
    _ operation: TreeOperation, of principal: Principal, view: any TreeView
  ) throws -> RealtimeDecision? {
    guard let ruleset = markedRuleset() else { return nil }
    var evaluated = EvaluatedRules()
    let decision = try ruleset.decide(principal, operation, view: view) { rule, _, _, result, trace in
      evaluated.add(rule, result, trace)
      // A decision that may be interrupted (`view.work`) is counted only at its end: the engine repeats it after an
      // interruption.
      if view.work == nil, evaluated.outcomes.count > Self.maximumOutcomes { self.count(&evaluated) }
    }
    count(&evaluated)
    return decision
  }

  /// The number of values of expressions that a decision holds before they are counted.
  private static let maximumOutcomes = 100_000

  private func count(_ evaluated: inout EvaluatedRules) {
    var start = 0
    for rule in evaluated.rules {
      counts.count(
        evaluated.outcomes[start..<rule.end].lazy.map { (Int($0.mark), $0.outcome) },
        rule: (SourcePosition(line: rule.rule.line, column: rule.rule.column), rule.result.outcome))
      start = rule.end
    }
    evaluated = EvaluatedRules()
  }

  /// Evaluates an operation again, and explains each evaluated rule.
  ///
  /// - Returns: the rules that are not true, or nil if the operation is allowed.
  /// - Throws: any error that reading through `view` throws.
  func explain(
    _ operation: TreeOperation, of principal: Principal, view: any TreeView
  ) throws -> ExplainedDecision? {
    guard let ruleset = markedRuleset() else { return nil }
    var statements: [ExplainedStatement] = []
    let decision = try ruleset.decide(principal, operation, view: view) {
      rule, path, depth, result, trace in
      guard result != .granted, statements.count < ExplainedDecision.maximumStatements else { return }
      statements.append(ruleset.explain(rule, at: path.prefix(depth), result, trace))
    }
    guard decision.denial != nil else { return nil }
    return ExplainedDecision(
      method: operation.changesData ? "write" : "read",
      path: "/" + (operation.paths.first?.description ?? ""),
      statements: statements)
  }
}

/// The rules that a decision has evaluated, with the values of their expressions.
private struct EvaluatedRules {
  /// Each rule with the end index of its outcomes.
  private(set) var rules: [(rule: RealtimeRule, result: RealtimeRuleResult, end: Int)] = []
  private(set) var outcomes: [(mark: Int32, outcome: RealtimeOutcome)] = []

  mutating func add(
    _ rule: RealtimeRule, _ result: RealtimeRuleResult, _ trace: [(mark: Int32, outcome: RealtimeOutcome)]
  ) {
    outcomes += trace
    rules.append((rule, result, outcomes.count))
  }
}

extension RealtimeRuleset {
  /// Explains one evaluated rule.
  fileprivate func explain(
    _ rule: RealtimeRule, at location: Path, _ result: RealtimeRuleResult,
    _ trace: [(mark: Int32, outcome: RealtimeOutcome)]
  ) -> ExplainedStatement {
    var outcomes: [Int32: RealtimeOutcome] = [:]
    for (mark, outcome) in trace { outcomes[mark] = outcome }
    let terms = outcomes.sorted { marks[Int($0.key)].precedes(marks[Int($1.key)]) }
      .prefix(ExplainedDecision.maximumTerms)
      .map { mark, outcome in
        DenialExplanation.Term(
          position: marks[Int(mark)].position, expression: marks[Int(mark)].text, value: outcome.summary)
      }
    var fault: ExplainedFault?
    if case .failed(let failure) = result {
      let origin = trace.first { if case .failure = $0.outcome { true } else { false } }
      fault = ExplainedFault(
        text: failure.description, position: origin.map { marks[Int($0.mark)].position },
        exhaustedBudget: failure == .budget ? "steps" : nil)
    }
    return ExplainedStatement(
      position: SourcePosition(line: rule.line, column: rule.column), rule: rule.kind.rawValue,
      location: "/\(location)", fault: fault, terms: Array(terms))
  }
}

extension RealtimeMark {
  /// Whether this expression begins first, or contains the other one.
  func precedes(_ other: RealtimeMark) -> Bool {
    (position, other.end) < (other.position, end)
  }
}

extension RealtimeOutcome {
  /// The value in a few words.
  var summary: String {
    switch self {
    case .value(let value): value.summary
    case .failure(let failure): failure.description
    }
  }
}

extension RealtimeValue {
  /// The value in a few words, at most about 80 characters.
  var summary: String {
    switch self {
    case .null: "null"
    case .bool(let value): String(value)
    case .number(let value): RealtimeText.text(of: value)
    case .string(let text): "'\(text.prefix(64))'"
    case .user(let user): "user '\(user.id.prefix(64))'"
    case .claims: "object"
    case .object: "object"
    case .snapshot(let snapshot):
      "\(snapshot.state == .before ? "data" : "newData") at \(snapshot.path.map { "/\($0)".prefix(80) } ?? "no location")"
    }
  }
}
