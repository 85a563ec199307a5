// Plans a query: the rows to read, their order, and the ranges that a transaction locks.
//
// Sources, in order of preference:
// 1. documents by name, if the filter requires names;
// 2. a composite index that contains the order fields and all fields with equality filters;
// 3. the automatic index entries of all equality and array-contains filters, intersected by document id;
// 4. a composite index that contains the order fields and some of the fields with equality filters;
// 5. the automatic index of the first order field;
// 6. the rows of the collection.
//
// The filter is normalized to alternatives, joined by OR; each is a list of terms, joined by AND. If the
// source is not in the query's order and the order matters, results are sorted in memory. Every candidate is
// matched against the complete query. Therefore a plan may read too much, but never too little.

import FirestoreModel
import OrderedStore

/// A query's plan.
struct QueryPlan: Sendable {
  /// The source of candidates: the documents that may match.
  enum Source: Sendable {
    /// Nothing can match.
    case nothing
    /// Documents by name.
    case names([ResourcePath])
    /// The documents of a collection that match all equality terms of an alternative, in order of their ids.
    /// `prefixes` has a list for each alternative: for each term, the prefix of its index entries.
    case entries(ResourcePath, prefixes: [[Key]], ids: KeyRange)
    /// A collection's documents in the order of one field: the entries of its automatic index, which have the
    /// prefix, within the range.
    case index(ResourcePath, prefix: Key, KeyRange)
    /// The entries of a composite index, in the query's order.
    case composite(CompositeScan)
    /// Document rows of a range.
    case rows(KeyRange)
    /// Group rows of a range: the rows that list the documents of a collection group.
    case group(KeyRange)
    /// The documents below a parent, in name order.
    case subtree(ResourcePath, NameBounds)
  }

  /// How the candidates are ordered.
  enum Arrangement: Sendable {
    /// In the query's order, or in any order if the query needs none.
    case exact
    /// In the order of the first order field only. Documents with the same value of this field are adjacent
    /// (a *run*) and have to be sorted.
    case runs
    /// In another order.
    case unordered
  }

  var source: Source
  var arrangement: Arrangement
  /// Whether candidates are read backwards.
  var reverse: Bool

  /// The ranges that the plan may read. A locking transaction locks them before it reads.
  var ranges: [KeyRange] {
    switch source {
    case .nothing, .names: []
    case .entries(_, let prefixes, _): prefixes.flatMap { $0.map { KeyRange(prefix: $0) } }
    case .index(_, _, let range), .rows(let range), .group(let range): [range]
    case .composite(let scan): scan.streams.map(\.range)
    case .subtree(let parent, let bounds): bounds.rows(below: parent)
    }
  }

  /// The single rows that the plan reads.
  var keys: [Key] {
    if case .names(let paths) = source { return paths.map(FirestoreKeyLayout.document) }
    return []
  }
}

/// Plans queries.
struct Planner {
  let query: PreparedQuery
  /// The indexes of the database.
  let indexes: IndexSet
  /// The version to read.
  let version: Version
  var normalized: NormalizedQuery { query.normalized }

  init(_ query: PreparedQuery, _ indexes: IndexSet, at version: Version) {
    self.query = query
    self.indexes = indexes
    self.version = version
  }

  /// The filter's alternatives, without those that no document can match.
  var alternatives: [[FilterTerm]] {
    normalized.disjunctions.filter { !$0.contains(where: Planner.isImpossible) }
  }

  /// Plans the query. `isCommon` returns whether an index prefix has many entries.
  func plan(isCommon: (Key) throws -> Bool) rethrows -> QueryPlan {
    let alternatives = alternatives
    let reverse = query.orders.first?.direction == .descending
    if alternatives.isEmpty { return QueryPlan(source: .nothing, arrangement: .exact, reverse: false) }
    if let names = names(alternatives) {
      return QueryPlan(source: .names(names), arrangement: .unordered, reverse: false)
    }
    switch query.scope {
    case .collection(let path):
      return try plan(collection: path, alternatives, reverse, isCommon)
    case .group(let id):
      if let scan = composite(in: nil, id, alternatives) { return scan.plan }
      var range = KeyRange(prefix: FirestoreKeyLayout.group(id, below: normalized.parent.path))
      let bounds = query.nameBounds(alternatives)
      range.narrow(
        from: bounds.lower.map { FirestoreKeyLayout.group(id, below: $0) },
        through: bounds.upper.map { FirestoreKeyLayout.group(id, below: $0) })
      return QueryPlan(
        source: .group(range), arrangement: query.nameDirection == nil ? .unordered : .exact,
        reverse: reverse && query.nameDirection != nil)
    case .everywhere where normalized.selector?.allDescendants == true:
      let parent = normalized.parent.path
      return QueryPlan(
        source: .subtree(parent, query.nameBounds(alternatives).inside(parent)),
        arrangement: query.nameDirection == .ascending ? .exact : .unordered, reverse: false)
    case .everywhere:
      let parent = normalized.parent.path
      return QueryPlan(
        source: .rows(query.nameBounds(alternatives).inside(parent).children(of: parent)),
        arrangement: query.nameDirection == nil ? .unordered : .exact,
        reverse: reverse && query.nameDirection != nil)
    }
  }

  private func plan(
    collection path: ResourcePath, _ alternatives: [[FilterTerm]], _ reverse: Bool,
    _ isCommon: (Key) throws -> Bool
  ) rethrows -> QueryPlan {
    let composite = composite(in: path, path.id ?? "", alternatives)
    if let composite, composite.coversAllEqualities { return composite.plan }
    let prefixes = alternatives.map { $0.compactMap { entryPrefix(of: $0, in: path) } }
    let ids = idBounds(alternatives, in: path)
    if prefixes.allSatisfy({ !$0.isEmpty }) {
      let isExact = query.nameDirection != nil
      let entries = QueryPlan(
        source: .entries(path, prefixes: prefixes, ids: ids), arrangement: isExact ? .exact : .unordered,
        reverse: isExact && reverse)
      // Many entries may have the filter's values. If the query also has a limit, scanning the index of the
      // order and dropping other documents is cheaper.
      let readsManyEntries =
        try query.limit != nil && query.needsOrder && query.nameDirection == nil
        && prefixes.contains { list in try list.allSatisfy { prefix in try isCommon(prefix) } }
      if !readsManyEntries { return entries }
    }
    if let composite { return composite.plan }
    guard query.nameDirection == nil, let first = query.orders.first else {
      let prefix = FirestoreKeyLayout.collection(path)
      let range = KeyRange(
        start: prefix + ids.start, end: ids.end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
      return QueryPlan(source: .rows(range), arrangement: .exact, reverse: reverse)
    }
    guard indexes.mayUse(first.field, isElement: false, in: path.id ?? "", at: version) else {
      return QueryPlan(
        source: .rows(KeyRange(prefix: FirestoreKeyLayout.collection(path))), arrangement: .unordered,
        reverse: false)
    }
    let prefix = FirestoreKeyLayout.index(first.field, .value, of: path)
    let bounds = query.valueBounds(first, alternatives)
    let range = KeyRange(
      start: prefix + bounds.start,
      end: bounds.end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    let isExact = query.orders.count == 2 && query.orders[1].direction == first.direction
    return QueryPlan(
      source: .index(path, prefix: prefix, range), arrangement: isExact ? .exact : .runs, reverse: reverse)
  }

  // MARK: Terms

  /// The fields whose index entries the source `entries` intersects, in the order of the filter.
  var intersected: [(field: FieldPath, isElement: Bool)] {
    guard case .collection(let path) = query.scope else { return [] }
    return alternatives.joined().compactMap { term in
      guard entryPrefix(of: term, in: path) != nil else { return nil }
      if case .field(let filter) = term, filter.op == .arrayContains { return (term.field, true) }
      return (term.field, false)
    }
  }

  /// Whether no document can match a term.
  static func isImpossible(_ term: FilterTerm) -> Bool {
    guard case .field(let filter) = term else { return false }
    switch filter.op {
    case .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      return filter.value == .null || filter.value.isNaN
    case .arrayContains: return filter.value == .null || filter.value.isNaN || filter.value.kind == .array
    case .notEqual, .notIn, .isIn, .arrayContainsAny: return false
    }
  }

  /// The prefix of the index entries of all documents that match a term; nil if the term is not an equality
  /// or the field has no index.
  private func entryPrefix(of term: FilterTerm, in path: ResourcePath) -> Key? {
    func entry(_ field: FieldPath, _ kind: FirestoreKeyLayout.EntryKind, _ value: Value) -> Key {
      FirestoreKeyLayout.index(field, kind, of: path) + IndexValue.encode(value)
    }
    guard !term.field.isDocumentID else { return nil }
    var isElement = false
    if case .field(let filter) = term { isElement = filter.op == .arrayContains }
    guard indexes.mayUse(term.field, isElement: isElement, in: path.id ?? "", at: version) else { return nil }
    switch term {
    case .unary(let filter) where filter.op == .isNull: return entry(filter.field, .value, .null)
    case .unary(let filter) where filter.op == .isNaN: return entry(filter.field, .value, .double(.nan))
    case .field(let filter) where filter.op == .equal: return entry(filter.field, .value, filter.value)
    case .field(let filter) where filter.op == .arrayContains:
      return entry(filter.field, .element, filter.value)
    default: return nil
    }
  }

  /// The documents that the query requests by name; nil unless every alternative requires a name.
  func names(_ alternatives: [[FilterTerm]]) -> [ResourcePath]? {
    var names: [ResourcePath] = []
    var seen: Set<ResourcePath> = []
    for terms in alternatives {
      let name = terms.lazy.compactMap { term -> DocumentName? in
        guard case .field(let filter) = term, filter.field.isDocumentID, filter.op == .equal,
          case .reference(let name) = filter.value
        else { return nil }
        return name
      }.first
      guard let name else { return nil }
      guard normalized.isInScope(name) else { continue }
      if seen.insert(name.path).inserted { names.append(name.path) }
    }
    return names
  }

  // MARK: Bounds

  /// The bounds of the encoded ids of all results in a collection.
  private func idBounds(_ alternatives: [[FilterTerm]], in collection: ResourcePath) -> KeyRange {
    var bounds = KeyRange(start: [], end: nil)
    let names = query.nameBounds(alternatives)
    if let lower = names.lower, lower.parent == collection, let id = lower.id {
      bounds.start = FirestoreKeyLayout.segment(id)
    }
    if let upper = names.upper, upper.parent == collection, let id = upper.id {
      bounds.end = FirestoreKeyLayout.segment(id).successor
    }
    return bounds
  }

  /// The bounds that the filter sets for an order field's encoded values.
  func filterBounds(_ order: StructuredQuery.Order, _ alternatives: [[FilterTerm]]) -> KeyRange {
    alternatives.count == 1
      ? KeyRange(ofValues: order.field, meeting: alternatives[0]) : KeyRange(start: [], end: nil)
  }
}
