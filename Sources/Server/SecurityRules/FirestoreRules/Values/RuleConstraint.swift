// A constraint: the knowledge that a query's filters give about a field of the documents that it may return.
//
// A comparison with a constraint is true if one of the filters' comparisons implies it; otherwise it has no value. It
// is never false, so that `!` cannot convert missing knowledge to permission.

/// The knowledge that the filters of a query give about one field.
package struct RuleConstraint: Sendable {
  /// A comparison that every document of the query satisfies.
  enum Comparator: Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contains
  }

  /// The comparisons, all of which every document satisfies. The constraint implies a comparison if one of these
  /// implies it.
  var comparators: [(Comparator, RuleValue)]
  /// Whether the constraint is the value of a wildcard that the query does not determine, not of a field.
  private(set) var isUnbound = false

  init(_ comparators: [(Comparator, RuleValue)]) { self.comparators = comparators }

  /// A wildcard whose value the query does not determine.
  static let unbound: RuleConstraint = {
    var constraint = RuleConstraint([])
    constraint.isUnbound = true
    return constraint
  }()

  /// Whether a comparison of the field with a value holds for every document of the query.
  func implies(_ op: Expression.Operator, _ value: RuleValue) -> Bool {
    if op == .notEqual, case .null = value { return true }
    return comparators.contains { Self.implies($0.0, $0.1, op, value) }
  }

  /// Whether every document of the query has an array with an element equal to the value.
  func contains(_ value: RuleValue) -> Bool {
    comparators.contains { comparator, element in
      comparator == .contains && RuleEquality.strict.equal(element, value)
    }
  }

  private static func implies(
    _ comparator: Comparator, _ bound: RuleValue, _ op: Expression.Operator, _ value: RuleValue
  ) -> Bool {
    if case .float = bound, case .int = value {
      // A float in the filter implies nothing about an integer, with one exception: a field that equals the float
      // differs from the integer.
      return comparator == .equal && op == .notEqual
    }
    // A field that is NaN differs from every number, and is neither less nor greater.
    if case .float(let a) = bound, a.isNaN, value.isNumber { return comparator == .equal && op == .notEqual }
    if case .float(let b) = value, b.isNaN { return op == .notEqual && bound.isNumber }
    guard comparator != .contains else { return false }
    guard let order = order(bound, value) else {
      let isEqual = RuleEquality.operands.equal(bound, value)
      switch (comparator, op) {
      case (.equal, .equal), (.notEqual, .notEqual): return isEqual
      case (.equal, .notEqual): return bound.typeName == value.typeName && !isEqual
      default: return false
      }
    }
    switch comparator {
    case .equal: return order.satisfies(op)
    case .notEqual: return op == .notEqual && order == .same
    case .greater:
      return [.greater, .greaterOrEqual, .notEqual].contains(op) && order != .ascending
    case .greaterOrEqual:
      return (op == .greaterOrEqual && order != .ascending)
        || ([.greater, .notEqual].contains(op) && order == .descending)
    case .less: return [.less, .lessOrEqual, .notEqual].contains(op) && order != .descending
    case .lessOrEqual:
      return (op == .lessOrEqual && order != .descending)
        || ([.less, .notEqual].contains(op) && order == .ascending)
    case .contains: return false
    }
  }

  private static func order(_ left: RuleValue, _ right: RuleValue) -> RuleOrder? {
    if case .bool(let a) = left, case .bool(let b) = right { return RuleOrder(a ? 1 : 0, b ? 1 : 0) }
    return RuleOrder.compare(left, right)
  }
}

/// The order of two values.
enum RuleOrder: Sendable {
  case ascending, same, descending

  init<T: Comparable>(_ left: T, _ right: T) {
    self = left < right ? .ascending : left == right ? .same : .descending
  }

  /// Orders two values of types that rules order; nil for others, and for NaN.
  static func compare(_ left: RuleValue, _ right: RuleValue) -> RuleOrder? {
    switch (left, right) {
    case (.int(let a), .int(let b)): RuleOrder(a, b)
    case (.int(let a), .float(let b)): ordered(Double(a), b)
    case (.float(let a), .int(let b)): ordered(a, Double(b))
    case (.float(let a), .float(let b)): ordered(a, b)
    case (.string(let a), .string(let b)): a == b ? .same : a < b ? .ascending : .descending
    case (.bytes(let a), .bytes(let b)):
      a == b ? .same : a.lexicographicallyPrecedes(b) ? .ascending : .descending
    case (.timestamp(let a), .timestamp(let b)): RuleOrder(a, b)
    case (.duration(let a), .duration(let b)): RuleOrder(a, b)
    default: nil
    }
  }

  private static func ordered(_ a: Double, _ b: Double) -> RuleOrder? {
    a.isNaN || b.isNaN ? nil : RuleOrder(a, b)
  }

  /// Whether a comparison holds for values in this order.
  func satisfies(_ op: Expression.Operator) -> Bool {
    switch op {
    case .equal: self == .same
    case .notEqual: self != .same
    case .less: self == .ascending
    case .lessOrEqual: self != .descending
    case .greater: self == .descending
    case .greaterOrEqual: self != .ascending
    default: false
    }
  }
}

extension RuleValue {
  /// Whether this is an integer or a float.
  var isNumber: Bool {
    switch self {
    case .int, .float: true
    default: false
    }
  }
}
