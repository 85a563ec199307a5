// Random documents and queries from a seed, over few fields and few values, so that conditions meet often.

import FirestoreModel
import RandomModels
import Testing

/// Makes documents and queries.
struct RandomModel {
  var random: SeededGenerator
  let database: DatabaseName

  static let fields = ["a", "b", "c", "m.x", "m.y", "tags"]
  static let collections: [ResourcePath] = ["c", "d", "c/d1/c", "c/d2/sub", "x/missing/c", "c/d1/c/d3/c"]

  init(seed: UInt64, database: DatabaseName) {
    random = SeededGenerator(seed: seed)
    self.database = database
  }

  mutating func pick<T>(_ elements: [T]) -> T { elements[Int.random(in: 0..<elements.count, using: &random)] }
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  mutating func path() -> ResourcePath {
    let ids = ["__id7__", "__id-3__", "d1", "d2", "d3", "d4", "d5", "e-1", "é", "z"]
    return pick(RandomModel.collections).appending(pick(ids))
  }

  mutating func scalar() -> Value {
    let long = String(repeating: "l", count: 1_600)
    let reference = DocumentName(database: database, path: "c/d1").map(Value.reference) ?? .null
    return pick([
      .null, true, false, 0, 1, 2, 3, 1.0, 2.5, -0.0, .double(.nan), .double(.infinity), "", "a", "b", "ab",
      .string(long), .string(long + "1"), .bytes([1, 2]), .timestamp(Timestamp(microseconds: 5)), reference,
      .geoPoint(GeoPoint(latitude: 1, longitude: 2)), .vector([1, 2]),
    ])
  }

  mutating func value() -> Value {
    if chance(15) { return .array((0..<Int.random(in: 0...3, using: &random)).map { _ in scalar() }) }
    if chance(5) { return .map(["x": scalar()]) }
    return scalar()
  }

  mutating func fields() -> MapValue {
    var fields = MapValue()
    for field in ["a", "b", "c"] where chance(75) { fields[field] = value() }
    if chance(60) {
      var map = MapValue()
      if chance(70) { map["x"] = value() }
      if chance(70) { map["y"] = value() }
      fields["m"] = .map(map)
    }
    if chance(60) { fields["tags"] = .array((0..<3).map { _ in scalar() }) }
    return fields
  }

  /// Some writes, which are also applied to the documents as a reader sees them.
  mutating func writes(atMost most: Int, on documents: inout [ResourcePath: MapValue]) throws -> [Write] {
    try (0..<Int.random(in: 1...most, using: &random)).map { _ in
      let path = path()
      let name = try #require(DocumentName(database: database, path: path))
      if chance(25) {
        documents[path] = nil
        return Write(.delete(name))
      }
      let fields = fields()
      documents[path] = fields
      return Write(.update(name, fields: fields))
    }
  }

  // MARK: Queries

  mutating func field() -> FieldPath {
    FieldPath(segments: pick(RandomModel.fields).split(separator: ".").map(String.init)) ?? .documentID
  }

  mutating func filter(depth: Int = 0) -> Filter {
    if depth < 2, chance(30) {
      let parts = (0..<Int.random(in: 1...3, using: &random)).map { _ in filter(depth: depth + 1) }
      return .composite(chance(60) ? .and : .or, parts)
    }
    let field = field()
    switch Int.random(in: 0..<12, using: &random) {
    case 0...3: return .field(FieldFilter(field, .equal, value()))
    case 4:
      return .field(
        FieldFilter(field, pick([.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]), value()))
    case 5:
      return .field(FieldFilter(FieldPath(field: "a"), pick([.lessThan, .greaterThanOrEqual]), scalar()))
    case 6: return .field(FieldFilter(field, .isIn, .array([value(), value()])))
    case 7: return .field(FieldFilter(FieldPath(field: "tags"), .arrayContains, scalar()))
    case 8:
      return .field(FieldFilter(FieldPath(field: "tags"), .arrayContainsAny, .array([scalar(), scalar()])))
    case 9:
      return .field(FieldFilter(field, pick([.notEqual, .notIn]), chance(50) ? .array([value()]) : value()))
    case 10: return .unary(UnaryFilter(field, pick([.isNull, .isNaN, .isNotNull, .isNotNaN])))
    default:
      let name = DocumentName(database: database, path: path()).map(Value.reference) ?? .null
      return .field(FieldFilter(.documentID, pick([.equal, .lessThan, .greaterThanOrEqual]), name))
    }
  }

  mutating func query(root: ParentName) -> Query {
    let parents = [root, root, root, ParentName(database: database, path: "c/d1") ?? root]
    var query = StructuredQuery()
    switch Int.random(in: 0..<10, using: &random) {
    case 0: break
    case 1: query.from = [.init("", allDescendants: true)]
    case 2, 3: query.from = [.init("c", allDescendants: true)]
    case 4: query.from = [.init("d")]
    default: query.from = [.init("c")]
    }
    if chance(75) { query.filter = filter() }
    let count = pick([0, 0, 1, 1, 2])
    for _ in 0..<count { query.orderBy.append(.init(field(), pick([.ascending, .descending]))) }
    if chance(20) { query.orderBy.append(.init(.documentID, pick([.ascending, .descending]))) }
    if chance(30) { query.limit = Int.random(in: 0...6, using: &random) }
    if chance(15) { query.offset = Int.random(in: 0...4, using: &random) }
    if chance(15) { query.select = pick([[], [.documentID], [FieldPath(field: "a")]]) }
    for isStart in [true, false] where chance(20) {
      let orders = query.normalizedOrder
      let values = orders.prefix(Int.random(in: 1...orders.count, using: &random)).map { order -> Value in
        order.field.isDocumentID
          ? (DocumentName(database: database, path: path()).map(Value.reference) ?? .null) : value()
      }
      let cursor = Cursor(values, before: chance(50))
      if isStart { query.startAt = cursor } else { query.endAt = cursor }
    }
    return Query(parent: pick(parents), query)
  }
}

/// A query's result by its definition: all documents that match, sorted, then offset and limit.
func naiveResult(_ query: NormalizedQuery, _ documents: [ResourcePath: MapValue], _ database: DatabaseName)
  -> [ResourcePath]
{
  let matching = documents.compactMap { path, fields -> (DocumentName, MapValue)? in
    guard let name = DocumentName(database: database, path: path), query.matches(name, fields) else {
      return nil
    }
    return (name, fields)
  }
  let sorted = matching.sorted { query.compare($0.0, $0.1, $1.0, $1.1) == .ascending }
  return sorted.dropFirst(query.offset).prefix(query.limit ?? .max).map(\.0.path)
}
