// Tests queries: their results, compared with a naive evaluation over random documents, and the form of responses.

import Access
import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Queries", .timeLimit(.minutes(10))) struct QueryTests {
  @Test("query operands are truncated to microseconds, as stored timestamps are")
  func timestampPrecision() async throws {
    let fixture = try EngineFixture()
    let time = Value.timestamp(Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789))
    try await fixture.set("c/d", ["t": time, "list": .array([time, 1]), "map": .map(["t": time])])
    let (t, list, map) = (FieldPath(field: "t"), FieldPath(field: "list"), FieldPath(field: "map"))
    func count(_ filter: Filter?, startAt: Cursor? = nil, endAt: Cursor? = nil) async throws -> Int {
      let query = StructuredQuery(
        from: [.init("c")], filter: filter, orderBy: startAt == nil && endAt == nil ? [] : [.init(t)],
        startAt: startAt,
        endAt: endAt)
      return try await fixture.query(Query(parent: fixture.root, query)).count
    }
    for (field, op, value) in [
      (t, .equal, time), (t, .lessThanOrEqual, time), (t, .greaterThanOrEqual, time),
      (t, .isIn, .array([time])),
      (list, .arrayContains, time), (list, .arrayContainsAny, .array([time])),
      (list, .equal, .array([time, 1])),
      (map, .equal, .map(["t": time])),
    ] as [(FieldPath, FieldFilter.Operator, Value)] {
      #expect(try await count(.field(FieldFilter(field, op, value))) == 1, "\(op)")
      #expect(try await count(.composite(.or, [.field(FieldFilter(field, op, value))])) == 1, "\(op)")
    }
    for (op, value) in [
      (.notEqual, time), (.lessThan, time), (.greaterThan, time), (.notIn, .array([time])),
    ] as [(FieldFilter.Operator, Value)] {
      #expect(try await count(.field(FieldFilter(t, op, value))) == 0, "\(op)")
    }
    #expect(try await count(nil, startAt: Cursor([time], before: true)) == 1)
    #expect(try await count(nil, startAt: Cursor([time], before: false)) == 0)
    #expect(try await count(nil, endAt: Cursor([time], before: false)) == 1)
    #expect(try await count(nil, endAt: Cursor([time], before: true)) == 0)
  }

  @Test("random queries over random documents return the results of a naive evaluation", arguments: 1...6)
  func randomQueries(seed: UInt64) async throws {
    let fixture = try EngineFixture()
    var model = RandomModel(seed: seed, database: fixture.database)
    var documents: [ResourcePath: MapValue] = [:]
    for round in 0..<3 {
      for _ in 0..<30 {
        let path = model.path()
        if model.chance(20) {
          try await fixture.delete(path)
          documents[path] = nil
        } else {
          let fields = model.fields()
          try await fixture.set(path, fields)
          documents[path] = fields
        }
      }
      var valid = 0
      for _ in 0..<100 {
        let query = model.query(root: fixture.root)
        guard let normalized = try? NormalizedQuery(query) else { continue }
        valid += 1
        let expected = naiveResult(normalized, documents, fixture.database)
        let found = try await fixture.query(query)
        #expect(found.map(\.name.path) == expected, "round \(round): \(normalized.canonicalForm)")
        for document in found {
          #expect(try document.fields() == normalized.projected(documents[document.name.path] ?? [:]))
        }
      }
      #expect(valid > 25)
    }
  }

  @Test("pages of a long result join without gaps or duplicates", arguments: [1])
  func queryPages(seed: UInt64) async throws {
    let fixture = try EngineFixture()
    var random = SeededGenerator(seed: seed)
    var documents: [ResourcePath: MapValue] = [:]
    var writes: [Write] = []
    for index in 0..<900 {
      let path: ResourcePath = ResourcePath(["c", "d\(index)"])
      let fields: MapValue = [
        "n": .integer(Int64.random(in: 0...5, using: &random)),
        "k": .integer(Int64.random(in: 0...50, using: &random)),
      ]
      documents[path] = fields
      writes.append(Write(.update(try fixture.name(path), fields: fields)))
    }
    try await fixture.commit(writes)
    let n = FieldPath(field: "n")
    let k = FieldPath(field: "k")
    for orders in [
      [], [.init(n)], [.init(n, .descending)], [.init(n), .init(.documentID, .descending)],
      [.init(n), .init(k, .descending)],
      [.init(.documentID, .descending)],
    ] as [[StructuredQuery.Order]] {
      for group in [false, true] {
        let query = StructuredQuery(from: [.init("c", allDescendants: group)], orderBy: orders, offset: 3)
        let normalized = try NormalizedQuery(Query(parent: fixture.root, query))
        let found = try await fixture.query(query)
        #expect(found.map(\.name.path) == naiveResult(normalized, documents, fixture.database))
      }
    }
    let equal = StructuredQuery(from: [.init("c")], filter: .field(FieldFilter(n, .lessThan, 4)))
    let found = try await fixture.query(equal)
    let normalized = try NormalizedQuery(Query(parent: fixture.root, equal))
    #expect(found.map(\.name.path) == naiveResult(normalized, documents, fixture.database))
  }

  @Test("an empty result is one page with a read time, and skipped results are counted")
  func responseShapes() async throws {
    let fixture = try EngineFixture()
    func run(_ query: StructuredQuery) async throws -> [QueryPage] {
      let pages = Collected<QueryPage>()
      try await fixture.engine.runQuery(Query(parent: fixture.root, query), as: .administrator) {
        pages.append($0)
      }
      return pages.all
    }
    let empty = try await run(StructuredQuery(from: [.init("c")]))
    #expect(empty.count == 1)
    #expect(empty[0].documents.isEmpty && empty[0].isLast && empty[0].transaction == nil)
    for id in ["a", "b", "d"] { try await fixture.set(ResourcePath(["c", id]), [:]) }
    let skipping = try await run(StructuredQuery(from: [.init("c")], offset: 2))
    #expect(skipping.map(\.skippedResults) == [2])
    #expect(skipping[0].documents.map(\.name.id) == ["d"])
    let beyond = try await run(StructuredQuery(from: [.init("c")], offset: 9))
    #expect(beyond.map(\.skippedResults) == [3])
    #expect(try await run(StructuredQuery(from: [.init("c")], limit: 0)).map(\.documents.count) == [0])
  }

  @Test("an intersection of a rare and a common value reads few index entries")
  func mergeJoin() async throws {
    let store = try MemoryStore()
    let fixture = try EngineFixture(store: store)
    for start in stride(from: 0, to: 5_000, by: 500) {
      try await fixture.commit(
        try (start..<start + 500).map { index in
          Write(
            .update(
              try fixture.name(ResourcePath(["c", "d\(index)"])),
              fields: ["rare": .integer(Int64(index % 500)), "common": .integer(Int64(index % 2))]))
        })
    }
    let query = try PreparedQuery(
      Query(
        parent: fixture.root,
        StructuredQuery(
          from: [.init("c")],
          filter: .composite(
            .and,
            [
              .field(FieldFilter(FieldPath(field: "rare"), .equal, 7)),
              .field(FieldFilter(FieldPath(field: "common"), .equal, 1)),
            ]))), .standard)
    let database = try await fixture.engine.database(fixture.database)
    let name = fixture.database
    let (found, visited) = try await database.rows.read(at: nil) { view in
      let counting = CountingView(view)
      var run = QueryRun(query, database.indexes)
      let page = try run.nextPage(counting, name)
      return (page.documents.count, counting.visited)
    }
    #expect(found == 10)
    #expect(visited < 150)
  }

  @Test("a read at a past time returns the state of that time")
  func pastReads() async throws {
    let fixture = try EngineFixture()
    let first = try #require(try await fixture.set("c/a", ["n": 1]).commitTime)
    let second = try #require(try await fixture.set("c/b", ["n": 1]).commitTime)
    try await fixture.set("c/a", ["n": 2])
    try await fixture.delete("c/b")
    let query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(FieldPath(field: "n"), .equal, 1)))
    #expect(try await fixture.query(query, .readTime(first)).map(\.name.id) == ["a"])
    #expect(try await fixture.query(query, .readTime(second)).map(\.name.id) == ["a", "b"])
    #expect(try await fixture.query(query).isEmpty)
    #expect(try await fixture.get("c/a", .readTime(first)) == ["n": 1])
    let future = Timestamp(seconds: 4_000_000_000)
    let error = await failure { try await fixture.get("c/a", .readTime(future)) }
    #expect(error == .invalidArgument("The requested 'read_time' cannot be in the future."))
    for time in [
      Timestamp(seconds: 253_402_300_800), Timestamp(seconds: -62_135_596_801),
      Timestamp(seconds: 5, nanoseconds: 1_000_000_000),
    ] {
      let error = await failure { try await fixture.get("c/a", .readTime(time)) }
      #expect(
        error
          == .invalidArgument(
            "The requested 'read_time' must lie in the years 1 to 9999, with 0 to 999,999,999 nanoseconds."))
    }
    let early = await failure { try await fixture.get("c/a", .readTime(Timestamp(seconds: 5))) }
    #expect(early?.code == .invalidArgument)
  }
}
