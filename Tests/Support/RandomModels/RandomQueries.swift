// Generates random Firestore filters and queries for property tests. The filters and queries name few different fields,
// so that random documents often match.

package import FirestoreModel

extension RandomValues {
  package mutating func fieldPath() -> FieldPath {
    let names = ["a", "b", "a.b", "ä"]
    return FieldPath(segments: (0..<1 + below(2)).map { _ in pick(names) }) ?? .documentID
  }

  /// Returns a random document. Its fields are among those that random filters use.
  package mutating func document() -> (name: DocumentName, fields: MapValue) {
    var fields = MapValue()
    for _ in 0..<below(5) { fields.set(value(), at: fieldPath()) }
    return (documentName(), fields)
  }

  package mutating func leaf() -> Filter {
    if below(5) == 0 { return .unary(UnaryFilter(fieldPath(), pick(UnaryFilter.Operator.allCases))) }
    let op = pick(FieldFilter.Operator.allCases)
    switch op {
    case .isIn, .notIn, .arrayContainsAny:
      return .field(FieldFilter(fieldPath(), op, .array((0..<1 + below(3)).map { _ in value(depth: 2) })))
    default: return .field(FieldFilter(fieldPath(), op, value(depth: 1)))
    }
  }

  package mutating func filter(depth: Int = 0) -> Filter {
    if depth == 2 || below(2) == 0 { return leaf() }
    let isAnd = below(2) == 0
    // An OR without filters is invalid.
    return .composite(
      isAnd ? .and : .or, (0..<(isAnd ? below(4) : 1 + below(3))).map { _ in filter(depth: depth + 1) })
  }

  package mutating func structuredQuery() -> StructuredQuery {
    var query = StructuredQuery(from: [.init(pick(["a", "a-b", "é"]), allDescendants: below(2) == 0)])
    if below(3) > 0 { query.filter = filter() }
    for _ in 0..<below(3) {
      query.orderBy.append(.init(fieldPath(), below(2) == 0 ? .ascending : .descending))
    }
    if below(3) == 0 { query.startAt = Cursor([value()], before: below(2) == 0) }
    if below(3) == 0 { query.endAt = Cursor([value()], before: below(2) == 0) }
    query.offset = below(3)
    if below(2) == 0 { query.limit = below(10) }
    if below(4) == 0 { query.select = FieldMask((0..<below(3)).map { _ in fieldPath() }) }
    if below(5) == 0 {
      query.findNearest = FindNearest(
        field: fieldPath(), vector: [1, 2], measure: pick([.euclidean, .cosine, .dotProduct]), limit: 5,
        distanceResultField: below(2) == 0 ? FieldPath(field: "d.x") : nil,
        distanceThreshold: below(2) == 0 ? 0.5 : nil)
    }
    return query
  }
}
