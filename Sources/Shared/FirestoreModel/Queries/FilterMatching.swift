// Decides whether a document matches a filter, on the server and in clients.
//
// Invariant: a missing field never matches. Ranges match only values of their operand's type, and never NaN. Equality
// is query equality (1 = 1.0). A null field matches only the unary filter IS_NULL. A NaN field matches only IS_NAN,
// IS_NOT_NULL, and the operators != and not-in if their operand neither is nor contains NaN.

extension Filter {
  /// Whether a document matches this filter.
  public func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    switch self {
    case .composite(_, let parts) where parts.isEmpty: true
    case .composite(.and, let parts): parts.allSatisfy { $0.matches(name, fields) }
    case .composite(.or, let parts): parts.contains { $0.matches(name, fields) }
    case .field(let filter): filter.matches(name, fields)
    case .unary(let filter): filter.matches(name, fields)
    }
  }
}

extension FieldFilter {
  /// Whether a document matches this comparison.
  public func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    if field.isDocumentID { return matches(.reference(name)) }
    guard let value = fields.value(at: field) else { return false }
    return matches(value)
  }

  /// Whether a present value matches this comparison.
  public func matches(_ candidate: Value) -> Bool {
    switch op {
    case .lessThan: inRange(candidate) { $0 == .ascending }
    case .lessThanOrEqual: inRange(candidate) { $0 != .descending }
    case .greaterThan: inRange(candidate) { $0 == .descending }
    case .greaterThanOrEqual: inRange(candidate) { $0 != .ascending }
    case .equal: FieldFilter.equal(candidate, value)
    case .notEqual: value != .null && candidate != .null && !candidate.isQueryEqual(to: value)
    case .isIn: operands.contains { FieldFilter.equal(candidate, $0) }
    case .notIn:
      candidate != .null && !operands.contains { $0 == .null || $0.isQueryEqual(to: candidate) }
    case .arrayContains: FieldFilter.contains(candidate, value)
    case .arrayContainsAny: operands.contains { FieldFilter.contains(candidate, $0) }
    }
  }

  /// The elements of a list operand.
  var operands: [Value] {
    if case .array(let elements) = value { return elements }
    return []
  }

  private func inRange(_ candidate: Value, _ accepts: (ComparisonOrder) -> Bool) -> Bool {
    guard value != .null, candidate.kind == value.kind, !value.isNaN, !candidate.isNaN else { return false }
    return accepts(Value.compare(candidate, value))
  }

  /// Whether an operand of an equality can match any value.
  private static func isComparable(_ operand: Value) -> Bool { operand != .null && !operand.isNaN }

  private static func equal(_ candidate: Value, _ operand: Value) -> Bool {
    isComparable(operand) && candidate.isQueryEqual(to: operand)
  }

  private static func contains(_ candidate: Value, _ operand: Value) -> Bool {
    guard case .array(let elements) = candidate, isComparable(operand), operand.kind != .array else {
      return false
    }
    return elements.contains { $0.isQueryEqual(to: operand) }
  }
}

extension UnaryFilter {
  /// Whether a document matches this test.
  public func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    if field.isDocumentID { return matches(.reference(name)) }
    guard let value = fields.value(at: field) else { return false }
    return matches(value)
  }

  /// Whether a present value matches this test.
  public func matches(_ candidate: Value) -> Bool {
    switch op {
    case .isNull: candidate == .null
    case .isNotNull: candidate != .null
    case .isNaN: candidate.isNaN
    case .isNotNaN: candidate != .null && !candidate.isNaN
    }
  }
}
