// Query predicates: filters, orders and limits of a query as values. Google's property wrapper
// `FirestoreQuery` takes a list of them.

/// One filter, order or limit of a query.
///
/// ```swift
/// let long: [QueryPredicate] = [.where("pages", isGreaterThan: 400), .order(by: "pages"), .limit(to: 10)]
/// let query = firestore.collection("books").applying(long)
/// ```
public enum QueryPredicate {
  /// The field equals the value.
  case isEqualTo(_ field: String, _ value: Any)
  /// The field equals one of the values.
  case isIn(_ field: String, _ values: [Any])
  /// The field exists and equals none of the values.
  case isNotIn(_ field: String, _ values: [Any])
  /// The field is an array that contains the value.
  case arrayContains(_ field: String, _ value: Any)
  /// The field is an array that contains at least one of the values.
  case arrayContainsAny(_ field: String, _ values: [Any])
  /// The field is less than the value.
  case isLessThan(_ field: String, _ value: Any)
  /// The field is greater than the value.
  case isGreaterThan(_ field: String, _ value: Any)
  /// The field is less than or equal to the value.
  case isLessThanOrEqualTo(_ field: String, _ value: Any)
  /// The field is greater than or equal to the value.
  case isGreaterThanOrEqualTo(_ field: String, _ value: Any)
  /// The documents in the order of the field. The value is true for the descending order.
  case orderBy(_ field: String, _ value: Bool)
  /// The first documents, up to this number.
  case limitTo(_ value: Int)
  /// The last documents, up to this number.
  case limitToLast(_ value: Int)
}

// MARK: Forms of `Query`

extension QueryPredicate {
  /// The field equals the value.
  public static func whereField(_ field: String, isEqualTo value: Any) -> QueryPredicate {
    .isEqualTo(field, value)
  }

  /// The field equals one of the values.
  public static func whereField(_ field: String, isIn values: [Any]) -> QueryPredicate {
    .isIn(field, values)
  }

  /// The field exists and equals none of the values.
  public static func whereField(_ field: String, isNotIn values: [Any]) -> QueryPredicate {
    .isNotIn(field, values)
  }

  /// The field is an array that contains the value.
  public static func whereField(_ field: String, arrayContains value: Any) -> QueryPredicate {
    .arrayContains(field, value)
  }

  /// The field is an array that contains at least one of the values.
  public static func whereField(_ field: String, arrayContainsAny values: [Any]) -> QueryPredicate {
    .arrayContainsAny(field, values)
  }

  /// The field is less than the value.
  public static func whereField(_ field: String, isLessThan value: Any) -> QueryPredicate {
    .isLessThan(field, value)
  }

  /// The field is greater than the value.
  public static func whereField(_ field: String, isGreaterThan value: Any) -> QueryPredicate {
    .isGreaterThan(field, value)
  }

  /// The field is less than or equal to the value.
  public static func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> QueryPredicate {
    .isLessThanOrEqualTo(field, value)
  }

  /// The field is greater than or equal to the value.
  public static func whereField(_ field: String, isGreaterThanOrEqualTo value: Any) -> QueryPredicate {
    .isGreaterThanOrEqualTo(field, value)
  }

  /// The documents in the order of a field.
  ///
  /// - Parameters:
  ///   - field: the field.
  ///   - value: whether the order is descending.
  public static func order(by field: String, descending value: Bool = false) -> QueryPredicate {
    .orderBy(field, value)
  }

  /// The first documents, up to this number.
  public static func limit(to value: Int) -> QueryPredicate { .limitTo(value) }

  /// The last documents, up to this number. The query needs an order.
  public static func limit(toLast value: Int) -> QueryPredicate { .limitToLast(value) }
}

// MARK: Short forms

extension QueryPredicate {
  /// The field equals the value.
  public static func `where`(_ name: String, isEqualTo value: Any) -> QueryPredicate {
    .isEqualTo(name, value)
  }

  /// The field equals one of the values.
  public static func `where`(_ name: String, isIn values: [Any]) -> QueryPredicate { .isIn(name, values) }

  /// The field exists and equals none of the values.
  public static func `where`(_ name: String, isNotIn values: [Any]) -> QueryPredicate {
    .isNotIn(name, values)
  }

  /// The field is an array that contains the value. Only this short form has the label `field`, as in
  /// Google's SDK.
  public static func `where`(field name: String, arrayContains value: Any) -> QueryPredicate {
    .arrayContains(name, value)
  }

  /// The field is an array that contains at least one of the values.
  public static func `where`(_ name: String, arrayContainsAny values: [Any]) -> QueryPredicate {
    .arrayContainsAny(name, values)
  }

  /// The field is less than the value.
  public static func `where`(_ name: String, isLessThan value: Any) -> QueryPredicate {
    .isLessThan(name, value)
  }

  /// The field is greater than the value.
  public static func `where`(_ name: String, isGreaterThan value: Any) -> QueryPredicate {
    .isGreaterThan(name, value)
  }

  /// The field is less than or equal to the value.
  public static func `where`(_ name: String, isLessThanOrEqualTo value: Any) -> QueryPredicate {
    .isLessThanOrEqualTo(name, value)
  }

  /// The field is greater than or equal to the value.
  public static func `where`(_ name: String, isGreaterThanOrEqualTo value: Any) -> QueryPredicate {
    .isGreaterThanOrEqualTo(name, value)
  }
}

extension Query {
  /// Applies filters, orders and limits in the order of the list. Google's SDK does this only inside
  /// `FirestoreQuery`.
  ///
  /// Stops the program for filters that cannot be combined, as the query methods of the same names do.
  ///
  /// - Parameter predicates: the filters, orders and limits.
  /// - Returns: the query with all of them.
  public func applying(_ predicates: [QueryPredicate]) -> Query {
    predicates.reduce(self) { query, predicate in
      switch predicate {
      case .isEqualTo(let field, let value): query.whereField(field, isEqualTo: value)
      case .isIn(let field, let values): query.whereField(field, in: values)
      case .isNotIn(let field, let values): query.whereField(field, notIn: values)
      case .arrayContains(let field, let value): query.whereField(field, arrayContains: value)
      case .arrayContainsAny(let field, let values): query.whereField(field, arrayContainsAny: values)
      case .isLessThan(let field, let value): query.whereField(field, isLessThan: value)
      case .isGreaterThan(let field, let value): query.whereField(field, isGreaterThan: value)
      case .isLessThanOrEqualTo(let field, let value): query.whereField(field, isLessThanOrEqualTo: value)
      case .isGreaterThanOrEqualTo(let field, let value):
        query.whereField(field, isGreaterThanOrEqualTo: value)
      case .orderBy(let field, let isDescending): query.order(by: field, descending: isDescending)
      case .limitTo(let count): query.limit(to: count)
      case .limitToLast(let count): query.limit(toLast: count)
      }
    }
  }
}
