// Which index the hosted product would ask for before it answers a query.
//
// It answers without being told to index anything: names; equalities and array membership on any fields, by merging their
// automatic indexes; a range or an order on one field. All else needs a composite index, or several that share the
// order and together have the equalities. In collection groups single fields are indexed only where that was chosen.

import FirestoreModel
import OrderedStore

/// An index that a query needs and that there is not.
enum MissingIndex: Equatable {
  /// A composite index.
  case composite(CompositeIndex, Status)
  /// An index of one field in a collection, or a collection group.
  case single(CompositeIndex)
  /// A vector index: the fields before the vector, and its dimension.
  case vector(CompositeIndex, FieldPath, dimension: Int)

  /// What is known of a composite index that cannot be used.
  enum Status: Equatable {
    /// It is not chosen; its entries may be there still.
    case unknown
    /// It is on its way.
    case building
    /// It is chosen and could not be built; why.
    case failed(String)
  }
}

extension Planner {
  /// The index that the query lacks; nil if it has all that it needs.
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
        // A composite index may stand in for what the fields lack.
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

  /// The parts of an index that the equalities of an alternative need, membership in arrays first.
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

  /// Whether a field has an index of its own.
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

  /// Whether composite indexes that end in an order have all fixed fields, one or several of them together.
  private func covers(
    _ fixed: [CompositeIndex.Part], _ sorted: [CompositeIndex.Part], _ namesDescend: Bool, _ id: String,
    _ scope: DatabaseIndexConfiguration.Scope
  ) -> Bool {
    var left = Set(fixed.map(\.key))
    var found = false
    for ready in indexes.ready(in: id, at: version) where ready.index.scope == scope {
      for index in [ready.index, ready.index.reversed] where index.parts.count >= sorted.count {
        let count = index.parts.count - sorted.count
        guard Array(index.parts[count...]) == sorted, index.namesDescend == namesDescend || sorted.isEmpty,
          index.parts[..<count].allSatisfy({ part in fixed.contains { $0.key == part.key } })
        else { continue }
        found = true
        left.subtract(index.parts[..<count].map(\.key))
      }
    }
    // Without an order the fields' own indexes join in.
    if sorted.isEmpty {
      left = left.filter { key in
        !fixed.contains { $0.key == key && hasIndex(of: $0, id, scope) }
      }
      return left.isEmpty
    }
    return found && left.isEmpty
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
  /// What an equality needs: the direction does not matter.
  fileprivate struct FixedKey: Hashable {
    var segments: [String]
    var isElement: Bool
  }

  fileprivate var key: FixedKey { FixedKey(segments: segments, isElement: mode == .contains) }
}
