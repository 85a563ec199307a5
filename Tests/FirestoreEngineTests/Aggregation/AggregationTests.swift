// Tests aggregation queries: which documents they include, the arithmetic of sums and averages, and agreement with the
// results of the base query.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Aggregation queries", .timeLimit(.minutes(10))) struct AggregationTests {
  private static let price = FieldPath(field: "price")

  private static func run(
    _ fixture: EngineFixture, _ base: StructuredQuery, _ operators: [AggregationQuery.Operator],
    _ consistency: ReadConsistency = .latest
  ) async throws -> [Value] {
    let query = AggregationQuery(base, operators.map { AggregationQuery.Aggregation("", $0) })
    let result = try await fixture.engine.runAggregationQuery(
      query, under: fixture.root, consistency: consistency, as: .administrator)
    return operators.indices.map { result.fields["field_\($0 + 1)"] ?? .string("missing") }
  }

  @Test("count respects its bound, the limit, the offset and cursors, and is 0 for an empty result")
  func count() async throws {
    let fixture = try EngineFixture()
    for index in 0..<12 {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["n": .integer(Int64(index))])
    }
    let n = FieldPath(field: "n")
    var query = StructuredQuery(from: [.init("c")])
    #expect(try await Self.run(fixture, query, [.count(upTo: nil), .count(upTo: 5)]) == [12, 5])
    #expect(try await Self.run(fixture, query, [.count(upTo: 3), .count(upTo: 5)]) == [3, 5])
    query.limit = 7
    query.offset = 6
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)]) == [6])
    query = StructuredQuery(
      from: [.init("c")], orderBy: [.init(n)], startAt: Cursor([3], before: false),
      endAt: Cursor([9], before: false))
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)]) == [6])
    query = StructuredQuery(from: [.init("none")])
    #expect(
      try await Self.run(fixture, query, [.count(upTo: nil), .sum(n), .average(n)]) == [0, 0, .null])
    query.limit = 0
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)]) == [0])
  }

  @Test("a limit selects the first documents in the order of the aggregated fields")
  func firstByFields() async throws {
    let fixture = try EngineFixture()
    for (id, price, other) in [("a", 9, 1), ("b", 1, 2), ("c", 5, 0), ("d", 5, 3)] as [(String, Int64, Int64)]
    {
      try await fixture.set(ResourcePath(["c", id]), ["price": .integer(price), "other": .integer(other)])
    }
    try await fixture.set(ResourcePath(["c", "0"]), ["other": 100])
    let (price, other, sum) = (Self.price, FieldPath(field: "other"), AggregationQuery.Operator.sum)
    var query = StructuredQuery(from: [.init("c")], limit: 1)
    #expect(
      try await Self.run(fixture, query, [sum(price), .average(price), .count(upTo: nil)]) == [1, 1.0, 1])
    query.limit = 2
    #expect(try await Self.run(fixture, query, [sum(price)]) == [6])
    query.offset = 3
    #expect(try await Self.run(fixture, query, [sum(price)]) == [9])
    // The query's explicit order comes first. The aggregated field is a further sort key with the same direction.
    query = StructuredQuery(from: [.init("c")], orderBy: [.init(other, .descending)], limit: 1)
    #expect(try await Self.run(fixture, query, [sum(price)]) == [5])
    query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(price, .greaterThanOrEqual, 5)),
      orderBy: [.init(price, .descending)], offset: 1, limit: 1)
    #expect(try await Self.run(fixture, query, [sum(other)]) == [3])
    // A cursor refers to the query's own order, so the aggregated fields are not added to the order.
    query = StructuredQuery(
      from: [.init("c")], startAt: Cursor([.reference(try fixture.name("c/b"))], before: true), limit: 1)
    #expect(try await Self.run(fixture, query, [sum(price)]) == [1])
    // A cursor without values refers to no order.
    query = StructuredQuery(from: [.init("c")], startAt: Cursor([], before: true), limit: 2)
    #expect(try await Self.run(fixture, query, [sum(price)]) == [6])
    query = StructuredQuery(from: [.init("c")], orderBy: [.init(.documentID)], limit: 1)
    #expect(try await Self.run(fixture, query, [sum(price)]) == [9])
  }

  @Test("an aggregation skips documents without its field, and so does a count in the same request")
  func existence() async throws {
    let fixture = try EngineFixture()
    for (index, fields) in [
      ["price": 1], ["price": 2.5], ["price": "text"], ["price": .null], ["other": 1], [:],
    ].enumerated() as EnumeratedSequence<[MapValue]> {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), fields)
    }
    let query = StructuredQuery(from: [.init("c")])
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)]) == [6])
    #expect(
      try await Self.run(fixture, query, [.count(upTo: nil), .sum(Self.price), .average(Self.price)])
        == [4, 3.5, 1.75])
    #expect(
      try await Self.run(fixture, query, [.sum(FieldPath(field: "other")), .sum(Self.price)]) == [0, 0])
  }

  @Test(
    "integers add exactly and become a double only on overflow; NaN and infinities propagate",
    arguments: [
      ([1, 2, 3], 6, 2.0), ([1, 2.0], 3.0, 1.5),
      ([.integer(.max), 1, -101], .integer(.max - 100), .double(0x1p63 / 3)),
      ([.integer(.max), 1], .double(0x1p63), 0x1p62), ([.integer(.min), -1], .double(-0x1p63), -0x1p62),
      ([.integer(.min), .integer(.min), .integer(.max), .integer(.max), 2], 0, 0.0),
      ([1, .double(.nan)], .double(.nan), .double(.nan)),
      ([.double(.infinity), .double(-.infinity)], .double(.nan), .double(.nan)),
      ([.double(.infinity), 7], .double(.infinity), .double(.infinity)),
      (["a", true], 0, .null), ([-5, "a"], -5, -5.0),
    ] as [([Value], Value, Value)])
  func sums(numbers: [Value], sum: Value, average: Value) async throws {
    let fixture = try EngineFixture()
    for (index, number) in numbers.enumerated() {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["price": number])
    }
    let query = StructuredQuery(from: [.init("c")])
    #expect(try await Self.run(fixture, query, [.sum(Self.price), .average(Self.price)]) == [sum, average])
  }

  @Test(
    "default aliases number the unnamed aggregations; invalid aliases, counts and fields are rejected")
  func names() async throws {
    let fixture = try EngineFixture()
    func names(_ aggregations: [(String, AggregationQuery.Operator)]) async throws -> [String] {
      let query = AggregationQuery(
        StructuredQuery(from: [.init("c")]), aggregations.map { AggregationQuery.Aggregation($0.0, $0.1) })
      return try await fixture.engine.runAggregationQuery(query, under: fixture.root, as: .administrator)
        .fields.entries.map(\.key)
    }
    let count = AggregationQuery.Operator.count(upTo: nil)
    #expect(try await names([("", count), ("x", count), ("", count)]) == ["field_1", "field_2", "x"])
    for (aggregations, message) in [
      ([], "Aggregations can not be empty."),
      ([("x", count), ("x", count)], "Aggregation aliases contain duplicate alias: x."),
      ([("field_1", count), ("", count)], "Aggregation aliases contain duplicate alias: field_1."),
      (
        Array(repeating: ("", count), count: 6),
        "The maximum number of aggregations allowed in an aggregation query is 5. Received: 6"
      ),
    ] as [([(String, AggregationQuery.Operator)], String)] {
      let rejection = await failure { try await names(aggregations) }
      #expect(rejection == .invalidArgument(message))
    }
    for aggregations in [
      [("__x__", count)],
      [(String(repeating: "x", count: 1_501), count)],
      [("", .sum(.documentID))], [("", .average(.documentID))], [("", .count(upTo: 0))],
      [("", .count(upTo: -1))],
    ] as [[(String, AggregationQuery.Operator)]] {
      #expect(await failure { try await names(aggregations) }?.code == .invalidArgument)
    }
    #expect(try await names(Array(repeating: ("", count), count: 5)).count == 5)
  }

  @Test("aggregates of random queries match the queries' results", arguments: 1...4)
  func randomQueries(seed: UInt64) async throws {
    let fixture = try EngineFixture()
    var model = RandomModel(seed: seed &+ 900, database: fixture.database)
    for _ in 0..<60 { try await fixture.set(model.path(), model.fields()) }
    var valid = 0
    for _ in 0..<80 {
      let query = model.query(root: fixture.root)
      guard (try? NormalizedQuery(query)) != nil else { continue }
      valid += 1
      var base = query.structured
      base.select = nil
      let found = try await fixture.query(Query(parent: query.parent, base))
      let result = try await fixture.engine.runAggregationQuery(
        AggregationQuery(query.structured, [.init("n", .count(upTo: nil))]), under: query.parent,
        as: .administrator)
      #expect(result.fields["n"] == .integer(Int64(found.count)))
      guard base.limit == nil, base.offset == 0 else { continue }
      let field = model.field()
      let values = try found.compactMap { try $0.fields().value(at: field) }
      let sums = try await fixture.engine.runAggregationQuery(
        AggregationQuery(query.structured, [.init("n", .count(upTo: nil)), .init("s", .sum(field))]),
        under: query.parent, as: .administrator)
      #expect(sums.fields["n"] == .integer(Int64(values.count)))
      var naive = 0.0
      for value in values {
        switch value {
        case .integer(let number): naive += Double(number)
        case .double(let number): naive += number
        default: break
        }
      }
      let sum: Double? =
        switch sums.fields["s"] {
        case .integer(let number)?: Double(number)
        case .double(let number)?: number
        default: nil
        }
      #expect(
        sum.map { $0 == naive || ($0.isNaN && naive.isNaN) } == true, "\(String(describing: sum)), \(naive)")
    }
    #expect(valid > 20)
  }

  @Test(
    "an aggregation in a transaction locks the range that it counts; an aggregation at a past time counts the past state"
  )
  func consistency() async throws {
    let fixture = try EngineFixture(lockWait: 0)
    let first = try #require(try await fixture.set("c/a", ["price": 1]).commitTime)
    try await fixture.set("c/b", ["price": 2])
    let query = StructuredQuery(from: [.init("c")])
    #expect(
      try await Self.run(fixture, query, [.count(upTo: nil), .sum(Self.price)], .readTime(first)) == [1, 1])
    let token = try await fixture.begin()
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)], .transaction(token)) == [2])
    let rejection = await failure { try await fixture.set("c/new", ["price": 3]) }
    #expect(rejection?.code == .aborted)
    try await fixture.commit(
      [Write(.update(try fixture.name("totals/c"), fields: ["count": 2]))], transaction: token)
    try await fixture.set("c/new", ["price": 3])
    let begun = try await fixture.engine.runAggregationQuery(
      AggregationQuery(query, [.init("n", .count(upTo: nil))]), under: fixture.root,
      consistency: .newTransaction(.readOnly()), as: .administrator)
    #expect(begun.fields["n"] == 3)
    let inside = try #require(begun.transaction)
    try await fixture.set("c/later", [:])
    #expect(try await Self.run(fixture, query, [.count(upTo: nil)], .transaction(inside)) == [3])
  }

  @Test("a caller without the list permission may not aggregate")
  func denied() async throws {
    let fixture = try EngineFixture(policy: LockedPolicy())
    try await fixture.engine.createDatabase(fixture.database)
    let query = AggregationQuery(StructuredQuery(from: [.init("c")]), [.init("", .count(upTo: nil))])
    let rejection = await failure {
      try await fixture.engine.runAggregationQuery(
        query, under: fixture.root, as: Principal.user("u"))
    }
    #expect(rejection?.code == .permissionDenied)
  }
}
