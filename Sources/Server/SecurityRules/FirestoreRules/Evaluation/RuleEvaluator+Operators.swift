// Evaluates binary operators: comparisons, membership and arithmetic.

import FirestoreModel

extension RuleEvaluator {
  /// Evaluates a binary operator other than `&&` and `||`.
  mutating func binary(
    _ op: Expression.Operator, _ left: Int32, _ right: Int32, _ id: Int32
  ) throws(Failure) -> RuleValue {
    let first = try evaluate(left)
    let second = try evaluate(right)
    do {
      switch op {
      case .equal, .notEqual: return .bool(try equality(op, first, second))
      case .less, .lessOrEqual, .greater, .greaterOrEqual: return .bool(try order(op, first, second))
      case .in: return .bool(try membership(first, second))
      case .plus, .minus, .times, .divided, .modulo:
        if case .string(let text) = second, op == .plus { try budget.spend(work: text.byteCount) }
        if case .string(let text) = first, op == .plus { try budget.spend(work: text.byteCount) }
        return try RuleArithmetic.apply(op, first, second)
      case .and, .or: preconditionFailure("invariant: && and || are nodes of their own")
      }
    } catch {
      throw Failure(fault: error, node: id)
    }
  }

  private mutating func equality(
    _ op: Expression.Operator, _ first: RuleValue, _ second: RuleValue
  ) throws(RuleFault) -> Bool {
    if let decided = try decideByConstraint(op, first, second) { return decided }
    if case .unknownPath = first { throw .unboundWildcard("of the path") }
    if case .unknownPath = second { throw .unboundWildcard("of the path") }
    // A comparison of maps or sets hashes one operand, even if the other one is small.
    try budget.spend(reading: first)
    try budget.spend(reading: second)
    return RuleEquality.operands.equal(first, second) == (op == .equal)
  }

  private mutating func order(
    _ op: Expression.Operator, _ first: RuleValue, _ second: RuleValue
  ) throws(RuleFault) -> Bool {
    if let decided = try decideByConstraint(op, first, second) { return decided }
    try budget.spend(reading: first, times: RuleCost.orderedByte)
    if let order = RuleOrder.compare(first, second) { return order.satisfies(op) }
    // NaN is a number without an order.
    if first.isNumber, second.isNumber { return false }
    throw .unsupported("\(first.typeName) \(op.rawValue) \(second.typeName)")
  }

  /// Decides a comparison with a constraint, which is the knowledge that a query's filters give about a field. Returns
  /// nil if neither value is a constraint.
  private mutating func decideByConstraint(
    _ op: Expression.Operator, _ first: RuleValue, _ second: RuleValue
  ) throws(RuleFault) -> Bool? {
    switch (first, second) {
    case (.constraint, .constraint): throw .undecided
    case (.constraint(let constraint), let value):
      try spend(comparing: value, with: constraint)
      guard constraint.implies(op, value) else { throw .undecided }
      return true
    case (let value, .constraint(let constraint)):
      try spend(comparing: value, with: constraint)
      guard constraint.implies(op.mirrored, value) else { throw .undecided }
      return true
    default: return nil
    }
  }

  private mutating func spend(comparing value: RuleValue, with constraint: RuleConstraint) throws(RuleFault) {
    let count = constraint.comparators.count
    guard count > 0 else { return }
    try budget.spend(work: count * RuleCost.item)
    try budget.spend(reading: value, times: count * RuleCost.orderedByte)
  }

  private mutating func membership(_ element: RuleValue, _ container: RuleValue) throws(RuleFault) -> Bool {
    switch container {
    case .list(let list):
      if case .constraint = element { return false }
      if case .unknownPath = element { throw .unboundWildcard("of the path") }
      try budget.spend(reading: container)
      switch element {
      // A comparison of a list, map or set with an item may read the element completely, once for each item. An element
      // of another type is read at most up to the item's length, which is already spent.
      case .list, .map, .set: if list.count > 0 { try budget.spend(reading: element, times: list.count) }
      default: break
      }
      for index in 0..<list.count where RuleEquality.strict.equal(list[index], element) { return true }
      return false
    case .set(let set):
      if case .constraint = element { throw .undecided }
      try budget.spend(hashing: element)
      return set.contains(element)
    case .map(let map):
      guard case .string(let key) = element else { throw .unsupported("\(element.typeName) in map") }
      try budget.spend(finding: key, in: map)
      return map[key] != nil
    case .constraint(let constraint):
      try spend(comparing: element, with: constraint)
      guard constraint.contains(element) else { throw .undecided }
      return true
    case .null: throw .nullValue
    default: throw .functionNotFound("in")
    }
  }
}

extension Expression.Operator {
  /// The operator for exchanged operands.
  var mirrored: Expression.Operator {
    switch self {
    case .less: .greater
    case .lessOrEqual: .greaterOrEqual
    case .greater: .less
    case .greaterOrEqual: .lessOrEqual
    default: self
    }
  }
}

/// Arithmetic of numbers, strings, timestamps and durations.
enum RuleArithmetic {
  /// The result of `+ - * / %`.
  static func apply(
    _ op: Expression.Operator, _ left: RuleValue, _ right: RuleValue
  ) throws(RuleFault) -> RuleValue {
    switch (left, right) {
    case (.int(let a), .int(let b)): return .int(try integers(op, a, b))
    case (.float(let a), .float(let b)): return .float(floats(op, a, b))
    case (.int(let a), .float(let b)): return .float(floats(op, Double(a), b))
    case (.float(let a), .int(let b)): return .float(floats(op, a, Double(b)))
    case (.string(let a), .string(let b)) where op == .plus: return .string(a + b)
    case (.duration(let a), .duration(let b)) where op == .plus: return .duration(try inRange(a.adding(b)))
    case (.duration(let a), .duration(let b)) where op == .minus:
      return .duration(try inRange(a.adding(b.negated)))
    case (.timestamp(let a), .duration(let b)) where op == .plus,
      (.duration(let b), .timestamp(let a)) where op == .plus:
      return .timestamp(try inRange(a.adding(b)))
    case (.timestamp(let a), .duration(let b)) where op == .minus:
      return .timestamp(try inRange(a.adding(b.negated)))
    case (.timestamp(let a), .timestamp(let b)) where op == .minus: return .duration(try inRange(a.since(b)))
    default: throw .unsupported("\(left.typeName) \(op.rawValue) \(right.typeName)")
    }
  }

  private static func inRange<T>(_ value: T?) throws(RuleFault) -> T {
    guard let value else { throw .outOfRange }
    return value
  }

  private static func integers(_ op: Expression.Operator, _ a: Int64, _ b: Int64) throws(RuleFault) -> Int64 {
    if op == .divided || op == .modulo, b == 0 { throw .divideByZero }
    let (result, overflow) =
      switch op {
      case .plus: a.addingReportingOverflow(b)
      case .minus: a.subtractingReportingOverflow(b)
      case .times: a.multipliedReportingOverflow(by: b)
      case .divided: a.dividedReportingOverflow(by: b)
      // The remainder of the least integer by −1 is 0, although the quotient overflows.
      default: (b == -1 ? 0 : a % b, false)
      }
    guard !overflow else { throw .outOfRange }
    return result
  }

  private static func floats(_ op: Expression.Operator, _ a: Double, _ b: Double) -> Double {
    switch op {
    case .plus: a + b
    case .minus: a - b
    case .times: a * b
    case .divided: a / b
    default: a.truncatingRemainder(dividingBy: b)
    }
  }
}

extension RuleValue {
  /// The value of `-self`.
  func negated() throws(RuleFault) -> RuleValue {
    switch self {
    case .int(let value):
      guard value != .min else { throw .outOfRange }
      return .int(-value)
    case .float(let value): return .float(-value)
    case .duration(let value): return .duration(value.negated)
    case .null: throw .nullValue
    default: throw .unsupported("-\(typeName)")
    }
  }
}
