// The limits of a decision. Without them, the author of a rule, or a client whose values the rule reads, could block
// the commit sequencer for an unbounded time.
// Invariant: work is charged before it is done. The rules of one document have one budget. The alternatives (disjuncts)
// of a query's filter share one limit of work. A request with many documents is decided in parts, each with at most the
// work of one document.
// most.

import FirestoreModel

/// The remaining work of one evaluation.
struct RuleBudget: Sendable {
  /// Maximum expressions that the rules of one document, or of one alternative of a query, may evaluate.
  static let maximumExpressions = 1000
  /// Maximum nesting of evaluations. Functions multiply the nesting of their expressions, and each level
  /// takes stack: a debug build overflows 8 MB within 950 levels.
  static let maximumDepth = 250
  /// Maximum units of work of the rules of one document, or of a query. A unit takes about one nanosecond in a release
  /// build, so the evaluation ends within about 20 ms.
  static let maximumWork = 20_000_000

  /// The expressions that remain.
  private(set) var expressions = RuleBudget.maximumExpressions
  /// The units of work that remain.
  private(set) var work: Int

  /// The budget of a document or of an alternative of a query.
  ///
  /// - Parameter work: the units of work that the decision may still spend.
  init(work: Int = RuleBudget.maximumWork) { self.work = work }

  /// Spends expressions.
  mutating func spend(expressions count: Int) throws(RuleFault) {
    guard expressions >= count else {
      expressions = 0
      throw .expressionLimit
    }
    expressions -= count
    try spend(work: count * RuleCost.expression)
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
  ///
  /// - Parameter times: How often the value is read.
  mutating func spend(reading value: RuleValue, times: Int = 1) throws(RuleFault) {
    switch value {
    case .list, .map, .set, .mapDiff, .path, .vector:
      try spend(work: times * RuleWeight.of(value, limit: work / times + 1))
    case .string(let text): try spend(work: times * text.byteCount)
    case .bytes(let bytes): try spend(work: times * bytes.count)
    default: break
    }
  }

  /// Spends the work of hashing a value's parts for the index of a list, map or set.
  mutating func spend(hashing value: RuleValue) throws(RuleFault) {
    try spend(reading: value, times: RuleCost.hashingFactor)
  }

  /// Spends the work of finding a key in a map. A map that an expression made is searched linearly.
  mutating func spend(finding key: RuleText, in map: RuleMap) throws(RuleFault) {
    guard case .built(let entries) = map else { return try spend(work: RuleCost.item + key.byteCount) }
    try spend(work: entries.count * (1 + key.byteCount / 8))
  }

  /// Runs a regular expression, which may spend the remaining work.
  mutating func runPattern<T>(
    _ body: (inout PatternBudget) throws(PatternBudget.Exhausted) -> T
  ) throws(RuleFault) -> T {
    var budget = PatternBudget(steps: work / RuleCost.patternStep)
    let steps = budget.steps
    do {
      let result = try body(&budget)
      work -= (steps - budget.steps) * RuleCost.patternStep
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

/// The costs of operations, in units of work.
enum RuleCost {
  /// The base cost of one expression, without the bytes and items that it reads.
  static let expression = 30
  /// The comparison of a path with the pattern of a block.
  static let block = 30
  /// Visiting an item of a list, map, set or path.
  static let item = 30
  /// Adding an item to a set or dictionary, as a multiple of visiting it.
  static let hashingFactor = 3
  /// A step of a regular expression.
  static let patternStep = 12
  /// Creating the text of one match of a regular expression.
  static let match = 200
  /// Converting a byte of text: to the other case, to code points, or to a hash.
  static let convertedByte = 4
  /// Encoding a byte in Base64.
  static let base64Byte = 20
  /// Parsing a byte of text as a number, a time or a path.
  static let parsedByte = 60
  /// Comparing a byte of text in the order of UTF-16.
  static let orderedByte = 8
}

/// Measures values by the work of reading them.
enum RuleWeight {
  /// The weight of a value; any number above `limit` if the weight exceeds `limit`. A shared part counts each time it
  /// occurs.
  static func of(_ value: RuleValue, limit: Int) -> Int {
    var weight = 0
    add(value, &weight, limit)
    return weight
  }

  private static func add(_ value: RuleValue, _ weight: inout Int, _ limit: Int) {
    guard weight <= limit else { return }
    weight += RuleCost.item
    switch value {
    case .string(let text): weight += text.byteCount
    case .bytes(let bytes): weight += bytes.count
    case .path(let path):
      weight += RuleCost.item * path.segments.count
      for case .text(let text) in path.segments { weight += text.byteCount }
    case .list(.stored(let values)):
      for value in values {
        guard weight <= limit else { return }
        add(value, &weight, limit)
      }
    case .list(let list):
      for index in 0..<list.count {
        guard weight <= limit else { return }
        add(list[index], &weight, limit)
      }
    case .map(.stored(let fields)):
      for entry in fields.entries {
        guard weight <= limit else { return }
        weight += RuleCost.item + entry.key.utf8.count
        add(entry.value, &weight, limit)
      }
    case .map(let map):
      for entry in map.entries {
        guard weight <= limit else { return }
        weight += RuleCost.item + entry.key.byteCount
        add(entry.value, &weight, limit)
      }
    case .set(let set): for member in set.members { add(member.value, &weight, limit) }
    case .mapDiff(let diff):
      for keys in [diff.added, diff.removed, diff.changed, diff.unchanged] {
        for key in keys { weight += RuleCost.item + key.byteCount }
      }
    case .vector(let numbers): weight += numbers.count
    default: break
    }
  }

  /// Adds the weight of a stored value, which equals the weight of the same value in rules.
  private static func add(_ value: Value, _ weight: inout Int, _ limit: Int) {
    switch value {
    case .null, .boolean, .integer, .double, .timestamp, .geoPoint: weight += RuleCost.item
    case .string(let text): weight += RuleCost.item + text.utf8.count
    default: add(RuleValue(value), &weight, limit)
    }
  }
}
