// Determines the index that Firebase would require before it executes a query.
//
// Without configured indexes, Firebase executes these queries:
// - documents by name;
// - equality and array-contains filters on any fields, by merging automatic indexes;
// - a range filter or an order on one field.
//
// Other queries need a composite index, or several that end in the query's order and together contain all
// fields with equality filters. The fields of an aggregation come after the order fields. Their sequence and directions
// do not matter: for sum(rating) and sum(pages), Google suggests `testId, pages, rating`. For collection group queries,
// single-field indexes must be configured too.

import FirestoreModel
import OrderedStore

/// A required index that is missing.
enum MissingIndex: Equatable {
  /// A composite index.
  case composite(CompositeIndex, Status)
  /// A single-field index of a collection or collection group.
  case single(CompositeIndex)
  /// A vector index: the fields before the vector, the vector field, and its dimension.
  case vector(CompositeIndex, FieldPath, dimension: Int)

  /// Why a composite index cannot be used.
  enum Status: Equatable {
    /// It is not configured. The store may still have entries of an earlier configuration.
    case unknown
    /// It is being built.
    case building
    /// It is configured, and its build failed with this error.
    case failed(String)
  }
}

extension Planner {
  /// The index that the query lacks; nil if it lacks none.
  var missingIndex: MissingIndex? {
    let id: String
    let scope: DatabaseIndexConfiguration.Scope
    switch query.scope {
    case .collection(let path): (id, scope) = (path.id ?? "", .collection)
    case .group(let group): (id, scope) = (group, .collectionGroup)
    case .everywhere: return nil
    }
    if names(alternatives) != nil { return nil }
    for terms in alternatives {
      if let missing = missing(for: terms, id, scope) { return missing }
    }
    return nil
  }

  private func missing(
    for terms: [FilterTerm], _ id: String, _ scope: DatabaseIndexConfiguration.Scope
  ) -> MissingIndex? {
    let fixed = parts(fixedBy: terms)
    let fixedFields = Set(fixed.map(\.segments))
    let sorted = query.orders.filter { !$0.field.isDocumentID && !fixedFields.contains($0.field.segments) }
      .map { CompositeIndex.Part($0.field, $0.direction == .descending ? .descending : .ascending) }
    let aggregated = aggregated(in: fixed, sorted)
    let namesDescend = query.orders.last?.direction == .descending
    if let nearest = normalized.findNearest {
      let parts = fixed + sorted + aggregated.all
      let index = CompositeIndex(collectionID: id, scope: scope, parts: parts, namesDescend: false)
      return hasVectorIndex(index, nearest)
        ? nil : .vector(index, nearest.field, dimension: nearest.vector.count)
    }
    let needed = CompositeIndex(
      collectionID: id, scope: scope, parts: fixed + sorted + aggregated.all, namesDescend: namesDescend)
    let tail = IndexTail(sorted: sorted, aggregated: aggregated, namesDescend: namesDescend)
    let ordered = sorted + aggregated.required
    if ordered.isEmpty
      || (fixed.isEmpty && ordered.count == 1 && (ordered[0].mode == .descending) == namesDescend)
    {
      for part in fixed + ordered where !hasIndex(of: part, id, scope) {
        // A composite index may replace missing single-field indexes.
        if covers(fixed, tail, id, scope) { return nil }
        var index = needed
        index.parts = [part]
        index.namesDescend = part.mode == .descending
        return .single(index)
      }
      return nil
    }
    if covers(fixed, tail, id, scope) { return nil }
    return .composite(needed, status(of: needed.canonical))
  }

  private func status(of index: CompositeIndex) -> MissingIndex.Status {
    guard let composite = indexes.state.composites.first(where: { $0.index == index }),
      indexes.state.target.composites.contains(composite.number)
    else { return .unknown }
    if let failure = composite.failure { return .failed(failure) }
    return composite.readySince == nil ? .building : .unknown
  }

  /// The aggregated fields that an index must contain after the order fields, or may contain there.
  private func aggregated(
    in fixed: [CompositeIndex.Part], _ sorted: [CompositeIndex.Part]
  ) -> AggregatedFields {
    var fields = AggregatedFields()
    let ordered = query.requiredFields.sorted { $0.segments.lexicographicallyPrecedes($1.segments) }
    for field in ordered where !sorted.contains(where: { $0.field == field }) {
      let filters = fixed.filter { $0.field == field }
      // An equality filter determines the value. An array-contains filter determines one element of it.
      if filters.contains(where: { $0.mode != .contains }) { continue }
      fields.all.append(CompositeIndex.Part(field, .ascending))
      if filters.isEmpty { fields.required.append(CompositeIndex.Part(field, .ascending)) }
    }
    return fields
  }

  /// The index fields that the equality filters of one alternative of the filter (joined to the others by OR) require.
  /// Fields with array-contains filters are first.
  private func parts(fixedBy terms: [FilterTerm]) -> [CompositeIndex.Part] {
    var seen: Set<CompositeIndex.Part> = []
    let fields = FixedFields(terms)
    let all = terms.filter { !$0.field.isDocumentID }.flatMap { term -> [CompositeIndex.Part] in
      [CompositeIndex.Mode.contains, .ascending].map { CompositeIndex.Part(term.field, $0) }.filter(
        fields.fixes)
    }
    let distinct = all.filter { seen.insert($0).inserted }
    return distinct.filter { $0.mode == .contains } + distinct.filter { $0.mode != .contains }
  }

  /// Whether a field has a single-field index.
  private func hasIndex(of part: CompositeIndex.Part, _ id: String, _ scope: DatabaseIndexConfiguration.Scope)
    -> Bool
  {
    if scope == .collection {
      return indexes.mayUse(part.field, isElement: part.mode == .contains, in: id, at: version)
    }
    let single = CompositeIndex(
      collectionID: id, scope: scope, parts: [part], namesDescend: part.mode == .descending)
    return indexes.ready(in: id, at: version).contains { $0.index == single.canonical }
  }

  /// Whether the composite indexes that end in the same `tail` together contain all `fixed` fields.
  private func covers(
    _ fixed: [CompositeIndex.Part], _ tail: IndexTail, _ id: String, _ scope: DatabaseIndexConfiguration.Scope
  ) -> Bool {
    let all = Set(fixed.map(\.key))
    // Only indexes with the same fields after the fixed fields (the same order) can be merged. The dictionary maps each
    // order to the fixed fields that its indexes lack.
    var uncovered: [[CompositeIndex.Part]: Set<CompositeIndex.Part.FixedKey>] = [:]
    if tail.isEmpty { uncovered[[]] = all }
    for ready in indexes.ready(in: id, at: version) where ready.index.scope == scope {
      for index in [ready.index, ready.index.reversed] {
        guard let count = tail.countBefore(in: index),
          index.parts[..<count].allSatisfy({ part in fixed.contains { $0.key == part.key } })
        else { continue }
        uncovered[Array(index.parts[count...]), default: all].subtract(index.parts[..<count].map(\.key))
      }
    }
    return uncovered.contains { order, rest in
      // Without an order, single-field indexes can be merged too.
      let rest =
        order.isEmpty
        ? rest.filter { key in !fixed.contains { $0.key == key && hasIndex(of: $0, id, scope) } } : rest
      return rest.isEmpty
    }
  }

  private func hasVectorIndex(_ index: CompositeIndex, _ nearest: FindNearest) -> Bool {
    indexes.vectors.contains { vector in
      guard vector.scope == index.scope, vector.collectionID.hasSameUTF8(as: index.collectionID),
        let last = vector.fields.last, last.path == nearest.field,
        last.mode == .vector(dimension: nearest.vector.count)
      else { return false }
      return Set(vector.fields.dropLast().map(\.path)) == Set(index.parts.map(\.field))
    }
  }
}

extension CompositeIndex.Part {
  /// Identifies a field with an equality or array-contains filter. For an equality the direction of the index
  /// does not matter.
  fileprivate struct FixedKey: Hashable {
    var segments: [String]
    var isElement: Bool
  }

  fileprivate var key: FixedKey { FixedKey(segments: segments, isElement: mode == .contains) }
}

/// The fields of an aggregation that no filter or order determines.
private struct AggregatedFields {
  /// All fields, in the order in which Google suggests them.
  var all: [CompositeIndex.Part] = []
  /// The fields without an array-contains filter. An index without the other fields is accepted too.
  var required: [CompositeIndex.Part] = []
}

/// The fields that an index must have after those with equality filters.
private struct IndexTail {
  var sorted: [CompositeIndex.Part]
  var aggregated: AggregatedFields
  var namesDescend: Bool

  var isEmpty: Bool { sorted.isEmpty && aggregated.required.isEmpty }

  /// The number of index fields before the tail; nil if the index does not end in it.
  func countBefore(in index: CompositeIndex) -> Int? {
    var count = index.parts.count
    var missing = aggregated.all.map(\.segments)
    while count > 0, index.parts[count - 1].mode != .contains,
      let found = missing.firstIndex(of: index.parts[count - 1].segments)
    {
      missing.remove(at: found)
      count -= 1
    }
    guard !aggregated.required.contains(where: { missing.contains($0.segments) }) else { return nil }
    let start = count - sorted.count
    guard start >= 0, Array(index.parts[start..<count]) == sorted else { return nil }
    // The direction of `__name__` matters only directly after the query's order fields.
    let isFree = sorted.isEmpty || count < index.parts.count
    return isFree || index.namesDescend == namesDescend ? start : nil
  }
}
