// Derives bounds on the names and field values of a query's results from its filter and cursors.
//
// Invariant: every result is within the bounds. A document within the bounds does not have to match.

import FirestoreModel
import OrderedStore

extension PreparedQuery {
  /// The bounds of all results' names. `alternatives` are the disjuncts of the filter that can match.
  func nameBounds(_ alternatives: [[FilterTerm]]) -> NameBounds {
    var bounds = NameBounds()
    // All bounds are inclusive. Matching rejects a document at an exclusive bound.
    func narrow(_ value: Value?, isLower: Bool) {
      guard case .reference(let name)? = value, name.database == normalized.parent.database else { return }
      if isLower { bounds.narrow(from: name.path) } else { bounds.narrow(through: name.path) }
    }
    if alternatives.count == 1 {
      for case .field(let filter) in alternatives[0] where filter.field.isDocumentID {
        switch filter.op {
        case .equal:
          narrow(filter.value, isLower: true)
          narrow(filter.value, isLower: false)
        case .greaterThan, .greaterThanOrEqual: narrow(filter.value, isLower: true)
        case .lessThan, .lessThanOrEqual: narrow(filter.value, isLower: false)
        default: break
        }
      }
    }
    if let direction = nameDirection {
      narrow(normalized.startAt?.values.first, isLower: direction == .ascending)
      narrow(normalized.endAt?.values.first, isLower: direction == .descending)
    }
    return bounds
  }

  /// The bounds of the encoded values of all results' first order field.
  func valueBounds(_ order: StructuredQuery.Order, _ alternatives: [[FilterTerm]]) -> KeyRange {
    var bounds = KeyRange(start: [], end: nil)
    if alternatives.count == 1 { bounds = KeyRange(ofValues: order.field, meeting: alternatives[0]) }
    let isAscending = order.direction == .ascending
    if let value = normalized.startAt?.values.first {
      let key = IndexValue.encode(value)
      if isAscending {
        bounds.narrow(from: key)
      } else {
        bounds.narrow(to: KeyRange.successor(ofPrefix: key))
      }
    }
    if let value = normalized.endAt?.values.first {
      let key = IndexValue.encode(value)
      if isAscending {
        bounds.narrow(to: KeyRange.successor(ofPrefix: key))
      } else {
        bounds.narrow(from: key)
      }
    }
    return bounds
  }
}

extension KeyRange {
  /// The bounds of a field's encoded values under terms that must all match.
  init(ofValues field: FieldPath, meeting terms: [FilterTerm]) {
    self.init(start: [], end: nil)
    // Different long values may have the same truncated encoding. So a bound with such a value stays
    // inclusive, and matching rejects other documents.
    for case .field(let filter) in terms where filter.field == field {
      let key = IndexValue.encode(filter.value)
      switch filter.op {
      case .equal:
        narrow(from: key)
        narrow(to: KeyRange.successor(ofPrefix: key))
      case .greaterThan, .greaterThanOrEqual:
        let excludes = filter.op == .greaterThan && IndexValue.isExact(filter.value)
        narrow(from: excludes ? KeyRange.successor(ofPrefix: key) ?? key : key)
        narrow(to: IndexBounds.end(of: filter.value.kind))
      case .lessThan, .lessThanOrEqual:
        let excludes = filter.op == .lessThan && IndexValue.isExact(filter.value)
        narrow(from: IndexBounds.rangeStart(of: filter.value.kind))
        narrow(to: excludes ? key : KeyRange.successor(ofPrefix: key))
      default: break
      }
    }
  }

  /// Raises the start to a key.
  mutating func narrow(from key: Key) { if start.lexicographicallyPrecedes(key) { start = key } }

  /// Lowers the end to a key; nil for no bound.
  mutating func narrow(to key: Key?) {
    guard let key else { return }
    if end.map({ key.lexicographicallyPrecedes($0) }) ?? true { end = key }
  }

  /// Narrows the range to the keys between two keys, inclusive. If no key remains, the result is an empty
  /// range at the old start.
  mutating func narrow(from lower: Key?, through upper: Key?) {
    let first = start
    if let lower { narrow(from: lower) }
    narrow(to: upper?.successor)
    if isEmpty { self = KeyRange(start: first, end: first) }
  }
}
