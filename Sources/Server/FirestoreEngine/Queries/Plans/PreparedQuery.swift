// A validated and normalized query, with the properties that planning and listening need.

import FirestoreModel
import OrderedStore

/// A query that was validated and normalized, so that it can be planned or listened to.
struct PreparedQuery: Sendable {
  /// The collections that a query selects.
  enum Scope: Hashable, Sendable {
    /// One collection.
    case collection(ResourcePath)
    /// All collections with an id, below the query's parent.
    case group(String)
    /// All collections directly under the query's parent or, if the selector has `allDescendants`, at any depth below it.
    case everywhere
  }

  /// The immutable part. Each listener stores the query in several places, so this large part is shared by
  /// reference.
  private final class Content: Sendable {
    let query: Query
    let normalized: NormalizedQuery
    let scope: Scope

    init(_ query: Query, _ limits: FirestoreLimits) throws(FirestoreError) {
      self.query = query
      normalized = try NormalizedQuery(query, limits: limits)
      let id = normalized.selector?.collectionID ?? ""
      if id.isEmpty {
        scope = .everywhere
      } else if normalized.selector?.allDescendants == true {
        scope = .group(id)
      } else {
        scope = .collection(query.parent.path.appending(id))
      }
    }
  }

  private let content: Content
  /// Fields that results must have in addition to the query's conditions. An aggregation sets the fields that
  /// it sums or averages.
  var requiredFields: [FieldPath] = []
  /// Whether the order of results matters. If it is false, results come in the order of the scan. Then limit
  /// and offset determine only the number of results.
  var needsOrder = true

  /// Validates and normalizes a query.
  /// - Throws: INVALID_ARGUMENT, with Firebase's messages.
  init(_ query: Query, _ limits: FirestoreLimits) throws(FirestoreError) {
    content = try Content(query, limits)
  }

  /// The query as the client sent it. Listeners with equal queries share one entry of `TargetIndex`, which finds the
  /// listeners that a change affects.
  var query: Query { content.query }
  var normalized: NormalizedQuery { content.normalized }
  var scope: Scope { content.scope }

  var orders: [StructuredQuery.Order] { normalized.orders }
  var limit: Int? { normalized.limit }
  /// Whether an offset skips results.
  var hasOffset: Bool { normalized.offset > 0 }
  /// Whether the result is only a part of the matches.
  var isWindow: Bool { limit != nil || hasOffset }
  /// The fields of results; nil for all.
  var projection: FieldMask? { normalized.select }
  /// The direction if the query orders only by document name; nil if it has other order fields.
  var nameDirection: StructuredQuery.Direction? { orders.count == 1 ? orders.first?.direction : nil }

  /// Whether a document matches, ignoring limit and offset.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    normalized.matches(name, fields) && requiredFields.allSatisfy { fields.value(at: $0) != nil }
  }

  /// The order of two matching documents.
  func compare(_ a: (DocumentName, MapValue), _ b: (DocumentName, MapValue)) -> ComparisonOrder {
    normalized.compare(a.0, a.1, b.0, b.1)
  }

  /// Prepares a query that the engine derives from this one, for example with another limit. Firebase's
  /// limits on filters and orders are not checked again, since a derived query may have more of them.
  func deriving(_ structured: StructuredQuery) throws(FirestoreError) -> PreparedQuery {
    try PreparedQuery(Query(parent: query.parent, structured), PreparedQuery.unlimited)
  }

  private static let unlimited: FirestoreLimits = {
    var limits = FirestoreLimits()
    limits.disjunctions = .max
    limits.notInValues = .max
    limits.filtersAndOrders = .max
    limits.inequalityFields = .max
    limits.nearestNeighbours = .max
    limits.vectorDimensions = .max
    return limits
  }()

  /// The same query with complete documents as results.
  var unprojected: PreparedQuery {
    guard projection != nil else { return self }
    var structured = query.structured
    structured.select = nil
    guard var complete = try? deriving(structured) else { return self }
    complete.requiredFields = requiredFields
    complete.needsOrder = needsOrder
    return complete
  }
}
