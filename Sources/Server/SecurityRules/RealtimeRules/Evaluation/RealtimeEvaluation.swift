// Evaluates checked expressions of the Realtime Database for one operation.
//
// Evaluation reads single locations of the tree and never loads a subtree. It records the read locations, and whether
// it read the time. The decision about a listen is repeated when one of these locations, or the time, changes.
//
// Invariant: a failure ends the complete rule. `&&`, `||` and `?:` evaluate from left to right and stop early, so an
// operand that they skip causes no failure.

import Access
import RealtimeModel

/// The evaluation of rules for one operation.
struct RealtimeEvaluation {
  let view: any TreeView
  private let auth: RealtimeValue
  private let query: QuerySpec
  private var budget: PatternBudget
  /// Whether a spent budget interrupts the decision, which the caller then repeats; otherwise the rule fails.
  private let isInterruptible: Bool
  /// The steps that were granted to the evaluations so far.
  private var grantedSteps: Int

  /// A path that begins with the location of the rule, and the depth of that location.
  private var path = Path.root
  private var depth = 0
  /// The depths of the keys that wildcards matched, from the root down to the rule.
  private var wildcardDepths: [Int] = []

  /// The location of the rule.
  private var location: Path { path.prefix(depth) }

  /// The content that was read last. Several expressions of a rule often read the same location.
  private var lastRead: (path: Path, state: TreeState, content: Node.Content)?

  /// The values of marked expressions in the current rule, in the order of evaluation.
  private(set) var trace: [(mark: Int32, outcome: RealtimeOutcome)] = []

  /// The limit of `trace`, so that an expression of many steps cannot fill the memory.
  private static let maximumTraceCount = 2_000

  /// The locations that the current rule read; none unless they are recorded.
  private(set) var readPaths: [Path] = []
  private let recordsReads: Bool
  /// Whether the current rule read the time.
  private(set) var hasReadTime = false

  /// - Parameter maximumSteps: the budget of the operation.
  init(
    _ principal: Principal, view: any TreeView, query: QuerySpec, recordsReads: Bool, maximumSteps: Int
  ) {
    let work = view.work?.steps ?? .max
    isInterruptible = work < maximumSteps
    grantedSteps = min(work, maximumSteps)
    budget = PatternBudget(steps: grantedSteps)
    self.recordsReads = recordsReads
    auth = RealtimeValue(auth: principal)
    self.view = view
    self.query = query
  }

  /// The steps that evaluations have spent so far.
  var spentSteps: Int { grantedSteps - budget.steps }

  /// Adds the allowance of one written location to the budget of the operation.
  mutating func addLocationAllowance() {
    guard !isInterruptible else { return }
    grantedSteps += RealtimeBudget.stepsPerWrittenLocation
    budget.add(RealtimeBudget.stepsPerWrittenLocation)
  }

  /// Stores the content of a location that rules will read next.
  mutating func cacheContent(_ content: Node.Content, at path: Path, _ state: TreeState) {
    lastRead = (path, state, content)
  }

  /// Reads the content of a location.
  /// - Throws: ``RealtimeFailure/budget``; ``Access/DecisionInterrupted``; any error that reading through `view`
  ///   throws.
  mutating func content(at path: Path, _ state: TreeState) throws -> Node.Content {
    try spend(RealtimeBudget.stepsPerRead)
    recordRead(of: path)
    if let lastRead, lastRead.state == state, lastRead.path == path { return lastRead.content }
    let content = try view.content(at: path, state)
    lastRead = (path, state, content)
    return content
  }

  /// Records that the current rule read a location.
  mutating func recordRead(of path: Path) { if recordsReads { readPaths.append(path) } }

  /// Evaluates a rule at the location that the first `depth` keys of a path name.
  ///
  /// - Throws: ``Access/DecisionInterrupted``; any error that reading through `view` throws.
  mutating func evaluate(
    _ rule: RealtimeRule, at path: Path, depth: Int
  ) throws -> RealtimeRuleResult {
    if !trace.isEmpty { trace.removeAll(keepingCapacity: true) }
    guard case .expression(let term) = rule.condition else {
      readPaths.removeAll()
      hasReadTime = false
      return rule.condition.isTrue ? .granted : .denied
    }
    self.path = path
    self.depth = depth
    wildcardDepths = rule.wildcardDepths
    if !rule.marks.isEmpty { trace.reserveCapacity(min(rule.marks.count, Self.maximumTraceCount)) }
    readPaths.removeAll()
    hasReadTime = false
    do {
      guard case .bool(let value) = try evaluate(term) else {
        preconditionFailure("invariant: a checked rule is of type boolean")
      }
      return value ? .granted : .denied
    } catch let failure as RealtimeFailure {
      return .failed(failure)
    }
  }

  // MARK: Terms

  mutating func spend(_ steps: Int = 1) throws {
    do throws(PatternBudget.Exhausted) { try budget.spend(steps) } catch { throw exhausted }
  }

  /// The error of a spent budget.
  private var exhausted: any Error { isInterruptible ? DecisionInterrupted() : RealtimeFailure.budget }

  mutating func evaluate(_ term: RealtimeTerm) throws -> RealtimeValue {
    try spend()
    switch term {
    case .constant(let value): return value
    case .auth: return auth
    case .now:
      hasReadTime = true
      return .number(Double(view.now))
    case .snapshot(.root): return .snapshot(RealtimeSnapshot(path: .root, state: .before))
    case .knownSnapshot(let snapshot, let steps, let recorded):
      try spend(steps - 1)
      for (mark, value) in recorded where trace.count < Self.maximumTraceCount {
        trace.append((mark, .value(.snapshot(value))))
      }
      return .snapshot(snapshot)
    case .snapshot(.data): return .snapshot(RealtimeSnapshot(path: location, state: .before))
    case .snapshot(.newData): return .snapshot(RealtimeSnapshot(path: location, state: .after))
    case .capture(let index):
      precondition(index < wildcardDepths.count, "invariant: the wildcards of a checked rule lie above it")
      return .string(path.keys[wildcardDepths[index]].text)
    case .query(let field): return query.value(of: field)
    case .property(let base, let name): return try evaluate(base).property(name)
    case .element(let base, let key):
      let value = try evaluate(base)
      return value.element(try evaluate(key))
    case .not(let operand): return .bool(!(try boolean(operand)))
    case .negative(let operand): return .number(-(try number(try evaluate(operand), "-")))
    case .all(let operands):
      for operand in operands where !(try boolean(operand)) { return .bool(false) }
      return .bool(true)
    case .any(let operands):
      for operand in operands where try boolean(operand) { return .bool(true) }
      return .bool(false)
    case .conditional(let condition, let first, let second):
      return try boolean(condition) ? evaluate(first) : evaluate(second)
    case .chain(let first, let steps):
      var value = try evaluate(first)
      for step in steps { value = try apply(step.operation, value, try evaluate(step.operand)) }
      return value
    case .snapshotCall(let method, let receiver, let arguments):
      return try call(method, try snapshot(receiver), arguments)
    case .textCall(let method, let receiver, let arguments):
      let text = try text(try evaluate(receiver), method.rawValue)
      var texts = ("", "")
      if arguments.count > 0 { texts.0 = try self.text(try evaluate(arguments[0]), method.rawValue) }
      if arguments.count > 1 { texts.1 = try self.text(try evaluate(arguments[1]), method.rawValue) }
      return try call(method, text, texts.0, texts.1)
    case .matches(let receiver, let pattern):
      let text = try text(try evaluate(receiver), "matches")
      do {
        return .bool(try pattern.matches(in: text.utf16.lazy.map(UInt32.init), budget: &budget))
      } catch { throw exhausted }
    case .marked(let mark, let term):
      // A mark costs no step, so that an explanation, which evaluates marks, spends its budget exactly as the
      // decision did.
      budget.add(1)
      return try evaluate(term, recordedAs: mark)
    }
  }

  private mutating func evaluate(_ term: RealtimeTerm, recordedAs mark: Int32) throws -> RealtimeValue {
    do {
      let value = try evaluate(term)
      if trace.count < Self.maximumTraceCount { trace.append((mark, .value(value))) }
      return value
    } catch let failure as RealtimeFailure {
      if trace.count < Self.maximumTraceCount { trace.append((mark, .failure(failure))) }
      throw failure
    }
  }

  // MARK: Types

  private mutating func boolean(_ term: RealtimeTerm) throws -> Bool {
    guard case .bool(let value) = try evaluate(term) else {
      preconditionFailure("invariant: a checked operand is of type boolean")
    }
    return value
  }

  private mutating func snapshot(_ term: RealtimeTerm) throws -> RealtimeSnapshot {
    guard case .snapshot(let snapshot) = try evaluate(term) else {
      preconditionFailure("invariant: a checked receiver is a snapshot")
    }
    return snapshot
  }

  private func number(_ value: RealtimeValue, _ name: String) throws(RealtimeFailure) -> Double {
    guard case .number(let number) = value else {
      throw .type("\(name) takes numbers, not \(value.typeName)")
    }
    return number
  }

  func text(_ value: RealtimeValue, _ name: String) throws(RealtimeFailure) -> String {
    guard case .string(let text) = value else { throw .type("\(name) takes strings, not \(value.typeName)") }
    return text
  }

  // MARK: Operators

  private mutating func apply(
    _ operation: RealtimeOperator, _ left: RealtimeValue, _ right: RealtimeValue
  ) throws -> RealtimeValue {
    if case .string(let text) = left { try spend(text.utf8.count / RealtimeBudget.bytesPerStep) }
    switch operation {
    case .equal: return .bool(try left.equals(right))
    case .unequal: return .bool(!(try left.equals(right)))
    case .less, .lessOrEqual, .greater, .greaterOrEqual: return .bool(try compare(operation, left, right))
    case .add:
      if case .number(let x) = left, case .number(let y) = right { return .number(x + y) }
      let (x, y) = (try operandText(left), try operandText(right))
      let length = x.utf8.count + y.utf8.count
      guard length <= RealtimeBudget.maximumTextBytes else { throw RealtimeFailure.budget }
      try spend(length / RealtimeBudget.bytesPerStep)
      return .string(x + y)
    case .subtract, .multiply, .divide, .remainder:
      let (x, y) = (try number(left, operation.rawValue), try number(right, operation.rawValue))
      switch operation {
      case .subtract: return .number(x - y)
      case .multiply: return .number(x * y)
      // Division by zero gives NaN, not infinity as in JavaScript.
      case .divide: return .number(y == 0 ? .nan : x / y)
      default: return .number(x.truncatingRemainder(dividingBy: y))
      }
    }
  }

  /// An operand of `+` as text.
  private func operandText(_ value: RealtimeValue) throws(RealtimeFailure) -> String {
    switch value {
    case .string(let text): return text
    case .number(let number): return RealtimeText.text(of: number)
    default: throw .type("+ takes numbers and strings, not \(value.typeName)")
    }
  }

  private func compare(
    _ operation: RealtimeOperator, _ left: RealtimeValue, _ right: RealtimeValue
  ) throws(RealtimeFailure) -> Bool {
    switch (left, right) {
    case (.number(let x), .number(let y)):
      switch operation {
      case .less: return x < y
      case .lessOrEqual: return x <= y
      case .greater: return x > y
      default: return x >= y
      }
    case (.string(let x), .string(let y)):
      let order = TextOrder.compare(x, y)
      switch operation {
      case .less: return order < 0
      case .lessOrEqual: return order <= 0
      case .greater: return order > 0
      default: return order >= 0
      }
    default:
      throw .type(
        "\(operation.rawValue) takes two numbers or two strings, not \(left.typeName) and \(right.typeName)")
    }
  }

  // MARK: Texts

  private mutating func call(
    _ method: RealtimeTextMethod, _ text: String, _ part: String, _ replacement: String
  ) throws -> RealtimeValue {
    try spend((text.utf8.count + part.utf8.count + replacement.utf8.count) / RealtimeBudget.bytesPerStep)
    switch method {
    case .contains: return .bool(RealtimeText.contains(text, part))
    case .beginsWith: return .bool(RealtimeText.begins(text, with: part))
    case .endsWith: return .bool(RealtimeText.ends(text, with: part))
    case .replace:
      let offsets = RealtimeText.offsets(of: part, in: text)
      let growth = offsets.count.multipliedReportingOverflow(by: replacement.utf8.count)
      guard !growth.overflow, text.utf8.count + growth.partialValue <= RealtimeBudget.maximumTextBytes else {
        throw RealtimeFailure.budget
      }
      try spend((text.utf8.count + growth.partialValue) / RealtimeBudget.bytesPerStep)
      return .string(RealtimeText.replacing(part, in: text, at: offsets, with: replacement))
    case .toLowerCase: return .string(RealtimeText.lowercased(text))
    case .toUpperCase: return .string(text.uppercased())
    case .matches: preconditionFailure("invariant: matches() is a term of its own")
    }
  }
}

/// The value of an expression, or why it has none.
enum RealtimeOutcome: Sendable {
  case value(RealtimeValue)
  case failure(RealtimeFailure)
}

/// The result of a rule.
enum RealtimeRuleResult: Hashable, Sendable {
  case granted
  case denied
  case failed(RealtimeFailure)
}
