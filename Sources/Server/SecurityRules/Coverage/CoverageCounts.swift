// Counts the values that the expressions of one ruleset had. Only an emulator counts, while it evaluates the rules for
// a request.
//
// Counting is cheap once an expression has had its usual values: a boolean increments a counter, and another value is
// compared with the values that were counted before. Only a new value is written as JSON.
//
// Invariant: the memory is bounded, because a counter keeps at most `maximumDistinct` distinct values of an expression,
// each of bounded size. The occurrences of all other values share one count.

import JSON
import Locking

/// A value of an expression, or why it has none.
protocol CoveredOutcome: Sendable {
  /// The JSON form in coverage reports.
  var coverageValue: JSONValue { get }
  /// The boolean; nil for other outcomes.
  var boolean: Bool? { get }
  /// Whether a comparison takes long, as for a string or a map. If the list of distinct values is full, a costly
  /// outcome is counted as another value without a comparison.
  var isCostly: Bool { get }
  /// An outcome of the same form that takes little memory; nil if there is none.
  var compactForm: Self? { get }
  /// Whether another outcome has the same form in reports. False if a comparison of the outcomes cannot show it.
  func hasSameForm(as other: Self) -> Bool
}

/// The values of one expression.
struct CoveredValues: Sendable {
  /// The distinct values with the number of their occurrences, in the order of first occurrence.
  var distinct: [(value: JSONValue, count: Int)] = []
  /// The number of evaluations with a value that is not in `distinct`.
  var others = 0

  /// The number of evaluations.
  var total: Int { distinct.reduce(others) { $0 + $1.count } }
}

/// The values of the expressions of one ruleset.
final class CoverageCounts<Outcome: CoveredOutcome>: Sendable {
  /// The values of one expression, with the outcomes that they come from.
  private struct Counter {
    var values = CoveredValues()
    /// The outcome of each distinct value; nil for an outcome without a compact form.
    var outcomes: [Outcome?] = []
    /// The indices of `true` and `false` among the distinct values; -1 for none.
    var booleanIndices: (forFalse: Int, forTrue: Int) = (-1, -1)

    mutating func add(_ outcome: Outcome) {
      let boolean = outcome.boolean
      if let boolean {
        let index = boolean ? booleanIndices.forTrue : booleanIndices.forFalse
        if index >= 0 {
          values.distinct[index].count += 1
          return
        }
      }
      let isFull = values.distinct.count == CoverageCounts.maximumDistinct
      if isFull, outcome.isCostly {
        values.others += 1
        return
      }
      for index in outcomes.indices where outcomes[index]?.hasSameForm(as: outcome) == true {
        values.distinct[index].count += 1
        return
      }
      let form = outcome.coverageValue
      if let index = values.distinct.firstIndex(where: { $0.value == form }) {
        values.distinct[index].count += 1
      } else if isFull {
        values.others += 1
      } else {
        if let boolean {
          if boolean {
            booleanIndices.forTrue = outcomes.count
          } else {
            booleanIndices.forFalse = outcomes.count
          }
        }
        values.distinct.append((form, 1))
        outcomes.append(outcome.compactForm)
        precondition(
          outcomes.count == values.distinct.count && outcomes.count <= CoverageCounts.maximumDistinct,
          "invariant: an expression keeps a few distinct values")
      }
    }
  }

  private struct State {
    /// The values of expressions, by the index of the expression.
    var expressions: [Counter] = []
    /// The values of rules, by the position of the rule.
    var rules: [SourcePosition: Counter] = [:]
  }

  /// The maximum number of distinct values that are kept for an expression.
  private static var maximumDistinct: Int { 10 }

  private let state = Guarded(State())

  /// Counts one evaluation.
  /// - Parameters:
  ///   - outcomes: the outcomes of the evaluated expressions by their indices.
  ///   - rule: the position of the evaluated rule and its outcome; nil to count only expressions.
  func count(
    _ outcomes: some Sequence<(Int, Outcome)>, rule: (position: SourcePosition, outcome: Outcome)? = nil
  ) {
    state.withLock { state in
      for (index, outcome) in outcomes {
        while state.expressions.count <= index { state.expressions.append(Counter()) }
        state.expressions[index].add(outcome)
      }
      if let rule { state.rules[rule.position, default: Counter()].add(rule.outcome) }
    }
  }

  /// The values of an expression; none if it was never evaluated.
  func values(of expression: Int) -> CoveredValues {
    state.withLock { state in
      state.expressions.indices.contains(expression) ? state.expressions[expression].values : CoveredValues()
    }
  }

  /// The values of a rule; none if it was never evaluated.
  func values(ofRule position: SourcePosition) -> CoveredValues {
    state.withLock { $0.rules[position]?.values ?? CoveredValues() }
  }
}
