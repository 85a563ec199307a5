// The filters of a query, one method for each comparison.

import FirestoreModel
public import Foundation

extension Query {
  /// Selects the documents that match a filter. Stops the program for filters that cannot be combined.
  @discardableResult
  public func whereFilter(_ filter: Filter) -> Query {
    guard let added = FilterReader(firestore: firestore, query: model).read(filter) else { return self }
    return modified { structured in
      switch structured.filter {
      case nil: structured.filter = added
      case .composite(.and, let parts)?: structured.filter = .composite(.and, parts + [added])
      case let one?: structured.filter = .composite(.and, [one, added])
      }
      FilterReader.check(structured.filter)
    }
  }

  /// Always stops the program, because predicates in Apple's format language are not supported.
  @discardableResult
  public func filter(using predicate: NSPredicate) -> Query {
    failInvalidArgument("filter(using:) is not supported on this platform; use whereField and whereFilter.")
  }

  /// Selects the documents whose field equals the value.
  @discardableResult
  public func whereField(_ field: String, isEqualTo value: Any) -> Query {
    whereFilter(.whereField(field, isEqualTo: value))
  }

  /// Selects the documents whose field equals the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isEqualTo value: Any) -> Query {
    whereFilter(.whereField(path, isEqualTo: value))
  }

  /// Selects the documents whose field exists and does not equal the value.
  @discardableResult
  public func whereField(_ field: String, isNotEqualTo value: Any) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: value))
  }

  /// Selects the documents whose field exists and does not equal the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Query {
    whereFilter(.whereField(path, isNotEqualTo: value))
  }

  /// Selects the documents whose field is less than the value.
  @discardableResult
  public func whereField(_ field: String, isLessThan value: Any) -> Query {
    whereFilter(.whereField(field, isLessThan: value))
  }

  /// Selects the documents whose field is less than the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isLessThan value: Any) -> Query {
    whereFilter(.whereField(path, isLessThan: value))
  }

  /// Selects the documents whose field is less than or equal to the value.
  @discardableResult
  public func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Query {
    whereFilter(.whereField(field, isLessThanOrEqualTo: value))
  }

  /// Selects the documents whose field is less than or equal to the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Query {
    whereFilter(.whereField(path, isLessThanOrEqualTo: value))
  }

  /// Selects the documents whose field is greater than the value.
  @discardableResult
  public func whereField(_ field: String, isGreaterThan value: Any) -> Query {
    whereFilter(.whereField(field, isGreaterThan: value))
  }

  /// Selects the documents whose field is greater than the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Query {
    whereFilter(.whereField(path, isGreaterThan: value))
  }

  /// Selects the documents whose field is greater than or equal to the value.
  @discardableResult
  public func whereField(_ field: String, isGreaterThanOrEqualTo value: Any) -> Query {
    whereFilter(.whereField(field, isGreaterOrEqualTo: value))
  }

  /// Selects the documents whose field is greater than or equal to the value.
  @discardableResult
  public func whereField(_ path: FieldPath, isGreaterThanOrEqualTo value: Any) -> Query {
    whereFilter(.whereField(path, isGreaterOrEqualTo: value))
  }

  /// Selects the documents whose field is an array that contains the value.
  @discardableResult
  public func whereField(_ field: String, arrayContains value: Any) -> Query {
    whereFilter(.whereField(field, arrayContains: value))
  }

  /// Selects the documents whose field is an array that contains the value.
  @discardableResult
  public func whereField(_ path: FieldPath, arrayContains value: Any) -> Query {
    whereFilter(.whereField(path, arrayContains: value))
  }

  /// Selects the documents whose field is an array that contains at least one of the values.
  @discardableResult
  public func whereField(_ field: String, arrayContainsAny values: [Any]) -> Query {
    whereFilter(.whereField(field, arrayContainsAny: values))
  }

  /// Selects the documents whose field is an array that contains at least one of the values.
  @discardableResult
  public func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Query {
    whereFilter(.whereField(path, arrayContainsAny: values))
  }

  /// Selects the documents whose field equals one of the values.
  @discardableResult
  public func whereField(_ field: String, in values: [Any]) -> Query {
    whereFilter(.whereField(field, in: values))
  }

  /// Selects the documents whose field equals one of the values.
  @discardableResult
  public func whereField(_ path: FieldPath, in values: [Any]) -> Query {
    whereFilter(.whereField(path, in: values))
  }

  /// Selects the documents whose field exists and equals none of the values.
  @discardableResult
  public func whereField(_ field: String, notIn values: [Any]) -> Query {
    whereFilter(.whereField(field, notIn: values))
  }

  /// Selects the documents whose field exists and equals none of the values.
  @discardableResult
  public func whereField(_ path: FieldPath, notIn values: [Any]) -> Query {
    whereFilter(.whereField(path, notIn: values))
  }
}
