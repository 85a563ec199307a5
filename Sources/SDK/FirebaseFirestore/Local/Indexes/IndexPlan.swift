// How one alternative of a query reads an index.
//
// Invariant: the range holds every existing document that can match the alternative. If the plan is ordered, the
// documents come in the query's order as far as `orderedSegments` decide it, so that a limit may end the reading early.

import FirestoreModel

/// An index, the range to read, and what the order of its entries says about the order of the query.
struct IndexPlan: Sendable {
  let index: FieldIndex
  let range: IndexRange
  /// The number of leading segments that are fixed or follow the query's order.
  let orderedSegments: Int
  /// Whether entries with equal keys follow the query's order as well, by their documents' names.
  let isTotalOrder: Bool
  /// Whether the query's order is the reverse of the index.
  let isDescending: Bool

  /// Whether the reading may end early: the entries follow the query's order in part at least.
  var isOrdered: Bool { isTotalOrder || orderedSegments > range.fixedSegments }

  /// Makes the plan of an index for an alternative of a query; nil if the index may lack some of its documents, or if
  /// it saves nothing.
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
    // The values of cursors belong to the orders from the first on.
    if matched > 0, query.orders.first == orders.first { range.narrow(to: query, isDescending) }
    orderedSegments = fixed + matched
    isTotalOrder =
      orderedSegments == index.segments.count && orders.count == matched + 1
      && orders[matched].field.isDocumentID && orders[matched].direction == direction
    self.index = index
    self.range = range
    // An order helps only where a limit ends the reading.
    guard range.rank > 0 || (query.limit != nil && isOrdered) else { return nil }
  }

  /// The best plan for each alternative of a query; nil if one of them has none.
  static func plans(for query: NormalizedQuery, among indexes: Set<FieldIndex>) -> [IndexPlan]? {
    guard let id = query.selector?.collectionID, !id.isEmpty else { return nil }
    let indexes = indexes.filter { $0.collectionID == id }
    guard !indexes.isEmpty else { return nil }
    var plans: [IndexPlan] = []
    for terms in query.disjunctions {
      let possible = indexes.compactMap { IndexPlan($0, for: terms, of: query) }
      guard let best = possible.max(by: { $0.merit(for: query) < $1.merit(for: query) }) else { return nil }
      plans.append(best)
    }
    return plans
  }

  private func merit(for query: NormalizedQuery) -> Int {
    2 * range.rank + (query.limit != nil && isOrdered ? 3 : 0)
  }

  /// The part of an entry's key in which equal bytes mean an equal place in the query's order; nil if it is not whole.
  func orderedPrefix(of key: [UInt8]) -> [UInt8]? {
    var decoder = IndexKeyDecoder(key)
    for _ in 0..<orderedSegments where !decoder.skipValue() { return nil }
    return Array(key[..<decoder.position])
  }

  /// Whether a key has no truncated value. Then equal keys mean equal values, and its order is that of the values.
  static func isExact(_ key: [UInt8]) -> Bool { key.count < Limits.indexedValueBytes }
}

extension IndexRange {
  /// Narrows the range to a query's cursors, by their value for the first field of the order.
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
