// A normalized query is valid and has its full order. Engines plan it, and listeners match documents against it.
//
// Invariant: `matches` and `compare` define the result of a query: all matching documents, sorted, then offset and
// limit. Plans, indexes and caches must agree with them.

/// A validated query with its full order.
public struct NormalizedQuery: Hashable, Sendable {
  /// The root or document whose collections are searched.
  public let parent: ParentName
  /// The collections to search; nil for all collections directly under the parent.
  public let selector: StructuredQuery.CollectionSelector?
  /// The simplified condition, if any.
  public let filter: Filter?
  /// The alternatives of the condition. Without a condition, there is one empty alternative, which always matches.
  public let disjunctions: [[FilterTerm]]
  /// The full order; ends with `__name__`.
  public let orders: [StructuredQuery.Order]
  /// Where results start.
  public let startAt: Cursor?
  /// Where results end.
  public let endAt: Cursor?
  /// The number of results to skip.
  public let offset: Int
  /// The maximum number of results.
  public let limit: Int?
  /// The fields to return; nil for all, empty for names only.
  public let select: FieldMask?
  /// The nearest-neighbour search over the results, if any.
  public let findNearest: FindNearest?

  /// Validates and normalizes a query.
  ///
  /// - Throws: INVALID_ARGUMENT with Cloud Firestore's error message.
  public init(_ query: Query, limits: FirestoreLimits = .standard) throws(FirestoreError) {
    try query.validate(limits: limits)
    let structured = query.structured.withStoredOperands
    parent = query.parent
    selector = structured.from.first
    filter = structured.filter?.simplified
    disjunctions = structured.filter?.disjunctions(limit: limits.disjunctions) ?? [[]]
    orders = structured.normalizedOrder
    startAt = structured.startAt
    endAt = structured.endAt
    offset = structured.offset
    limit = structured.limit
    select = structured.select
    findNearest = structured.findNearest
  }

  /// Whether a document is in the query's result before offset and limit.
  public func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    isInScope(name) && hasOrderFields(fields) && filter?.matches(name, fields) != false
      && isWithinBounds(name, fields)
  }

  /// Whether a document lies in a collection that the query searches.
  public func isInScope(_ name: DocumentName) -> Bool {
    let path = name.path
    guard name.database == parent.database, path.count > parent.path.count, path.hasPrefix(parent.path)
    else { return false }
    if selector?.allDescendants != true, path.count != parent.path.count + 2 { return false }
    guard let selector, !selector.collectionID.isEmpty else { return true }
    return path.segments[path.count - 2].hasSameUTF8(as: selector.collectionID)
  }

  /// Whether a document has every field of the order; null counts as present.
  public func hasOrderFields(_ fields: MapValue) -> Bool {
    orders.allSatisfy { $0.field.isDocumentID || fields.value(at: $0.field) != nil }
  }

  /// Whether a document lies between the cursors.
  public func isWithinBounds(_ name: DocumentName, _ fields: MapValue) -> Bool {
    if let startAt {
      let position = compare(startAt, name, fields)
      if position == .descending || (position == .same && !startAt.before) { return false }
    }
    if let endAt {
      let position = compare(endAt, name, fields)
      if position == .ascending || (position == .same && endAt.before) { return false }
    }
    return true
  }

  /// Compares two documents in the query's order. A missing field sorts first; matching documents have every field.
  public func compare(
    _ a: DocumentName, _ aFields: MapValue, _ b: DocumentName, _ bFields: MapValue
  ) -> ComparisonOrder {
    for order in orders {
      let ordering =
        order.field.isDocumentID
        ? DocumentName.compare(a, b)
        : NormalizedQuery.compare(aFields.value(at: order.field), bFields.value(at: order.field))
      if ordering != .same { return order.direction == .ascending ? ordering : ordering.reversed }
    }
    return .same
  }

  /// Compares a cursor's values with a document.
  private func compare(_ cursor: Cursor, _ name: DocumentName, _ fields: MapValue) -> ComparisonOrder {
    for (order, value) in zip(orders, cursor.values) {
      let ordering =
        order.field.isDocumentID
        ? Value.compare(value, .reference(name))
        : NormalizedQuery.compare(value, fields.value(at: order.field))
      if ordering != .same { return order.direction == .ascending ? ordering : ordering.reversed }
    }
    return .same
  }

  private static func compare(_ a: Value?, _ b: Value?) -> ComparisonOrder {
    switch (a, b) {
    case (let a?, let b?): Value.compare(a, b)
    case (nil, nil): .same
    case (nil, _): .ascending
    case (_, nil): .descending
    }
  }

  /// The fields of a result that the projection selects.
  public func projected(_ fields: MapValue) -> MapValue { select.map { fields.projected(to: $0) } ?? fields }
}
