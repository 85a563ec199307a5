// Chooses the composite index for a query, and the ranges to read in it.
//
// An index serves a query if its last fields are the query's order, in the same or in reversed directions,
// `__name__` included. The filter is a list of alternatives, joined by OR. In every alternative, equality or
// array-contains filters must fix each earlier index field to one value. An order field that all alternatives
// fix to the same value does not affect the order and is ignored. Each alternative selects one range of index
// entries. After the fixed values, the entries of all ranges sort by the query's order, so the ranges can be
// merged.

import FirestoreModel
import OrderedStore

/// The parts of a composite index that a query scans.
struct CompositeScan: Sendable {
  /// The range of entries for one alternative of the filter.
  struct Stream: Sendable {
    /// The common key prefix of these entries: index number, collection and fixed values.
    var prefix: Key
    var range: KeyRange
  }

  let index: NumberedIndex
  /// The collection; nil for a collection group index.
  let collection: ResourcePath?
  /// The number of leading index fields that the filter fixes to one value.
  let fixed: Int
  var streams: [Stream]

  /// The parts of the ranges that remain after an entry; with `including`, the entry itself remains too.
  /// `suffix` is the part of the entry's key after its range's prefix.
  func remainder(after suffix: Key, including: Bool, reverse: Bool) -> [KeyRange] {
    streams.map { stream in
      let key = stream.prefix + suffix
      var range = stream.range
      if reverse {
        range.narrow(to: including ? key.successor : key)
      } else {
        range.narrow(from: including ? key : key.successor)
      }
      return range
    }
  }
}

/// A composite index that serves a query.
struct CompositeChoice {
  var plan: QueryPlan
  /// Whether the index fields include all fields with equality or array-contains filters. Then almost every
  /// scanned entry is a result.
  var coversAllEqualities: Bool
}

extension Planner {
  /// The composite index that serves the query and has the most fixed fields; nil if no index serves it.
  /// `collection` is nil for a collection group query.
  func composite(
    in collection: ResourcePath?, _ id: String, _ alternatives: [[FilterTerm]]
  ) -> CompositeChoice? {
    let ready = indexes.ready(in: id, at: version).filter {
      ($0.index.scope == .collection) == (collection != nil)
    }
    guard !ready.isEmpty else { return nil }
    let fixed = alternatives.map(FixedFields.init)
    let common = FixedFields(commonTo: fixed)
    let orders = query.orders.filter { !$0.field.isDocumentID && common.values[$0.field] == nil }
    let best = ready.compactMap { index in
      usage(of: index, fixed, orders).map { (index, $0) }
    }.max { $0.1.fixed < $1.1.fixed }
    guard let (index, use) = best else { return nil }
    // If no order field remains, intersecting automatic indexes is as good as a composite index that lacks
    // some of the fields.
    let coversAllEqualities = fixed.allSatisfy { $0.count == use.fixed }
    if orders.isEmpty, collection != nil, !coversAllEqualities || use.fixed < 2 { return nil }
    var scan = CompositeScan(index: index, collection: collection, fixed: use.fixed, streams: [])
    for (terms, fields) in zip(alternatives, fixed) {
      let indexPrefix = index.prefix(in: collection ?? ResourcePath([]))
      let prefix = index.index.parts[..<use.fixed].reduce(indexPrefix) { $0 + fields.bytes(of: $1) }
      var range = KeyRange(prefix: prefix)
      if let order = orders.first {
        range.narrow(prefix, filterBounds(order, [terms]), index.index.parts[use.fixed].mode)
      }
      narrow(&range, after: prefix, scan, common, reverse: use.reverse)
      if !range.isEmpty { scan.streams.append(.init(prefix: prefix, range: range)) }
    }
    let source: QueryPlan.Source = scan.streams.isEmpty ? .nothing : .composite(scan)
    return CompositeChoice(
      plan: QueryPlan(source: source, arrangement: .exact, reverse: use.reverse),
      coversAllEqualities: coversAllEqualities)
  }

  /// The number of fixed fields with which an index serves the query, and whether the query scans it in reverse; nil
  /// if the index does not serve the query.
  private func usage(
    of numbered: NumberedIndex, _ alternatives: [FixedFields], _ orders: [StructuredQuery.Order]
  ) -> (fixed: Int, reverse: Bool)? {
    let index = numbered.index
    let fixed = index.parts.count - orders.count
    guard fixed >= 0, alternatives.allSatisfy({ fields in index.parts[..<fixed].allSatisfy(fields.fixes) })
    else { return nil }
    let reverse = (query.orders.last?.direction == .descending) != index.namesDescend
    for (part, order) in zip(index.parts[fixed...], orders) {
      let mode: CompositeIndex.Mode =
        (order.direction == .descending) != reverse ? .descending : .ascending
      guard part.field == order.field, part.mode == mode else { return nil }
    }
    return (fixed, reverse)
  }

  /// Narrows a range to the entries between the query's cursors. Cursor values after a truncated value are not used.
  private func narrow(
    _ range: inout KeyRange, after prefix: Key, _ scan: CompositeScan, _ common: FixedFields, reverse: Bool
  ) {
    for (cursor, isStart) in [(normalized.startAt, true), (normalized.endAt, false)] {
      guard let cursor, let bytes = bytes(of: cursor, scan, common) else { continue }
      let key = prefix + bytes
      if isStart != reverse {
        range.narrow(from: key)
      } else {
        range.narrow(to: KeyRange.successor(ofPrefix: key))
      }
    }
  }

  /// A cursor's encoded values for the index fields after the fixed ones; nil if none of them can be used.
  private func bytes(of cursor: Cursor, _ scan: CompositeScan, _ common: FixedFields) -> [UInt8]? {
    var bytes: [UInt8] = []
    var part = scan.fixed
    for (order, value) in zip(query.orders, cursor.values) {
      if let fixedValue = common.values[order.field] {
        // All matches have the same fixed value of this field. If the cursor has it too, its later values
        // bound the range. If it has another value, they are not used.
        guard fixedValue == IndexValue.encode(value), IndexValue.isExact(value) else { break }
        continue
      }
      if order.field.isDocumentID {
        guard case .reference(let name) = value, let more = nameBytes(name, scan) else { break }
        bytes += more
        break
      }
      guard part < scan.index.index.parts.count else { break }
      bytes += NumberedIndex.encode(value, scan.index.index.parts[part].mode)
      part += 1
      if !IndexValue.isExact(value) { break }
    }
    return bytes.isEmpty ? nil : bytes
  }

  private func nameBytes(_ name: DocumentName, _ scan: CompositeScan) -> [UInt8]? {
    guard name.database == normalized.parent.database else { return nil }
    var encoder = IndexKeyEncoder()
    if let collection = scan.collection {
      guard name.path.parent == collection, let id = name.path.id else { return nil }
      encoder.append(segment: id)
    } else {
      encoder.append(name.path)
    }
    return scan.index.index.namesDescend ? encoder.bytes.map { ~$0 } : encoder.bytes
  }
}

/// The fields that one alternative of a filter fixes to one value.
struct FixedFields {
  /// Fields that equal a value, by encoded value.
  private(set) var values: [FieldPath: [UInt8]] = [:]
  /// Arrays that contain an element, by encoded element.
  private(set) var elements: [FieldPath: [UInt8]] = [:]

  init(_ terms: [FilterTerm]) {
    for term in terms where !term.field.isDocumentID {
      switch term {
      case .unary(let filter) where filter.op == .isNull: add(filter.field, .null)
      case .unary(let filter) where filter.op == .isNaN: add(filter.field, .double(.nan))
      case .field(let filter) where filter.op == .equal: add(filter.field, filter.value)
      case .field(let filter) where filter.op == .arrayContains:
        if elements[filter.field] == nil { elements[filter.field] = IndexValue.encode(filter.value) }
      default: break
      }
    }
  }

  /// The fields that all alternatives fix to the same value, if the index stores this value without
  /// truncation.
  init(commonTo alternatives: [FixedFields]) {
    for (field, bytes) in alternatives.first?.values ?? [:]
    where bytes.count < IndexValue.truncationLength && alternatives.allSatisfy({ $0.values[field] == bytes })
    {
      values[field] = bytes
    }
  }

  private mutating func add(_ field: FieldPath, _ value: Value) {
    // If two terms require different values of a field, no document matches, so either value may be used.
    if values[field] == nil { values[field] = IndexValue.encode(value) }
  }

  var count: Int { values.count + elements.count }

  func fixes(_ part: CompositeIndex.Part) -> Bool {
    (part.mode == .contains ? elements : values)[part.field] != nil
  }

  /// A fixed field's encoded value in entries.
  func bytes(of part: CompositeIndex.Part) -> [UInt8] {
    let bytes = (part.mode == .contains ? elements : values)[part.field] ?? []
    return part.mode == .descending ? bytes.map { ~$0 } : bytes
  }
}

extension KeyRange {
  /// Narrows a range to the entries whose value after `prefix` is within `bounds`. The bounds are of
  /// ascending encodings; for descending fields they are inverted here.
  fileprivate mutating func narrow(_ prefix: Key, _ bounds: KeyRange, _ mode: CompositeIndex.Mode) {
    guard mode == .descending else {
      narrow(from: prefix + bounds.start)
      narrow(to: bounds.end.map { prefix + $0 })
      return
    }
    // Inverting all bytes reverses the order of encodings, since no encoding is a prefix of another.
    // Therefore lower and upper bound change places.
    if !bounds.start.isEmpty {
      narrow(to: KeyRange.successor(ofPrefix: prefix + bounds.start.map { ~$0 }))
    }
    if let end = bounds.end {
      narrow(from: KeyRange.successor(ofPrefix: prefix + end.map { ~$0 }) ?? prefix)
    }
  }
}
