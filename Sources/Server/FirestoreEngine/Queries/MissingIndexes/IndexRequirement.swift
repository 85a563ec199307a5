// Determines the index that Firebase would require before it executes a query.
//
// Without configured indexes, Firebase executes these queries:
// - documents by name;
// - equality and array-contains filters on any fields, by merging automatic indexes;
// - a range filter or an order on one field.
//
// Other queries need a composite index, or several that end in the query's order and together contain all
// fields with equality filters. For collection group queries, single-field indexes must be configured too.

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
    var sorted = query.orders.filter { !$0.field.isDocumentID && !fixedFields.contains($0.field.segments) }
      .map { CompositeIndex.Part($0.field, $0.direction == .descending ? .descending : .ascending) }
    for field in query.requiredFields where !sorted.contains(where: { $0.field == field }) {
      if !fixedFields.contains(field.segments) { sorted.append(CompositeIndex.Part(field, .ascending)) }
    }
    let namesDescend = query.orders.last?.direction == .descending
    if let nearest = normalized.findNearest {
      let index = CompositeIndex(collectionID: id, scope: scope, parts: fixed + sorted, namesDescend: false)
      return hasVectorIndex(index, nearest)
        ? nil : .vector(index, nearest.field, dimension: nearest.vector.count)
    }
    let needed = CompositeIndex(
      collectionID: id, scope: scope, parts: fixed + sorted, namesDescend: namesDescend)
    if sorted.isEmpty
      || (fixed.isEmpty && sorted.count == 1 && (sorted[0].mode == .descending) == namesDescend)
    {
      for part in needed.parts where !hasIndex(of: part, id, scope) {
        // A composite index may replace missing single-field indexes.
        if covers(fixed, sorted, namesDescend, id, scope) { return nil }
        var index = needed
        index.parts = [part]
        index.namesDescend = part.mode == .descending
        return .single(index)
      }
      return nil
    }
    if covers(fixed, sorted, namesDescend, id, scope) { return nil }
    return .composite(needed, status(of: needed.canonical))
  }

  private func status(of index: CompositeIndex) -> MissingIndex.Status {
    guard let known = indexes.state.composites.first(where: { $0.index == index }),
      indexes.state.target.composites.contains(known.number)
    else { return .unknown }
    if let failure = known.failure { return .failed(failure) }
    return known.readySince == nil ? .building : .unknown
  }

  /// The index fields that an alternative's equality filters require. Fields with array-contains filters are
  /// first.
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

  /// Whether the composite indexes that end in the order fields `sorted` together contain all `fixed` fields.
  private func covers(
    _ fixed: [CompositeIndex.Part], _ sorted: [CompositeIndex.Part], _ namesDescend: Bool, _ id: String,
    _ scope: DatabaseIndexConfiguration.Scope
  ) -> Bool {
    var uncovered = Set(fixed.map(\.key))
    var found = false
    for ready in indexes.ready(in: id, at: version) where ready.index.scope == scope {
      for index in [ready.index, ready.index.reversed] where index.parts.count >= sorted.count {
        let count = index.parts.count - sorted.count
        guard Array(index.parts[count...]) == sorted, index.namesDescend == namesDescend || sorted.isEmpty,
          index.parts[..<count].allSatisfy({ part in fixed.contains { $0.key == part.key } })
        else { continue }
        found = true
        uncovered.subtract(index.parts[..<count].map(\.key))
      }
    }
    // Without an order, single-field indexes can be merged too.
    if sorted.isEmpty {
      uncovered = uncovered.filter { key in
        !fixed.contains { $0.key == key && hasIndex(of: $0, id, scope) }
      }
      return uncovered.isEmpty
    }
    return found && uncovered.isEmpty
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
