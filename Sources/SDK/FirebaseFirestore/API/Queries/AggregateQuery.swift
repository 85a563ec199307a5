// Aggregate queries: the server computes numbers over the result of a query.

import FirestoreModel
public import Foundation

/// One number that the server computes.
open class AggregateField: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  let operation: AggregationQuery.Operator

  private init(_ operation: AggregationQuery.Operator) { self.operation = operation }

  /// The number of documents.
  open class func count() -> AggregateField { AggregateField(.count(upTo: nil)) }
  /// The sum of a field's numbers.
  open class func sum(_ field: String) -> AggregateField { AggregateField(.sum(FieldPath.parse(field))) }
  /// The sum of a field's numbers.
  open class func sum(_ fieldPath: FieldPath) -> AggregateField { AggregateField(.sum(fieldPath.path)) }
  /// The average of a field's numbers.
  open class func average(_ field: String) -> AggregateField {
    AggregateField(.average(FieldPath.parse(field)))
  }
  /// The average of a field's numbers.
  open class func average(_ fieldPath: FieldPath) -> AggregateField {
    AggregateField(.average(fieldPath.path))
  }
}

/// The source that computes aggregates.
public enum AggregateSource: UInt, Sendable {
  /// The server.
  case server = 0
}

/// A query that computes numbers over the result of another query.
open class AggregateQuery: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// The query over whose result the numbers are computed.
  public let query: Query
  let fields: [AggregateField]

  init(query: Query, fields: [AggregateField]) {
    self.query = query
    self.fields = fields
  }

  /// Requests the result from the server. Aggregates are not cached, so the call fails with `unavailable`
  /// while offline.
  @preconcurrency
  open func getAggregation(
    source: AggregateSource, completion: @escaping @Sendable (AggregateQuerySnapshot?, (any Error)?) -> Void
  ) {
    var model = query.model
    if query.isLimitToLast { model.structured = model.structured.reversed }
    let aggregations = fields.enumerated().map { index, field in
      AggregationQuery.Aggregation("aggregate_\(index)", field.operation)
    }
    let client = query.firestore.client
    client.datastore.aggregate(model, aggregations) { [self] result in
      client.callbackQueue.async { [self] in
        switch result {
        case .success(let values):
          completion(
            AggregateQuerySnapshot(query: self, values: fields.indices.map { values["aggregate_\($0)"] }), nil
          )
        case .failure(let error): completion(nil, error.object)
        }
      }
    }
  }

  /// Requests the result from the server. Aggregates are not cached, so the call fails with `unavailable`
  /// while offline.
  @discardableResult
  open func getAggregation(source: AggregateSource) async throws -> AggregateQuerySnapshot {
    try await Continuations.waitForResult { done in getAggregation(source: source, completion: done) }
  }

  /// Whether the queries and the requested aggregates are the same.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? AggregateQuery else { return false }
    return query == other.query && fields.map(\.operation) == other.fields.map(\.operation)
  }

  /// Hashes the query.
  open override var hash: Int { query.hash }
}

/// The numbers that the server computed.
open class AggregateQuerySnapshot: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// The aggregate query.
  public let query: AggregateQuery
  private let values: [Value?]

  init(query: AggregateQuery, values: [Value?]) {
    self.query = query
    self.values = values
  }

  private func value(of operation: AggregationQuery.Operator) -> Any {
    guard let index = query.fields.firstIndex(where: { $0.operation == operation }) else {
      failInvalidArgument("The requested aggregate was not part of the query.")
    }
    switch values[index] {
    case .integer(let number)?: return NSNumber(value: number)
    case .double(let number)?: return NSNumber(value: number)
    default: return NSNull()
    }
  }

  /// The number of documents. Stops the program if the app did not request it.
  open var count: NSNumber { value(of: .count(upTo: nil)) as? NSNumber ?? NSNumber(value: 0) }

  /// The value of one aggregate; `NSNull` if the result has no value for it. Stops the program if the app did
  /// not request it.
  @discardableResult
  open func get(_ aggregateField: AggregateField) -> Any { value(of: aggregateField.operation) }
}
