// Decodes queries directly into the model, without the generated messages.
//
// The reason is correctness, not speed. An operand or a cursor may contain a map. The generated messages keep maps in
// dictionaries of Swift strings, which treat two Unicode spellings of a letter as one key.
//
// Invariant: the decoder rejects messages that the model cannot express, such as a filter without a kind. The
// validation of `Query` rejects queries that Cloud Firestore forbids.

public import FirestoreModel

extension ProtobufReader {
  /// The maximum nesting depth of filters.
  static let filterDepthLimit = 100

  /// Reads a `StructuredQuery` message to its end.
  public mutating func structuredQuery() throws(FirestoreError) -> StructuredQuery {
    var query = StructuredQuery()
    var select: MaskPaths?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        try nested.projection(into: &select)
      case 2:
        var nested = try message(tag)
        query.from.append(try nested.collectionSelector())
      case 3:
        var nested = try message(tag)
        query.filter = try nested.filter(depth: 0)
      case 4:
        var nested = try message(tag)
        query.orderBy.append(try nested.order())
      case 5:
        var nested = try message(tag)
        query.limit = Int(try nested.int32Wrapper())
      case 6:
        query.offset = Int(try int32(tag))
      case 7:
        var nested = try message(tag)
        query.startAt = try nested.cursor()
      case 8:
        var nested = try message(tag)
        query.endAt = try nested.cursor()
      case 9:
        var nested = try message(tag)
        query.findNearest = try nested.findNearest()
      default: try skip(tag)
      }
    }
    query.select = select.map { FieldMask($0.paths) }
    return query
  }

  /// A `google.protobuf.Int32Value`.
  mutating func int32Wrapper() throws(FirestoreError) -> Int32 {
    var value: Int32 = 0
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      value = try int32(tag)
    }
    return value
  }

  /// A `google.protobuf.DoubleValue`.
  private mutating func doubleWrapper() throws(FirestoreError) -> Double {
    var value = 0.0
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      value = try double(tag)
    }
    return value
  }

  /// The path in a `FieldReference`.
  mutating func fieldReference() throws(FirestoreError) -> String {
    var text = ""
    while let tag = try nextTag() {
      guard tag.field == 2 else {
        try skip(tag)
        continue
      }
      text = try string(tag)
    }
    return text
  }

  private mutating func collectionSelector() throws(FirestoreError) -> StructuredQuery.CollectionSelector {
    var selector = StructuredQuery.CollectionSelector("")
    while let tag = try nextTag() {
      switch tag.field {
      case 2:
        selector.collectionID = try string(tag)
      case 3:
        selector.allDescendants = try varint(tag) != 0
      default: try skip(tag)
      }
    }
    return selector
  }

  private mutating func order() throws(FirestoreError) -> StructuredQuery.Order {
    var field = ""
    var direction = StructuredQuery.Direction.ascending
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        field = try nested.fieldReference()
      case 2:
        switch try varint(tag) {
        case 0, 1: direction = .ascending
        case 2: direction = .descending
        default: throw .invalidArgument("Unknown direction of an order.")
        }
      default: try skip(tag)
      }
    }
    return StructuredQuery.Order(try FieldPath(parsing: field), direction)
  }

  /// A `Cursor`.
  mutating func cursor() throws(FirestoreError) -> Cursor {
    var cursor = Cursor([], before: false)
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        cursor.values.append(try nested.value())
      case 2:
        cursor.before = try varint(tag) != 0
      default: try skip(tag)
      }
    }
    return cursor
  }

  private mutating func findNearest() throws(FirestoreError) -> FindNearest {
    var field = ""
    var vector: [Double]?
    var measure: FindNearest.Measure?
    var limit: Int?
    var resultField = ""
    var threshold: Double?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        field = try nested.fieldReference()
      case 2:
        var nested = try message(tag)
        vector = if case .vector(let numbers) = try nested.value() { numbers } else { nil }
      case 3:
        switch try varint(tag) {
        case 1: measure = .euclidean
        case 2: measure = .cosine
        case 3: measure = .dotProduct
        default: measure = nil
        }
      case 4:
        var nested = try message(tag)
        limit = Int(try nested.int32Wrapper())
      case 5:
        resultField = try string(tag)
      case 6:
        var nested = try message(tag)
        threshold = try nested.doubleWrapper()
      default: try skip(tag)
      }
    }
    guard let vector else {
      throw .invalidArgument("FindNearest requires 'query_vector' to be a vector.")
    }
    guard let measure else { throw .invalidArgument("Unknown distance measure.") }
    guard let limit else { throw .invalidArgument("FindNearest requires a 'limit'.") }
    return FindNearest(
      field: try FieldPath(parsing: field), vector: vector, measure: measure, limit: limit,
      // Dots in the name are part of the name.
      distanceResultField: resultField.isEmpty ? nil : FieldPath(field: resultField),
      distanceThreshold: threshold)
  }
}

// MARK: Filters

extension ProtobufReader {
  fileprivate mutating func filter(depth: Int) throws(FirestoreError) -> Filter {
    guard depth < ProtobufReader.filterDepthLimit else {
      throw .invalidArgument(
        "The filter is nested more than \(ProtobufReader.filterDepthLimit) levels deep.")
    }
    var filter: Filter?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        filter = try nested.compositeFilter(depth: depth)
      case 2:
        var nested = try message(tag)
        filter = .field(try nested.fieldFilter())
      case 3:
        var nested = try message(tag)
        filter = .unary(try nested.unaryFilter())
      default: try skip(tag)
      }
    }
    guard let filter else { throw .invalidArgument("A filter must name its type.") }
    return filter
  }

  private mutating func compositeFilter(depth: Int) throws(FirestoreError) -> Filter {
    var op: Filter.CompositeOperator?
    var parts: [Filter] = []
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        switch try varint(tag) {
        case 1: op = .and
        case 2: op = .or
        default: op = nil
        }
      case 2:
        var nested = try message(tag)
        parts.append(try nested.filter(depth: depth + 1))
      default: try skip(tag)
      }
    }
    guard let op else { throw .invalidArgument("Unsupported CompositeFilter operator.") }
    return .composite(op, parts)
  }

  private mutating func fieldFilter() throws(FirestoreError) -> FieldFilter {
    var field = ""
    var op: FieldFilter.Operator?
    var value: Value?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        field = try nested.fieldReference()
      case 2:
        op = ProtobufReader.comparison(try varint(tag))
      case 3:
        var nested = try message(tag)
        value = try nested.value()
      default: try skip(tag)
      }
    }
    let path = try FieldPath(parsing: field)
    guard let op else { throw .invalidArgument("Unknown FieldFilter operator.") }
    guard let value else { throw .invalidArgument("Cannot convert firestore.v1.Value with type unset.") }
    return FieldFilter(path, op, value)
  }

  private static func comparison(_ number: UInt64) -> FieldFilter.Operator? {
    switch number {
    case 1: .lessThan
    case 2: .lessThanOrEqual
    case 3: .greaterThan
    case 4: .greaterThanOrEqual
    case 5: .equal
    case 6: .notEqual
    case 7: .arrayContains
    case 8: .isIn
    case 9: .arrayContainsAny
    case 10: .notIn
    default: nil
    }
  }

  private mutating func unaryFilter() throws(FirestoreError) -> UnaryFilter {
    var field = ""
    var op: UnaryFilter.Operator?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        switch try varint(tag) {
        case 2: op = .isNaN
        case 3: op = .isNull
        case 4: op = .isNotNaN
        case 5: op = .isNotNull
        default: op = nil
        }
      case 2:
        var nested = try message(tag)
        field = try nested.fieldReference()
      default: try skip(tag)
      }
    }
    let path = try FieldPath(parsing: field)
    guard let op else { throw .invalidArgument("Unknown UnaryFilter operator.") }
    return UnaryFilter(path, op)
  }
}
