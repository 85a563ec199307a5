// A field index of the cache: the documents of all collections with one ID, in the order of some fields.
//
// An index has no directions: it only finds the results of a query, and a view sorts them. An alternative of a
// query is one of the AND filters into which the query's filter is converted (disjunctive normal form).

import FirestoreModel

/// The definition of an index. Its segments determine which documents have entries, and with which keys.
struct FieldIndex: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// One entry for each document that has the field.
    case value
    /// One entry for each distinct element of an array.
    case elements
  }

  struct Segment: Hashable, Sendable {
    let field: ModelFieldPath
    let kind: Kind
  }

  let collectionID: String
  let segments: [Segment]

  /// Makes an index; nil if there are no fields. Every entry ends with the name of its document, so a segment for
  /// the document's name and all segments after it are dropped.
  init?(collectionID: String, segments: [Segment]) {
    let fields = segments.prefix { !$0.field.isDocumentID }
    guard !fields.isEmpty else { return nil }
    self.collectionID = collectionID
    self.segments = Array(fields)
  }

  /// The index keys of a document; empty if the document lacks one of the fields.
  func keys(of fields: MapValue) -> Set<[UInt8]> {
    var keys: Set<[UInt8]> = [[]]
    for segment in segments {
      guard let value = fields.value(at: segment.field) else { return [] }
      switch segment.kind {
      case .value: keys = FieldIndex.extend(keys, by: [value])
      case .elements:
        guard case .array(let elements) = value else { return [] }
        keys = FieldIndex.extend(keys, by: elements)
      }
    }
    return keys
  }

  private static func extend(_ keys: Set<[UInt8]>, by values: [Value]) -> Set<[UInt8]> {
    let parts = Set(values.map(IndexKeyEncoder.encode))
    return Set(keys.flatMap { key in parts.map { key + $0 } })
  }
}

// MARK: Use by queries

/// The range of an index that contains all documents which one alternative of a query can match.
struct IndexRange: Equatable, Sendable {
  var start: [UInt8]
  /// The first key after the range; nil if the range has no end.
  var end: [UInt8]?
  /// How far the range limits the search: 2 for each field with one value, 1 for a range, and 0 for the
  /// complete index.
  var rank = 0
  /// The number of leading segments with one possible value.
  var fixedSegments = 0
  /// The key of the fixed segments. All keys of the range begin with it.
  var prefix: [UInt8] = []
}

extension FieldIndex {
  /// The range that contains all documents that match the terms; nil if the index may lack some of these
  /// documents.
  func range(for terms: [FilterTerm], orders: [StructuredQuery.Order]) -> IndexRange? {
    var prefix: [UInt8] = []
    var range: IndexRange?
    for (position, segment) in segments.enumerated() {
      let fieldTerms = terms.filter { $0.field == segment.field }
      // The index contains only documents with the field. So it can be used only if other documents cannot
      // match.
      let isPresent = !fieldTerms.isEmpty || orders.contains { $0.field == segment.field }
      let element = fieldTerms.lazy.compactMap(\.element).first
      guard segment.kind == .value ? isPresent : element != nil else { return nil }
      guard range == nil else { continue }
      if let fixed = segment.kind == .elements ? element : fieldTerms.lazy.compactMap(\.equal).first {
        prefix += IndexKeyEncoder.encode(fixed)
        continue
      }
      range = FieldIndex.range(prefix, fixed: position)
      for case .field(let filter) in fieldTerms { range?.narrow(by: filter, after: prefix) }
    }
    return range ?? FieldIndex.range(prefix, fixed: segments.count)
  }

  private static func range(_ prefix: [UInt8], fixed: Int) -> IndexRange {
    IndexRange(
      start: prefix, end: successor(of: prefix), rank: 2 * fixed, fixedSegments: fixed, prefix: prefix)
  }

  /// The first key after all keys with a prefix; nil if there is none.
  static func successor(of prefix: [UInt8]) -> [UInt8]? {
    var bytes = prefix
    while let last = bytes.popLast() {
      if last < 0xFF { return bytes + [last + 1] }
    }
    return nil
  }

  /// The best index for an alternative of a query; nil if no index helps. In a query with a limit, the order
  /// determines which documents are read. Therefore fields of the order precede ranges in the index.
  static func serving(_ terms: [FilterTerm], of query: NormalizedQuery) -> FieldIndex? {
    guard let collectionID = query.selector?.collectionID, !collectionID.isEmpty else { return nil }
    var segments: [Segment] = []
    func add(_ field: ModelFieldPath, _ kind: Kind) {
      if !segments.contains(where: { $0.field == field }) { segments.append(.init(field: field, kind: kind)) }
    }
    for term in terms where term.element != nil { add(term.field, .elements) }
    for term in terms where term.equal != nil { add(term.field, .value) }
    if query.limit != nil {
      let direction = query.orders.first?.direction
      for order in query.orders.prefix(while: { $0.direction == direction }) { add(order.field, .value) }
    }
    if let ranged = terms.first(where: \.isRange) { add(ranged.field, .value) }
    return FieldIndex(collectionID: collectionID, segments: segments)
  }
}

extension IndexRange {
  /// Narrows the range to the values that a filter allows. Bounds are always inclusive, because truncated values
  /// may equal the operand in the index. The caller matches the documents that it finds.
  fileprivate mutating func narrow(by filter: FieldFilter, after prefix: [UInt8]) {
    let kind = filter.value.kind
    let operand = prefix + IndexKeyEncoder.encode(filter.value)
    var low = prefix + IndexBounds.rangeStart(of: kind)
    var high: [UInt8]? = prefix + IndexBounds.end(of: kind)
    switch filter.op {
    case .lessThan, .lessThanOrEqual:
      if filter.value.hasOrderedKey { high = FieldIndex.successor(of: operand) }
    case .greaterThan, .greaterThanOrEqual: if filter.value.hasOrderedKey { low = operand }
    default: return
    }
    if rank.isMultiple(of: 2) { rank += 1 }
    if start.lexicographicallyPrecedes(low) { start = low }
    if let high, end.map({ high.lexicographicallyPrecedes($0) }) ?? true { end = high }
  }
}

extension Value {
  /// Whether the keys of values of this type sort in the order of the values. The keys of two containers with
  /// truncated strings may sort differently.
  var hasOrderedKey: Bool {
    switch self {
    case .array, .map: false
    default: true
    }
  }
}

extension FilterTerm {
  /// The only value that the field can have; nil if several values are possible.
  fileprivate var equal: Value? {
    switch self {
    case .field(let filter): filter.op == .equal ? filter.value : nil
    case .unary(let filter):
      switch filter.op {
      case .isNull: .null
      case .isNaN: .double(.nan)
      case .isNotNull, .isNotNaN: nil
      }
    }
  }

  /// The element that the field's array must contain.
  fileprivate var element: Value? {
    if case .field(let filter) = self, filter.op == .arrayContains { return filter.value }
    return nil
  }

  fileprivate var isRange: Bool {
    guard case .field(let filter) = self else { return false }
    switch filter.op {
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual: return true
    default: return false
    }
  }
}
