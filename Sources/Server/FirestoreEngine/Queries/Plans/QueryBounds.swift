// Between which names and values a query's conditions and cursors keep its results.
//
// Invariant: every result lies inside of the bounds; not everything inside is a result.

import FirestoreModel
import OrderedStore

extension PreparedQuery {
  /// The names between which every result's lies, given the conditions' alternatives that something may meet.
  func nameBounds(_ alternatives: [[FilterTerm]]) -> NameBounds {
    var bounds = NameBounds()
    // Inclusive; the matcher decides.
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

  /// The encoded values between which the first order field of every result lies.
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
  /// The encoded values between which conditions that are all to be met keep a field.
  init(ofValues field: FieldPath, meeting terms: [FilterTerm]) {
    self.init(start: [], end: nil)
    // Inclusive where a cut value ties with its neighbours; the matcher decides.
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

  /// Moves the start up to a key.
  mutating func narrow(from key: Key) { if start.lexicographicallyPrecedes(key) { start = key } }

  /// Moves the end down to a key; nil for no bound.
  mutating func narrow(to key: Key?) {
    guard let key else { return }
    if end.map({ key.lexicographicallyPrecedes($0) }) ?? true { end = key }
  }

  /// Keeps what lies between two keys, both included; nothing outside of the range, also where there is nothing between.
  mutating func narrow(from lower: Key?, through upper: Key?) {
    let first = start
    if let lower { narrow(from: lower) }
    narrow(to: upper?.successor)
    if isEmpty { self = KeyRange(start: first, end: first) }
  }
}
