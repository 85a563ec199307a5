// The limits of the evaluation of one document, or of one way of a query. Without them a rule could hold the
// commit sequencer for as long as its author likes.

/// The remaining work of one evaluation.
struct RuleBudget: Sendable {
  /// Expressions that one evaluation may take.
  static let maximumExpressions = 1000
  /// Units of work: bytes compared, copied or hashed, items visited, steps of a regular expression. 16 million units
  /// take about 50 ms.
  static let maximumWork = 16_000_000

  /// The expressions that remain.
  private(set) var expressions = RuleBudget.maximumExpressions
  /// The units of work that remain.
  private(set) var work = RuleBudget.maximumWork

  /// Spends expressions.
  mutating func spend(expressions count: Int) throws(RuleFault) {
    guard expressions >= count else {
      expressions = 0
      throw .expressionLimit
    }
    expressions -= count
  }

  /// Spends units of work.
  mutating func spend(work count: Int) throws(RuleFault) {
    guard work >= count else {
      work = 0
      throw .workLimit
    }
    work -= count
  }

  /// Spends the work of reading a value completely.
  mutating func spend(reading value: RuleValue) throws(RuleFault) {
    switch value {
    case .list, .map, .set, .mapDiff: try spend(work: RuleWeight.of(value, limit: work + 1))
    case .string(let text): try spend(work: text.byteCount)
    case .bytes(let bytes): try spend(work: bytes.count)
    default: break
    }
  }

  /// Runs a match of a regular expression on the remaining work.
  mutating func match<T>(
    _ body: (inout PatternBudget) throws(PatternBudget.Exhausted) -> T
  ) throws(RuleFault) -> T {
    var budget = PatternBudget(steps: work)
    do {
      let result = try body(&budget)
      work = budget.steps
      return result
    } catch {
      work = 0
      throw .workLimit
    }
  }

  /// Ends the evaluation: every further expression fails.
  mutating func exhaust() {
    expressions = 0
    work = 0
  }
}

/// Measures values by the work of reading them.
enum RuleWeight {
  /// The weight of a value; any number above `limit` if it exceeds that. Shared parts count as often as they occur.
  static func of(_ value: RuleValue, limit: Int) -> Int {
    var weight = 1
    add(value, &weight, limit)
    return weight
  }

  private static func add(_ value: RuleValue, _ weight: inout Int, _ limit: Int) {
    guard weight <= limit else { return }
    switch value {
    case .string(let text): weight += 1 + text.byteCount
    case .bytes(let bytes): weight += 1 + bytes.count
    case .list(let list):
      weight += 1
      for index in 0..<list.count {
        guard weight <= limit else { return }
        add(list[index], &weight, limit)
      }
    case .map(let map):
      weight += 1
      for entry in map.entries {
        guard weight <= limit else { return }
        weight += entry.key.byteCount
        add(entry.value, &weight, limit)
      }
    case .set(let set): for member in set.members { add(member.value, &weight, limit) }
    case .mapDiff(let diff): weight += diff.added.count + diff.removed.count + diff.changed.count
    case .vector(let numbers): weight += numbers.count
    default: weight += 1
    }
  }
}
