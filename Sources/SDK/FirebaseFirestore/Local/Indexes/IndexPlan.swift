// The index plan: how an index is read for one alternative of a query. An alternative is one of the AND filters
// into which the query's filter is converted (disjunctive normal form).
//
// Invariant: the range contains every existing document that can match the alternative. In an ordered plan
// the documents follow the query's order as far as `orderedSegments` determine it, so that a limit may end
// the scan early.

import FirestoreModel

/// An index, the range to read, and the relation between the index's order and the query's order.
struct IndexPlan: Sendable {
  let index: FieldIndex
  let range: IndexRange
  /// The number of leading segments that are fixed or follow the query's order.
  let orderedSegments: Int
  /// Whether entries with equal keys also follow the query's order, because that order continues with the
  /// documents' names.
  let isTotalOrder: Bool
  /// Whether the query's order is the reverse of the index.
  let isDescending: Bool

  /// Whether a scan may end early, because the entries follow at least a part of the query's order.
  var isOrdered: Bool { isTotalOrder || orderedSegments > range.fixedSegments }

  /// Makes the plan of an index for an alternative of a query. Returns nil if the index may lack some of the
  /// documents, or if the plan reads no fewer documents.
  init?(_ index: FieldIndex, for terms: [FilterTerm], of query: NormalizedQuery) {
    guard var range = index.range(for: terms, orders: query.orders) else { return nil }
    let fixed = range.fixedSegments
    let fixedFields = Set(index.segments.prefix(fixed).filter { $0.kind == .value }.map(\.field))
    let orders = query.orders.filter { !fixedFields.contains($0.field) }
    let direction = orders.first?.direction ?? .ascending
    var matched = 0
    for (segment, order) in zip(index.segments.dropFirst(fixed), orders) {
      guard segment.kind == .value, segment.field == order.field, order.direction == direction else { break }
      matched += 1
    }
    isDescending = direction == .descending
    // A cursor's first value belongs to the query's first order. So the cursor narrows the range only if the
    // index follows that order.
    if matched > 0, query.orders.first == orders.first { range.narrow(to: query, isDescending) }
    orderedSegments = fixed + matched
    isTotalOrder =
      orderedSegments == index.segments.count && orders.count == matched + 1
      && orders[matched].field.isDocumentID && orders[matched].direction == direction
    self.index = index
    self.range = range
    // An order is useful only if a limit ends the scan.
    guard range.rank > 0 || (query.limit != nil && isOrdered) else { return nil }
  }

  /// The best plan for each alternative of a query; nil if an alternative has no plan.
  static func plans(for query: NormalizedQuery, among indexes: Set<FieldIndex>) -> [IndexPlan]? {
    guard let id = query.selector?.collectionID, !id.isEmpty else { return nil }
    let indexes = indexes.filter { $0.collectionID == id }
    guard !indexes.isEmpty else { return nil }
    var plans: [IndexPlan] = []
    for terms in query.disjunctions {
      let possible = indexes.compactMap { IndexPlan($0, for: terms, of: query) }
      guard let best = possible.max(by: { $0.score(for: query) < $1.score(for: query) }) else { return nil }
      plans.append(best)
    }
    return plans
  }

  private func score(for query: NormalizedQuery) -> Int {
    2 * range.rank + (query.limit != nil && isOrdered ? 3 : 0)
  }

  /// The part of an entry's key that determines its position in the query's order; nil if that part is
  /// truncated.
  func orderedPrefix(of key: [UInt8]) -> [UInt8]? {
    var decoder = IndexKeyDecoder(key)
    for _ in 0..<orderedSegments where !decoder.skipValue() { return nil }
    return Array(key[..<decoder.position])
  }

  /// Whether a key contains no truncated value. Equal keys then mean equal values, and the keys sort in the
  /// order of the values.
  static func isExact(_ key: [UInt8]) -> Bool { key.count < Limits.indexedValueBytes }
}

extension IndexRange {
  /// Narrows the range to a query's cursors, by the cursor's value for the first field of the order.
  fileprivate mutating func narrow(to query: NormalizedQuery, _ isDescending: Bool) {
    if let value = query.startAt?.values.first { bound(by: value, isLower: !isDescending) }
    if let value = query.endAt?.values.first { bound(by: value, isLower: isDescending) }
  }

  private mutating func bound(by value: Value, isLower: Bool) {
    guard value.hasOrderedKey else { return }
    let key = prefix + IndexKeyEncoder.encode(value)
    if isLower {
      if start.lexicographicallyPrecedes(key) { start = key }
    } else if let high = FieldIndex.successor(of: key) {
      if end.map({ high.lexicographicallyPrecedes($0) }) ?? true { end = high }
    }
    if rank.isMultiple(of: 2) { rank += 1 }
  }
}
