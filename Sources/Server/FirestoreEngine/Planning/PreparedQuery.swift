// A query that has been validated and normalised, with what planning and listening need to know of it.

import FirestoreModel
import OrderedStore

/// A valid query, ready to be planned or listened to.
struct PreparedQuery: Sendable {
  /// Where a query looks.
  enum Scope: Hashable, Sendable {
    /// One collection.
    case collection(ResourcePath)
    /// All collections with an id, below the query's parent.
    case group(String)
    /// All collections, of one level or all.
    case everywhere
  }

  /// What never changes is large, and kept in many places for each listener: they share it.
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
  /// Fields that results must have beside those that the query itself looks at: those that are aggregated.
  var requiredFields: [FieldPath] = []
  /// Whether the order of results matters. Where it does not they come as they are read, and limit and offset say only how
  /// many there are.
  var needsOrder = true

  /// Validates and normalises.
  /// - Throws: INVALID_ARGUMENT, with the product's messages.
  init(_ query: Query, _ limits: FirestoreLimits) throws(FirestoreError) {
    content = try Content(query, limits)
  }

  /// The query as it was asked: what tells equal listeners.
  var query: Query { content.query }
  var normalized: NormalizedQuery { content.normalized }
  var scope: Scope { content.scope }

  var orders: [StructuredQuery.Order] { normalized.orders }
  var limit: Int? { normalized.limit }
  /// Whether results are skipped before the first.
  var skips: Bool { normalized.offset > 0 }
  /// Whether the result is only a part of what matches.
  var isWindow: Bool { limit != nil || skips }
  /// The fields of results; nil for all.
  var projection: FieldMask? { normalized.select }
  /// Whether results are in name order, and in which direction.
  var nameDirection: StructuredQuery.Direction? { orders.count == 1 ? orders.first?.direction : nil }

  /// Whether a document matches, limit and offset aside.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    normalized.matches(name, fields) && requiredFields.allSatisfy { fields.value(at: $0) != nil }
  }

  /// The order of two matching documents.
  func compare(_ a: (DocumentName, MapValue), _ b: (DocumentName, MapValue)) -> ComparisonOrder {
    normalized.compare(a.0, a.1, b.0, b.1)
  }

  /// Another query about the same documents, which the engine asks itself: it may have more parts than a client's, whose
  /// own were counted already.
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

  /// The same query with whole documents as results.
  var unprojected: PreparedQuery {
    guard projection != nil else { return self }
    var structured = query.structured
    structured.select = nil
    guard var whole = try? deriving(structured) else { return self }
    whole.requiredFields = requiredFields
    whole.needsOrder = needsOrder
    return whole
  }
}
