// The filter of a query, as a tree.

/// A condition on documents.
public indirect enum Filter: Hashable, Sendable {
  /// All (`and`) or any (`or`) of several conditions. Without conditions, every document matches.
  case composite(CompositeOperator, [Filter])
  /// A comparison of a field with an operand.
  case field(FieldFilter)
  /// A test of a field alone.
  case unary(UnaryFilter)

  /// How a composite joins its parts.
  public enum CompositeOperator: Hashable, Sendable {
    /// All must match.
    case and
    /// Any must match.
    case or
  }
}

/// A comparison of a field with an operand.
public struct FieldFilter: Hashable, Sendable {
  /// The comparison.
  public enum Operator: Hashable, Sendable, CaseIterable {
    /// Less than, among values of the operand's type.
    case lessThan
    /// Less than or equal, among values of the operand's type.
    case lessThanOrEqual
    /// Greater than, among values of the operand's type.
    case greaterThan
    /// Greater than or equal, among values of the operand's type.
    case greaterThanOrEqual
    /// Equal; nothing equals null or NaN.
    case equal
    /// Present, not null and not equal.
    case notEqual
    /// An array with an element equal to the operand.
    case arrayContains
    /// Equal to one of the operand's elements.
    case isIn
    /// An array with an element equal to one of the operand's.
    case arrayContainsAny
    /// Present, not null and equal to none of the operand's elements.
    case notIn
  }

  /// The field, or `__name__`.
  public var field: FieldPath
  /// The comparison.
  public var op: Operator
  /// The operand; an array for `isIn`, `notIn` and `arrayContainsAny`.
  public var value: Value

  /// Makes a filter.
  public init(_ field: FieldPath, _ op: Operator, _ value: Value) {
    self.field = field
    self.op = op
    self.value = value
  }
}

/// A test of a field alone.
public struct UnaryFilter: Hashable, Sendable {
  /// The test.
  public enum Operator: Hashable, Sendable, CaseIterable {
    /// Exactly NaN.
    case isNaN
    /// Exactly null.
    case isNull
    /// Present, not null and not NaN. Values that are not numbers match.
    case isNotNaN
    /// Present and not null.
    case isNotNull
  }

  /// The tested field.
  public var field: FieldPath
  /// The test.
  public var op: Operator

  /// Makes a filter.
  public init(_ field: FieldPath, _ op: Operator) {
    self.field = field
    self.op = op
  }
}
