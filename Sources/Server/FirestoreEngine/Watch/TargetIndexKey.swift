// Where a query is looked for when a document changes: under something that every document which matches it has.
//
// A query whose alternatives each ask for a value, for an element of an array or for a range of values stands under all of
// these; one that does not, under what its cursors keep its first order field to, or under a range of names. What stands
// nowhere asks for no more than that something is there, or is something else, which most of its collection meets.

import FirestoreModel
import OrderedStore

/// One place of a query.
enum TargetIndexKey: Hashable {
  /// A field's value, by its encoding; of `__name__`, a name.
  case value(FieldPath, [UInt8])
  /// An element of a field's array.
  case element(FieldPath, [UInt8])
  /// The values of a field in a range; of `__name__`, the names.
  case range(FieldPath, KeyRange)

  /// The places of a query: a document that matches it stands in one of them; nil if it has none.
  static func keys(of query: PreparedQuery) -> Set<TargetIndexKey>? {
    let alternatives = query.normalized.disjunctions
    let found = alternatives.compactMap { key(of: $0) }
    if found.count == alternatives.count { return Set(found) }
    guard let order = query.orders.first else { return nil }
    if order.field.isDocumentID || alternatives.count == 1 {
      let range = names(query.nameBounds(alternatives))
      if isBound(range) { return [.range(.documentID, range)] }
    }
    guard !order.field.isDocumentID else { return nil }
    let range = query.valueBounds(order, alternatives)
    return isBound(range) ? [.range(order.field, range)] : nil
  }

  /// Where the documents stand that meet all of some conditions; the narrowest kind of place that there is.
  private static func key(of terms: [FilterTerm]) -> TargetIndexKey? {
    for case .field(let filter) in terms where filter.field.isDocumentID && filter.op == .equal {
      if case .reference(let name) = filter.value { return .value(.documentID, self.name(name.path)) }
    }
    let terms = terms.filter { !$0.field.isDocumentID }
    for term in terms {
      switch term {
      case .field(let filter) where filter.op == .equal:
        return .value(filter.field, IndexValue.encode(filter.value))
      case .unary(let filter) where filter.op == .isNull:
        return .value(filter.field, IndexValue.encode(.null))
      case .unary(let filter) where filter.op == .isNaN:
        return .value(filter.field, IndexValue.encode(.double(.nan)))
      default: continue
      }
    }
    for case .field(let filter) in terms where filter.op == .arrayContains {
      return .element(filter.field, IndexValue.encode(filter.value))
    }
    for term in terms {
      let range = KeyRange(ofValues: term.field, meeting: terms)
      if isBound(range) { return .range(term.field, range) }
    }
    return nil
  }

  private static func isBound(_ range: KeyRange) -> Bool { !range.start.isEmpty || range.end != nil }

  private static func names(_ bounds: NameBounds) -> KeyRange {
    var range = KeyRange(start: [], end: nil)
    range.narrow(from: bounds.lower.map(name), through: bounds.upper.map(name))
    return range
  }

  /// A name in the order of names.
  static func name(_ path: ResourcePath) -> [UInt8] {
    path.segments.reduce(into: []) { $0 += FirestoreKeyLayout.segment($1) }
  }
}
