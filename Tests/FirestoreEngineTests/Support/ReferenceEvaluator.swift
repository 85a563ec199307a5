// The reference implementation of Firestore's documented query rules by full scans. It shares no matcher,
// order or normalization code with the engine.

import FirestoreModel

/// Evaluates queries over all documents in memory.
struct ReferenceEvaluator {
  struct Candidate {
    var path: ResourcePath
    var fields: MapValue
  }

  let database: DatabaseName
  let documents: [ResourcePath: MapValue]

  /// Returns the result in order, with the projection applied.
  func result(of query: Query) -> [(path: ResourcePath, fields: MapValue)] {
    let structured = query.structured
    let orders = Self.orders(of: structured)
    var found = documents.filter { path, fields in
      Self.isInScope(path, query) && orders.allSatisfy { value(path, fields, $0.field) != nil }
        && structured.filter.map { matches(path, fields, $0) } ?? true
        && isInside(path, fields, structured, orders)
    }.map { Candidate(path: $0.key, fields: $0.value) }
    found.sort { precedes($0, $1, orders) }
    return found.dropFirst(structured.offset).prefix(structured.limit ?? .max).map {
      ($0.path, Self.projected($0.fields, structured.select?.paths))
    }
  }

  /// Returns the aggregates. Only documents with all aggregated fields are included. A limit selects the first
  /// documents in the order of these fields.
  func aggregates(_ query: Query, _ operators: [AggregationQuery.Operator]) -> [Value] {
    var base = query
    base.structured.select = nil
    base.structured.limit = nil
    base.structured.offset = 0
    let fields = AggregationQuery(base.structured, operators.map { .init("", $0) }).fields
    var found = result(of: base).filter { path, found in
      fields.allSatisfy { value(path, found, $0) != nil }
    }.map { Candidate(path: $0.path, fields: $0.fields) }
    let structured = query.structured
    if structured.startAt == nil, structured.endAt == nil,
      !structured.orderBy.contains(where: { $0.field.isDocumentID })
    {
      var orders = Self.orders(of: structured)
      let name = orders.removeLast()
      let more = fields.filter { field in !orders.contains { $0.field == field } }
      orders += Set(more).sorted {
        $0.segments.joined(separator: ".").utf8.lexicographicallyPrecedes(
          $1.segments.joined(separator: ".").utf8)
      }
      .map { .init($0, name.direction) }
      found.sort { precedes($0, $1, orders + [name]) }
    }
    let documents = found.dropFirst(structured.offset).prefix(structured.limit ?? .max)
    return operators.map { op in
      switch op {
      case .count(let bound): return .integer(min(Int64(documents.count), bound ?? .max))
      case .sum(let field): return Self.sum(documents.compactMap { value($0.path, $0.fields, field) }).sum
      case .average(let field):
        return Self.sum(documents.compactMap { value($0.path, $0.fields, field) }).mean
      }
    }
  }

  /// Returns the cursor values that position a query after a document.
  func cursorValues(_ path: ResourcePath, _ query: StructuredQuery) -> [Value] {
    Self.orders(of: query).compactMap { value(path, documents[path] ?? [:], $0.field) }
  }

  /// Returns the sum and the average of the numeric values.
  private static func sum(_ values: [Value]) -> (sum: Value, mean: Value) {
    let numbers = values.filter { $0.kind == .number }
    var exact: Int64? = 0
    var total = 0.0
    for number in numbers {
      switch number {
      case .integer(let integer):
        exact = exact.flatMap { sum in
          let (next, overflows) = sum.addingReportingOverflow(integer)
          return overflows ? nil : next
        }
        total += Double(integer)
      case .double(let double):
        exact = nil
        total += double
      default: break
      }
    }
    return (
      exact.map(Value.integer) ?? .double(total),
      numbers.isEmpty ? .null : .double(total / Double(numbers.count))
    )
  }

  // MARK: Scope, order, cursors

  private static func isInScope(_ path: ResourcePath, _ query: Query) -> Bool {
    let parent = query.parent.path.segments
    guard path.count > parent.count, Array(path.segments.prefix(parent.count)) == parent else { return false }
    let selector = query.structured.from.first
    if selector?.allDescendants != true, path.count != parent.count + 2 { return false }
    guard let selector, selector.collectionID != "" else { return true }
    return path.segments[path.count - 2] == selector.collectionID
  }

  /// Returns the explicit orders, the inequality fields by path, and the name with the last explicit
  /// direction.
  static func orders(of query: StructuredQuery) -> [StructuredQuery.Order] {
    var orders = query.orderBy
    let direction = orders.last?.direction ?? .ascending
    var fields: Set<[String]> = []
    func collect(_ filter: Filter) {
      switch filter {
      case .composite(_, let parts): parts.forEach(collect)
      case .field(let leaf):
        switch leaf.op {
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn:
          if !leaf.field.isDocumentID { fields.insert(leaf.field.segments) }
        case .equal, .isIn, .arrayContains, .arrayContainsAny: break
        }
      case .unary(let leaf):
        if leaf.op == .isNotNull || leaf.op == .isNotNaN, !leaf.field.isDocumentID {
          fields.insert(leaf.field.segments)
        }
      }
    }
    if let filter = query.filter { collect(filter) }
    let sorted = fields.sorted { a, b in
      a.lexicographicallyPrecedes(b) { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
    for segments in sorted where !orders.contains(where: { $0.field.segments == segments }) {
      if let field = FieldPath(segments: segments) { orders.append(.init(field, direction)) }
    }
    if !orders.contains(where: { $0.field.isDocumentID }) { orders.append(.init(.documentID, direction)) }
    return orders
  }

  private func value(_ path: ResourcePath, _ fields: MapValue, _ field: FieldPath) -> Value? {
    if field.isDocumentID { return DocumentName(database: database, path: path).map(Value.reference) }
    var value = Value.map(fields)
    for segment in field.segments {
      guard case .map(let map) = value, let next = map.entries.first(where: { $0.key == segment })?.value
      else {
        return nil
      }
      value = next
    }
    return value
  }

  private func precedes(_ a: Candidate, _ b: Candidate, _ orders: [StructuredQuery.Order]) -> Bool {
    for order in orders {
      guard let one = value(a.path, a.fields, order.field), let other = value(b.path, b.fields, order.field)
      else { return false }
      let sign = Self.compare(one, other)
      if sign != 0 { return (sign < 0) == (order.direction == .ascending) }
    }
    return false
  }

  private func isInside(
    _ path: ResourcePath, _ fields: MapValue, _ query: StructuredQuery, _ orders: [StructuredQuery.Order]
  ) -> Bool {
    /// Compares the document with a cursor: negative before it, positive after it.
    func sign(_ cursor: Cursor) -> Int {
      for (order, bound) in zip(orders, cursor.values) {
        guard let documentValue = value(path, fields, order.field) else { return 0 }
        let sign = Self.compare(documentValue, bound)
        if sign != 0 { return order.direction == .ascending ? sign : -sign }
      }
      return 0
    }
    if let start = query.startAt, start.before ? sign(start) < 0 : sign(start) <= 0 { return false }
    if let end = query.endAt, end.before ? sign(end) >= 0 : sign(end) > 0 { return false }
    return true
  }

  private static func projected(_ fields: MapValue, _ select: [FieldPath]?) -> MapValue {
    guard let select else { return fields }
    func keep(_ map: MapValue, _ paths: [[String]]) -> MapValue {
      MapValue(
        map.entries.compactMap { entry -> (String, Value)? in
          let below = paths.filter { $0.first == entry.key }.map { Array($0.dropFirst()) }
          if below.contains(where: \.isEmpty) { return (entry.key, entry.value) }
          guard !below.isEmpty, case .map(let inner) = entry.value else { return nil }
          let kept = keep(inner, below)
          return kept.isEmpty ? nil : (entry.key, .map(kept))
        })
    }
    return keep(fields, select.filter { !$0.isDocumentID }.map(\.segments))
  }

  // MARK: Filters

  private func matches(_ path: ResourcePath, _ fields: MapValue, _ filter: Filter) -> Bool {
    switch filter {
    case .composite(let op, let parts):
      if parts.isEmpty { return true }
      let results = parts.map { matches(path, fields, $0) }
      return op == .and ? !results.contains(false) : results.contains(true)
    case .unary(let leaf):
      guard let value = value(path, fields, leaf.field) else { return false }
      switch leaf.op {
      case .isNull: return value.kind == .null
      case .isNaN: return Self.isNaN(value)
      case .isNotNull: return value.kind != .null
      case .isNotNaN: return value.kind != .null && !Self.isNaN(value)
      }
    case .field(let leaf):
      guard let value = value(path, fields, leaf.field) else { return false }
      return Self.matches(value, leaf.op, leaf.value)
    }
  }

  private static func matches(_ value: Value, _ op: FieldFilter.Operator, _ operand: Value) -> Bool {
    func isSame(_ a: Value, _ b: Value) -> Bool { a.kind == b.kind && compare(a, b) == 0 }
    func equals(_ operand: Value) -> Bool {
      operand.kind != .null && !isNaN(operand) && isSame(value, operand)
    }
    func contains(_ operand: Value) -> Bool {
      guard case .array(let elements) = value, operand.kind != .null, !isNaN(operand), operand.kind != .array
      else { return false }
      return elements.contains { isSame($0, operand) }
    }
    func range(_ accepts: (Int) -> Bool) -> Bool {
      operand.kind != .null && value.kind == operand.kind && !isNaN(value) && !isNaN(operand)
        && accepts(compare(value, operand))
    }
    var list: [Value] { if case .array(let elements) = operand { elements } else { [] } }
    switch op {
    case .equal: return equals(operand)
    case .isIn: return list.contains(where: equals)
    case .arrayContains: return contains(operand)
    case .arrayContainsAny: return list.contains(where: contains)
    case .lessThan: return range { $0 < 0 }
    case .lessThanOrEqual: return range { $0 <= 0 }
    case .greaterThan: return range { $0 > 0 }
    case .greaterThanOrEqual: return range { $0 >= 0 }
    case .notEqual: return operand.kind != .null && value.kind != .null && !isSame(value, operand)
    case .notIn:
      return value.kind != .null && !list.contains { $0.kind == .null || isSame(value, $0) }
    }
  }

  private static func isNaN(_ value: Value) -> Bool {
    if case .double(let number) = value { return number.isNaN }
    return false
  }

  // MARK: Order of values

  /// Returns a negative number, 0 or a positive number if `a` sorts before, with or after `b`.
  static func compare(_ a: Value, _ b: Value) -> Int {
    if a.kind != b.kind { return sign(a.kind.rawValue, b.kind.rawValue) }
    switch (a, b) {
    case (.boolean(let a), .boolean(let b)): return sign(a ? 1 : 0, b ? 1 : 0)
    case (.timestamp(let a), .timestamp(let b)):
      return sign(a.seconds, b.seconds) != 0 ? sign(a.seconds, b.seconds) : sign(a.nanoseconds, b.nanoseconds)
    case (.string(let a), .string(let b)): return lexicographic(Array(a.utf8), Array(b.utf8), sign)
    case (.bytes(let a), .bytes(let b)): return lexicographic(a, b, sign)
    case (.reference(let a), .reference(let b)):
      let database = lexicographic(
        [a.database.project, a.database.database], [b.database.project, b.database.database], compareIDs)
      return database != 0 ? database : lexicographic(a.path.segments, b.path.segments, compareIDs)
    case (.geoPoint(let a), .geoPoint(let b)):
      let latitude = sign(a.latitude, b.latitude)
      return latitude != 0 ? latitude : sign(a.longitude, b.longitude)
    case (.array(let a), .array(let b)): return lexicographic(a, b, compare)
    case (.vector(let a), .vector(let b)):
      return a.count != b.count ? sign(a.count, b.count) : lexicographic(a, b, sign)
    case (.map(let a), .map(let b)):
      func sorted(_ map: MapValue) -> [MapValue.Entry] {
        map.entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      }
      return lexicographic(sorted(a), sorted(b)) { a, b in
        let keys = lexicographic(Array(a.key.utf8), Array(b.key.utf8), sign)
        return keys != 0 ? keys : compare(a.value, b.value)
      }
    default: return a.kind == .number ? compareNumbers(a, b) : 0
    }
  }

  private static func compareNumbers(_ a: Value, _ b: Value) -> Int {
    switch (a, b) {
    case (.integer(let a), .integer(let b)): return sign(a, b)
    case (.double(let a), .double(let b)):
      if a.isNaN || b.isNaN { return sign(a.isNaN ? 0 : 1, b.isNaN ? 0 : 1) }
      return sign(a, b)
    case (.integer(let a), .double(let b)): return -compareNumbers(.double(b), .integer(a))
    case (.double(let a), .integer(let b)):
      // All integers in the tests are exact as doubles.
      return a.isNaN ? -1 : sign(a, Double(b))
    default: return 0
    }
  }

  private static func compareIDs(_ a: String, _ b: String) -> Int {
    func number(_ id: String) -> Int64? {
      guard id.hasPrefix("__id"), id.hasSuffix("__"), id.count > 6 else { return nil }
      return Int64(id.dropFirst(4).dropLast(2))
    }
    switch (number(a), number(b)) {
    case (let a?, let b?): return sign(a, b)
    case (_?, nil): return -1
    case (nil, _?): return 1
    case (nil, nil): return lexicographic(Array(a.utf8), Array(b.utf8), sign)
    }
  }

  private static func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

  private static func lexicographic<T>(_ a: [T], _ b: [T], _ compare: (T, T) -> Int) -> Int {
    for (one, other) in zip(a, b) {
      let sign = compare(one, other)
      if sign != 0 { return sign }
    }
    return sign(a.count, b.count)
  }
}
