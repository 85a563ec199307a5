// A query: selects, orders and limits documents. Each method returns a new query.

import FirestoreModel
public import Foundation

/// A query over a collection or over all collections of one ID.
///
/// ```swift
/// let query = Firestore.firestore().collection("books")
///   .whereField("genre", isEqualTo: "fiction").order(by: "title").limit(to: 10)
/// ```
/// Queries never change: each method returns a new one.
open class Query: NSObject, @unchecked Sendable {
  // Safe to share: it has only constants.
  let model: ModelQuery
  let isLimitToLast: Bool

  /// The instance that the query belongs to.
  public let firestore: Firestore

  init(_ model: ModelQuery, isLimitToLast: Bool = false, firestore: Firestore) {
    self.model = model
    self.isLimitToLast = isLimitToLast
    self.firestore = firestore
  }

  func modified(by change: (inout StructuredQuery) -> Void) -> Query {
    var model = model
    change(&model.structured)
    return Query(model, isLimitToLast: isLimitToLast, firestore: firestore)
  }

  /// The query in the form that the client uses. Stops the program if the query is invalid.
  var clientQuery: ClientQuery {
    if isLimitToLast && model.structured.orderBy.isEmpty {
      failInvalidArgument("limit(toLast:) queries require specifying at least one order(by:) clause.")
    }
    return ClientQuery(model, isLimitToLast: isLimitToLast)
  }

  // MARK: Order and limit

  /// Orders by a field in ascending order. Documents without the field are not in the result.
  @discardableResult
  open func order(by field: String) -> Query { order(by: field, descending: false) }

  /// Orders by a field in ascending order.
  @discardableResult
  open func order(by path: FieldPath) -> Query { order(by: path, descending: false) }

  /// Orders by a field.
  @discardableResult
  open func order(by field: String, descending: Bool) -> Query {
    order(by: FieldPath(FieldPath.parse(field)), descending: descending)
  }

  /// Orders by a field. Stops the program if the query already has a cursor.
  @discardableResult
  open func order(by path: FieldPath, descending: Bool) -> Query {
    if model.structured.startAt != nil || model.structured.endAt != nil {
      failInvalidArgument("Invalid query. You must specify cursors after all order(by:) clauses.")
    }
    return modified { $0.orderBy.append(.init(path.path, descending ? .descending : .ascending)) }
  }

  /// Limits the result to the first documents. Stops the program unless the limit is positive.
  @discardableResult
  open func limit(to limit: Int) -> Query { limited(limit, toLast: false) }

  /// Limits the result to the last documents. The query needs an order.
  @discardableResult
  open func limit(toLast limit: Int) -> Query { limited(limit, toLast: true) }

  private func limited(_ limit: Int, toLast: Bool) -> Query {
    if limit <= 0 {
      failInvalidArgument("Invalid Query. Query limit (\(limit)) is invalid. Limit must be positive.")
    }
    var model = model
    model.structured.limit = limit
    return Query(model, isLimitToLast: toLast, firestore: firestore)
  }

  // MARK: Reading

  /// Reads the result from the server, or from the cache while offline.
  @preconcurrency
  open func getDocuments(completion: @escaping @Sendable (QuerySnapshot?, (any Error)?) -> Void) {
    getDocuments(source: .default, completion: completion)
  }

  /// Reads the result from the server, or from the cache while offline.
  @discardableResult
  open func getDocuments() async throws -> QuerySnapshot { try await getDocuments(source: .default) }

  /// Reads the result from the source. Fails with `unavailable` if the source cannot be reached.
  @preconcurrency
  open func getDocuments(
    source: FirestoreSource, completion: @escaping @Sendable (QuerySnapshot?, (any Error)?) -> Void
  ) {
    firestore.client.get(query: clientQuery, source: source) { result in
      switch result {
      case .success(let view): completion(QuerySnapshot(query: self, snapshot: view), nil)
      case .failure(let error): completion(nil, error.object)
      }
    }
  }

  /// Reads the result from the source. Throws `unavailable` if the source cannot be reached.
  @discardableResult
  open func getDocuments(source: FirestoreSource) async throws -> QuerySnapshot {
    try await Continuations.waitForResult { done in getDocuments(source: source, completion: done) }
  }

  // MARK: Listening

  /// Listens to the result. The listener is called on the settings' queue, first with the current result. After an
  /// error it receives no more events.
  @discardableResult
  open func addSnapshotListener(
    _ listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    addSnapshotListener(includeMetadataChanges: false, listener: listener)
  }

  /// Listens to the result, and optionally to changes of metadata only.
  @discardableResult
  open func addSnapshotListener(
    includeMetadataChanges: Bool, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    let options = SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges)
    return addSnapshotListener(options: options, listener: listener)
  }

  /// Listens to the result with these options.
  @discardableResult
  open func addSnapshotListener(
    options: SnapshotListenOptions, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    let app = AppClosure(call: listener)
    return firestore.client.listen(clientQuery, options: options.internalOptions) { result in
      switch result {
      case .success(let view): app.call(QuerySnapshot(query: self, snapshot: view), nil)
      case .failure(let error): app.call(nil, error.object)
      }
    }
  }

  // MARK: Aggregates

  /// The number of documents in the result, counted by the server.
  open var count: AggregateQuery { aggregate([AggregateField.count()]) }

  /// Aggregates that the server computes over the result.
  @discardableResult
  open func aggregate(_ aggregateFields: [AggregateField]) -> AggregateQuery {
    AggregateQuery(query: self, fields: aggregateFields)
  }

  // MARK: Identity

  /// Whether both queries select the same documents of the same instance.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? Query else { return false }
    return model == other.model && isLimitToLast == other.isLimitToLast && firestore === other.firestore
  }

  /// Hashes the query.
  open override var hash: Int { model.hashValue }
}
