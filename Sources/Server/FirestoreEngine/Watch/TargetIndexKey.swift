// Derives the keys under which `TargetIndex` stores a query: conditions on one field, of which every matching
// document satisfies at least one.
//
// The filter is normalized to alternatives, joined by OR. If each alternative requires a value, an array
// element or a range of values, the query has one key per alternative. Otherwise the query's cursors may
// bound its first order field or the document name, which gives one key. A query without a key requires only
// that fields exist or differ from values, which most documents of its collection satisfy.

import FirestoreModel
import OrderedStore

/// One key of a query target.
enum TargetIndexKey: Hashable {
  /// The field has this encoded value. For `__name__`, the document has this encoded name.
  case value(FieldPath, [UInt8])
  /// The array field contains this encoded element.
  case element(FieldPath, [UInt8])
  /// The field's encoded value is in this range. For `__name__`, the document's encoded name is in the range.
  case range(FieldPath, KeyRange)

  /// The keys of a query: each matching document has at least one of them. Nil if the query has none.
  static func keys(of query: PreparedQuery) -> Set<TargetIndexKey>? {
    let alternatives = query.normalized.disjunctions
    let found = alternatives.compactMap { key(of: $0) }
    if found.count == alternatives.count { return Set(found) }
    guard let order = query.orders.first else { return nil }
    if order.field.isDocumentID || alternatives.count == 1 {
      let range = names(query.nameBounds(alternatives))
      if isBounded(range) { return [.range(.documentID, range)] }
    }
    guard !order.field.isDocumentID else { return nil }
    let range = query.valueBounds(order, alternatives)
    return isBounded(range) ? [.range(order.field, range)] : nil
  }

  /// The most selective key of documents that satisfy all terms; nil if there is none.
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
      if isBounded(range) { return .range(term.field, range) }
    }
    return nil
  }

  private static func isBounded(_ range: KeyRange) -> Bool { !range.start.isEmpty || range.end != nil }

  private static func names(_ bounds: NameBounds) -> KeyRange {
    var range = KeyRange(start: [], end: nil)
    range.narrow(from: bounds.lower.map(name), through: bounds.upper.map(name))
    return range
  }

  /// The encoding of a document's name. Encodings sort like the names.
  static func name(_ path: ResourcePath) -> [UInt8] {
    path.segments.reduce(into: []) { $0 += FirestoreKeyLayout.segment($1) }
  }
}
