// Why an expression has no value. Faults hold no formatted text: most are absorbed by `||` and `&&`, and only the faults
// of a reported denial are put into words.

/// Why an expression of a rule has no value.
package enum RuleFault: Error, Hashable, Sendable {
  /// A member or method of null, or a name that nothing declares.
  case nullValue
  /// A member or key that a map does not have.
  case undefinedProperty(String)
  /// A function, method or operator that the type does not have.
  case functionNotFound(String)
  /// A call with more or fewer arguments than the function takes.
  case argumentCount(String)
  /// An operation on types that it does not accept.
  case unsupported(String)
  /// A value of another type where a boolean is needed.
  case notBoolean(String)
  /// An index or range outside the value.
  case outOfBounds
  /// An integer division by zero.
  case divideByZero
  /// A result beyond the type's range.
  case outOfRange
  /// Text that cannot be converted to the type.
  case conversion(String)
  /// A regular expression that does not compile or is too large, or an invalid replacement text.
  case invalidPattern(String)
  /// Text that is not a path template, or a placeholder that is not bound.
  case invalidPath
  /// A path that names no document of the database.
  case invalidLookup
  /// More documents read than the limit allows.
  case lookupLimit(Int)
  /// More expressions evaluated than the limit allows.
  case expressionLimit
  /// More bytes compared, hashed or matched than the limit allows.
  case workLimit
  /// A wildcard whose value the request does not determine.
  case unboundWildcard(String)
  /// A comparison that the filters of a query do not decide.
  case undecided

  /// The fault in words.
  package var text: String {
    switch self {
    case .nullValue: "Null value error."
    case .undefinedProperty(let name): "Property \(name) is undefined on object."
    case .functionNotFound(let name): "Function not found error: Name: [\(name)]."
    case .argumentCount(let name): "Incorrect number of arguments: \(name)."
    case .unsupported(let operation): "Unsupported operation error. Received: \(operation)."
    case .notBoolean(let type): "Type error. Received: [\(type)] Expected: [bool]."
    case .outOfBounds: "Index out of bound error."
    case .divideByZero: "Divide by zero error."
    case .outOfRange: "The value is out of range."
    case .conversion(let type): "Type conversion error. To type: [\(type)]."
    case .invalidPattern(let pattern): "Invalid regular expression pattern. Pattern: \(pattern)."
    case .invalidPath: "Invalid path template."
    case .invalidLookup: "Service call error: the path names no document of the database."
    case .lookupLimit(let limit): "The maximum of \(limit) documents to read has been reached."
    case .expressionLimit:
      "Unable to evaluate the expression as the maximum of 1000 expressions to evaluate has been reached."
    case .workLimit: "Unable to evaluate the expression: its operands exceed the limit of bytes to process."
    case .unboundWildcard(let name): "The request does not determine the wildcard \(name)."
    case .undecided: "The filters of the query do not decide the comparison."
    }
  }
}
