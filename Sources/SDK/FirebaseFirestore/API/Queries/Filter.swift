// Filters of a query. `andFilter` and `orFilter` combine them.

import FirestoreModel
public import Foundation

/// A condition of a query.
open class Filter: NSObject, @unchecked Sendable {
  // Safe to share: the properties are constant. The app's operands are converted when a query uses the
  // filter. Until then the app must not change a mutable object that is an operand.
  indirect enum Node {
    case field(ModelFieldPath, FieldFilter.Operator, Any)
    case all([Filter])
    case any([Filter])
  }

  let node: Node

  private init(_ node: Node) { self.node = node }

  private static func field(_ field: String, _ op: FieldFilter.Operator, _ value: Any) -> Filter {
    Filter(.field(FieldPath.parse(field), op, value))
  }

  private static func field(_ path: FieldPath, _ op: FieldFilter.Operator, _ value: Any) -> Filter {
    Filter(.field(path.path, op, value))
  }

  /// The field equals the value.
  open class func whereField(_ field: String, isEqualTo value: Any) -> Filter {
    self.field(field, .equal, value)
  }
  /// The field equals the value.
  open class func whereField(_ path: FieldPath, isEqualTo value: Any) -> Filter {
    field(path, .equal, value)
  }
  /// The field exists and does not equal the value.
  open class func whereField(_ field: String, isNotEqualTo value: Any) -> Filter {
    self.field(field, .notEqual, value)
  }
  /// The field exists and does not equal the value.
  open class func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Filter {
    field(path, .notEqual, value)
  }
  /// The field is greater than the value.
  open class func whereField(_ field: String, isGreaterThan value: Any) -> Filter {
    self.field(field, .greaterThan, value)
  }
  /// The field is greater than the value.
  open class func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Filter {
    field(path, .greaterThan, value)
  }
  /// The field is not less than the value.
  open class func whereField(_ field: String, isGreaterOrEqualTo value: Any) -> Filter {
    self.field(field, .greaterThanOrEqual, value)
  }
  /// The field is not less than the value.
  open class func whereField(_ path: FieldPath, isGreaterOrEqualTo value: Any) -> Filter {
    field(path, .greaterThanOrEqual, value)
  }
  /// The field is less than the value.
  open class func whereField(_ field: String, isLessThan value: Any) -> Filter {
    self.field(field, .lessThan, value)
  }
  /// The field is less than the value.
  open class func whereField(_ path: FieldPath, isLessThan value: Any) -> Filter {
    field(path, .lessThan, value)
  }
  /// The field is not greater than the value.
  open class func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Filter {
    self.field(field, .lessThanOrEqual, value)
  }
  /// The field is not greater than the value.
  open class func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Filter {
    field(path, .lessThanOrEqual, value)
  }
  /// The field is an array that contains the value.
  open class func whereField(_ field: String, arrayContains value: Any) -> Filter {
    self.field(field, .arrayContains, value)
  }
  /// The field is an array that contains the value.
  open class func whereField(_ path: FieldPath, arrayContains value: Any) -> Filter {
    field(path, .arrayContains, value)
  }
  /// The field is an array that contains at least one of the values.
  open class func whereField(_ field: String, arrayContainsAny values: [Any]) -> Filter {
    self.field(field, .arrayContainsAny, values)
  }
  /// The field is an array that contains at least one of the values.
  open class func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Filter {
    field(path, .arrayContainsAny, values)
  }
  /// The field equals one of the values.
  open class func whereField(_ field: String, in values: [Any]) -> Filter {
    self.field(field, .isIn, values)
  }
  /// The field equals one of the values.
  open class func whereField(_ path: FieldPath, in values: [Any]) -> Filter { field(path, .isIn, values) }
  /// The field exists and equals none of the values.
  open class func whereField(_ field: String, notIn values: [Any]) -> Filter {
    self.field(field, .notIn, values)
  }
  /// The field exists and equals none of the values.
  open class func whereField(_ path: FieldPath, notIn values: [Any]) -> Filter {
    field(path, .notIn, values)
  }
  /// At least one of the filters matches.
  open class func orFilter(_ filters: [Filter]) -> Filter { Filter(.any(filters)) }
  /// All filters match.
  open class func andFilter(_ filters: [Filter]) -> Filter { Filter(.all(filters)) }
}
