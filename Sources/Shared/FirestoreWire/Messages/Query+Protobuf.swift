// Converts queries between the generated messages and the model.
//
// Invariant: the conversion rejects messages that the model cannot express, such as a filter without a kind. The
// validation of `Query` rejects queries that Cloud Firestore forbids.

public import FirestoreModel
public import FirestoreProtobuf
import SwiftProtobuf

extension StructuredQuery {
  /// The query in a message; INVALID_ARGUMENT if a part is malformed.
  public init(_ message: Google_Firestore_V1_StructuredQuery) throws(FirestoreError) {
    self.init(
      from: message.from.map { CollectionSelector($0.collectionID, allDescendants: $0.allDescendants) },
      filter: message.hasWhere ? try Filter(message.where) : nil,
      startAt: message.hasStartAt ? try Cursor(message.startAt) : nil,
      endAt: message.hasEndAt ? try Cursor(message.endAt) : nil,
      offset: Int(message.offset), limit: message.hasLimit ? Int(message.limit.value) : nil,
      findNearest: message.hasFindNearest ? try FindNearest(message.findNearest) : nil)
    for order in message.orderBy { orderBy.append(try Order(order)) }
    if message.hasSelect {
      var fields = MaskPaths(for: .read)
      for field in message.select.fields { fields.append(try FieldPath(parsing: field.fieldPath)) }
      select = FieldMask(fields.paths)
    }
  }
}

extension Google_Firestore_V1_StructuredQuery {
  /// The message for a query.
  public init(_ query: StructuredQuery) {
    self.init()
    if let mask = query.select { select.fields = mask.paths.map { FieldReference($0) } }
    from = query.from.map { selector in
      CollectionSelector.with {
        $0.collectionID = selector.collectionID
        $0.allDescendants = selector.allDescendants
      }
    }
    if let filter = query.filter { `where` = Filter(filter) }
    orderBy = query.orderBy.map { order in
      Order.with {
        $0.field = FieldReference(order.field)
        $0.direction = order.direction == .ascending ? .ascending : .descending
      }
    }
    if let cursor = query.startAt { startAt = Google_Firestore_V1_Cursor(cursor) }
    if let cursor = query.endAt { endAt = Google_Firestore_V1_Cursor(cursor) }
    offset = Int32(clamping: query.offset)
    if let limit = query.limit { self.limit = Google_Protobuf_Int32Value(Int32(clamping: limit)) }
    if let nearest = query.findNearest { findNearest = FindNearest(nearest) }
  }
}

extension Google_Firestore_V1_StructuredQuery.FieldReference {
  init(_ path: FieldPath) {
    self.init()
    fieldPath = path.description
  }
}

extension StructuredQuery.Order {
  init(_ message: Google_Firestore_V1_StructuredQuery.Order) throws(FirestoreError) {
    let direction: StructuredQuery.Direction
    switch message.direction {
    case .unspecified, .ascending: direction = .ascending
    case .descending: direction = .descending
    case .UNRECOGNIZED: throw .invalidArgument("Unknown direction of an order.")
    }
    self.init(try FieldPath(parsing: message.field.fieldPath), direction)
  }
}

extension Cursor {
  /// The position in a message.
  public init(_ message: Google_Firestore_V1_Cursor) throws(FirestoreError) {
    self.init(try [Value](message.values), before: message.before)
  }
}

extension Google_Firestore_V1_Cursor {
  /// The message for a position.
  public init(_ cursor: Cursor) {
    self.init()
    values = cursor.values.map { Google_Firestore_V1_Value($0) }
    before = cursor.before
  }
}

extension FindNearest {
  init(_ message: Google_Firestore_V1_StructuredQuery.FindNearest) throws(FirestoreError) {
    guard case .vector(let vector) = try Value(message.queryVector) else {
      throw .invalidArgument("FindNearest requires 'query_vector' to be a vector.")
    }
    let measure: Measure
    switch message.distanceMeasure {
    case .euclidean: measure = .euclidean
    case .cosine: measure = .cosine
    case .dotProduct: measure = .dotProduct
    case .unspecified, .UNRECOGNIZED: throw .invalidArgument("Unknown distance measure.")
    }
    guard message.hasLimit else { throw .invalidArgument("FindNearest requires a 'limit'.") }
    self.init(
      field: try FieldPath(parsing: message.vectorField.fieldPath), vector: vector, measure: measure,
      limit: Int(message.limit.value),
      // Dots in the name are part of the name.
      distanceResultField: message.distanceResultField.isEmpty
        ? nil : FieldPath(field: message.distanceResultField),
      distanceThreshold: message.hasDistanceThreshold ? message.distanceThreshold.value : nil)
  }
}

extension Google_Firestore_V1_StructuredQuery.FindNearest {
  init(_ search: FindNearest) {
    self.init()
    vectorField = .init(search.field)
    queryVector = Google_Firestore_V1_Value(.vector(search.vector))
    switch search.measure {
    case .euclidean: distanceMeasure = .euclidean
    case .cosine: distanceMeasure = .cosine
    case .dotProduct: distanceMeasure = .dotProduct
    }
    limit = Google_Protobuf_Int32Value(Int32(clamping: search.limit))
    distanceResultField = search.distanceResultField?.segments.first ?? ""
    if let threshold = search.distanceThreshold { distanceThreshold = Google_Protobuf_DoubleValue(threshold) }
  }
}

extension AggregationQuery {
  /// The query in a message; INVALID_ARGUMENT if a part is malformed.
  public init(_ message: Google_Firestore_V1_StructuredAggregationQuery) throws(FirestoreError) {
    guard case .structuredQuery(let base)? = message.queryType else {
      throw .invalidArgument("only structured queries are supported")
    }
    self.init(try StructuredQuery(base), [])
    for aggregation in message.aggregations {
      let op: Operator
      switch aggregation.operator {
      case .count(let count): op = .count(upTo: count.hasUpTo ? count.upTo.value : nil)
      case .sum(let sum): op = .sum(try FieldPath(parsing: sum.field.fieldPath))
      case .avg(let average): op = .average(try FieldPath(parsing: average.field.fieldPath))
      case nil: throw .invalidArgument("An aggregation must name its operator.")
      }
      aggregations.append(Aggregation(aggregation.alias, op))
    }
  }
}

extension Google_Firestore_V1_StructuredAggregationQuery {
  /// The message for an aggregation query.
  public init(_ query: AggregationQuery) {
    self.init()
    structuredQuery = Google_Firestore_V1_StructuredQuery(query.base)
    aggregations = query.aggregations.map { aggregation in
      Aggregation.with {
        $0.alias = aggregation.alias
        switch aggregation.op {
        case .count(let bound):
          $0.count = .init()
          if let bound { $0.count.upTo = Google_Protobuf_Int64Value(bound) }
        case .sum(let field): $0.sum.field = .init(field)
        case .average(let field): $0.avg.field = .init(field)
        }
      }
    }
  }
}
