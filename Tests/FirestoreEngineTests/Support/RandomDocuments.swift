// Generates random documents and queries from a seed. Documents and queries have few different fields and values, so that
// filters often match.

import FirestoreModel
import RandomModels
import Testing

/// Generates documents and queries.
struct RandomModel {
  var random: SeededGenerator
  let database: DatabaseName
  /// The fields and values of the documents.
  var schema = RandomSchema.standard

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

  mutating func scalar() -> Value { pick(schema.values) }

  /// Returns an array element: any value except an array.
  private mutating func element() -> Value {
    let value = scalar()
    return value.kind == .array ? .null : value
  }

  mutating func value() -> Value {
    if chance(15) { return .array((0..<Int.random(in: 0...3, using: &random)).map { _ in element() }) }
    if chance(5) { return .map(["x": scalar()]) }
    return scalar()
  }

  mutating func fields() -> MapValue {
    var fields = MapValue()
    for field in schema.single where chance(75) { fields[field] = value() }
    for (field, inner) in schema.maps where chance(60) {
      var map = MapValue()
      for name in inner where chance(70) { map[name] = value() }
      fields[field] = .map(map)
    }
    for field in schema.lists where chance(60) { fields[field] = .array((0..<3).map { _ in element() }) }
    return fields
  }

  /// Generates writes and applies them to `documents`.
  mutating func writes(atMost maximum: Int, on documents: inout [ResourcePath: MapValue]) throws -> [Write] {
    try (0..<Int.random(in: 1...maximum, using: &random)).map { _ in
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

  mutating func field() -> FieldPath { pick(schema.paths) }

  /// Returns a field that usually contains an array; any field if the schema has no lists.
  private mutating func list() -> FieldPath {
    schema.lists.isEmpty ? field() : FieldPath(field: pick(schema.lists))
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
      return .field(FieldFilter(schema.paths[0], pick([.lessThan, .greaterThanOrEqual]), scalar()))
    case 6: return .field(FieldFilter(field, .isIn, .array([value(), value()])))
    case 7: return .field(FieldFilter(list(), .arrayContains, scalar()))
    case 8:
      return .field(FieldFilter(list(), .arrayContainsAny, .array([scalar(), scalar()])))
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
    if chance(15) { query.select = pick([[], [.documentID], [schema.paths[0]]]) }
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

/// Returns a query's result by its definition: filter, sort, offset and limit.
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
