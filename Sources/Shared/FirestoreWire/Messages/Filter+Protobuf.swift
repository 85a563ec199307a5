// Converts filters between the generated messages and the model.

import FirestoreModel
import FirestoreProtobuf
import SwiftProtobuf

extension Filter {
  init(_ message: Google_Firestore_V1_StructuredQuery.Filter) throws(FirestoreError) {
    switch message.filterType {
    case .compositeFilter(let composite):
      let op: CompositeOperator
      switch composite.op {
      case .and: op = .and
      case .or: op = .or
      case .unspecified, .UNRECOGNIZED: throw .invalidArgument("Unsupported CompositeFilter operator.")
      }
      var parts: [Filter] = []
      for part in composite.filters { parts.append(try Filter(part)) }
      self = .composite(op, parts)
    case .fieldFilter(let filter):
      self = .field(
        FieldFilter(
          try FieldPath(parsing: filter.field.fieldPath), try FieldFilter.Operator(filter.op),
          try Value(filter.value)))
    case .unaryFilter(let filter):
      self = .unary(
        UnaryFilter(try FieldPath(parsing: filter.field.fieldPath), try UnaryFilter.Operator(filter.op)))
    case nil: throw .invalidArgument("A filter must name its type.")
    }
  }
}

extension FieldFilter.Operator {
  fileprivate init(
    _ message: Google_Firestore_V1_StructuredQuery.FieldFilter.Operator
  ) throws(FirestoreError) {
    switch message {
    case .lessThan: self = .lessThan
    case .lessThanOrEqual: self = .lessThanOrEqual
    case .greaterThan: self = .greaterThan
    case .greaterThanOrEqual: self = .greaterThanOrEqual
    case .equal: self = .equal
    case .notEqual: self = .notEqual
    case .arrayContains: self = .arrayContains
    case .in: self = .isIn
    case .arrayContainsAny: self = .arrayContainsAny
    case .notIn: self = .notIn
    case .unspecified, .UNRECOGNIZED: throw .invalidArgument("Unknown FieldFilter operator.")
    }
  }

  fileprivate var message: Google_Firestore_V1_StructuredQuery.FieldFilter.Operator {
    switch self {
    case .lessThan: .lessThan
    case .lessThanOrEqual: .lessThanOrEqual
    case .greaterThan: .greaterThan
    case .greaterThanOrEqual: .greaterThanOrEqual
    case .equal: .equal
    case .notEqual: .notEqual
    case .arrayContains: .arrayContains
    case .isIn: .in
    case .arrayContainsAny: .arrayContainsAny
    case .notIn: .notIn
    }
  }
}

extension UnaryFilter.Operator {
  fileprivate init(
    _ message: Google_Firestore_V1_StructuredQuery.UnaryFilter.Operator
  ) throws(FirestoreError) {
    switch message {
    case .isNan: self = .isNaN
    case .isNull: self = .isNull
    case .isNotNan: self = .isNotNaN
    case .isNotNull: self = .isNotNull
    case .unspecified, .UNRECOGNIZED: throw .invalidArgument("Unknown UnaryFilter operator.")
    }
  }

  fileprivate var message: Google_Firestore_V1_StructuredQuery.UnaryFilter.Operator {
    switch self {
    case .isNaN: .isNan
    case .isNull: .isNull
    case .isNotNaN: .isNotNan
    case .isNotNull: .isNotNull
    }
  }
}

extension Google_Firestore_V1_StructuredQuery.Filter {
  init(_ filter: Filter) {
    self.init()
    switch filter {
    case .composite(let op, let parts):
      compositeFilter.op = op == .and ? .and : .or
      compositeFilter.filters = parts.map { .init($0) }
    case .field(let filter):
      fieldFilter.field = .init(filter.field)
      fieldFilter.op = filter.op.message
      fieldFilter.value = Google_Firestore_V1_Value(filter.value)
    case .unary(let filter):
      unaryFilter.field = .init(filter.field)
      unaryFilter.op = filter.op.message
    }
  }
}
