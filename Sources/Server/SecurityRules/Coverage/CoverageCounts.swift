// Counts the values that the expressions of one ruleset had. Only emulators count.
//
// Invariant: the memory is bounded: an expression keeps a few distinct values, each of bounded size. Further values are
// counted without being distinguished.

import JSON
import Locking

/// The values of the expressions of one ruleset.
final class CoverageCounts: Sendable {
  /// The values of one expression.
  struct Values: Sendable {
    /// The distinct values with the number of their occurrences, in the order of first occurrence.
    fileprivate(set) var distinct: [(value: JSONValue, count: Int)] = []
    /// The occurrences of other values.
    fileprivate(set) var others = 0

    /// The number of evaluations.
    var total: Int { distinct.reduce(others) { $0 + $1.count } }

    fileprivate mutating func add(_ value: JSONValue) {
      if let index = distinct.firstIndex(where: { $0.value == value }) {
        distinct[index].count += 1
      } else if distinct.count < CoverageCounts.maximumDistinct {
        distinct.append((value, 1))
      } else {
        others += 1
      }
    }
  }

  private struct State {
    var expressions: [Int: Values] = [:]
    var rules: [SourcePosition: Values] = [:]
  }

  fileprivate static let maximumDistinct = 10

  private let state = Guarded(State())

  /// Counts one evaluation.
  /// - Parameters:
  ///   - values: the values of the evaluated expressions by their indices.
  ///   - rule: the place of the evaluated rule; nil if expressions name it.
  ///   - result: the value of the rule.
  func count(
    _ values: some Sequence<(Int, JSONValue)>, rule: SourcePosition? = nil, result: JSONValue = .null
  ) {
    state.withLock { state in
      for (index, value) in values { state.expressions[index, default: Values()].add(value) }
      if let rule { state.rules[rule, default: Values()].add(result) }
    }
  }

  /// The values of an expression; none if it was never evaluated.
  func values(of expression: Int) -> Values { state.withLock { $0.expressions[expression] ?? Values() } }

  /// The values of a rule; none if it was never evaluated.
  func values(ofRule position: SourcePosition) -> Values {
    state.withLock { $0.rules[position] ?? Values() }
  }
}
