// The cost of queries in rows read, and their memory for sorting. Costs are counted, not timed.

import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Query costs", .timeLimit(.minutes(10))) struct QueryCostTests {
  private static let a = FieldPath(field: "a")
  private static let b = FieldPath(field: "b")

  /// Writes documents with few values of `a` and many values of `b`.
  private static func fill(_ fixture: EngineFixture, _ count: Int, values: Int) async throws {
    for start in stride(from: 0, to: count, by: 500) {
      try await fixture.commit(
        try (start..<min(start + 500, count)).map { index in
          Write(
            .update(
              try fixture.name(ResourcePath(["c", "d\(index)"])),
              fields: [
                "a": .integer(Int64(index % values)), "b": .integer(Int64((index * 7919) % 10_007)),
              ]))
        })
    }
  }

  @Test("paging through a long run of equal values reads the run once", arguments: [1, 3])
  func longRuns(values: Int) async throws {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store)
    let count = 3_000
    try await Self.fill(fixture, count, values: values)
    for direction in [StructuredQuery.Direction.ascending, .descending] {
      let query = StructuredQuery(
        from: [.init("c")], orderBy: [.init(Self.a, direction), .init(Self.b, .descending)])
      _ = store.takeCount()
      let found = try await fixture.query(query)
      let cost = store.takeCount()
      #expect(found.count == count)
      let keys = try found.map { document -> (Int64, Int64) in
        guard case .integer(let a)? = try document.fields()["a"],
          case .integer(let b)? = try document.fields()["b"]
        else { return (0, 0) }
        return (direction == .ascending ? a : -a, -b)
      }
      for (one, next) in zip(keys, keys.dropFirst()) { #expect(one <= next) }
      // Each result costs an index entry and a document row, and a page boundary reads some rows twice.
      #expect(cost < 3 * count, "\(cost) rows for \(count) results")
    }
  }

  @Test("a disjunction of equalities in name order reads each match once, page by page")
  func disjunctionInNameOrder() async throws {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store)
    let count = 2_000
    try await Self.fill(fixture, count, values: 4)
    for (isReverse, limit) in [(false, nil), (true, nil), (false, 10)] as [(Bool, Int?)] {
      let query = StructuredQuery(
        from: [.init("c")],
        filter: .composite(
          .or,
          [
            .field(FieldFilter(Self.a, .isIn, .array([0, 1]))), .field(FieldFilter(Self.a, .equal, 2)),
            .field(FieldFilter(Self.b, .equal, 7919)),
          ]), orderBy: [.init(.documentID, isReverse ? .descending : .ascending)], limit: limit)
      _ = store.takeCount()
      let found = try await fixture.query(query)
      let cost = store.takeCount()
      #expect(found.count == limit ?? count * 3 / 4)
      for (one, next) in zip(found, found.dropFirst()) {
        let order = DocumentName.compare(one.name, next.name)
        #expect(order == (isReverse ? .descending : .ascending))
      }
      #expect(cost < (limit == nil ? 3 * count : 200), "\(cost) rows for \(found.count) results")
    }
  }

  @Test("a query without an index for its order sorts in memory; above the limit its error names the index")
  func sortLimit() async throws {
    let fixture = try EngineFixture()
    try await Self.fill(fixture, 600, values: 2)
    let database = try await fixture.engine.database(fixture.database)
    let name = fixture.database
    func run(_ structured: StructuredQuery, maximumSortBytes: Int) async throws -> Int {
      let query = try PreparedQuery(Query(parent: fixture.root, structured), .standard)
      return try await database.rows.read(at: nil) { view in
        var run = QueryRun(query, database.indexes, maximumSortBytes: maximumSortBytes)
        var count = 0
        while true {
          let page = try run.nextPage(view, name)
          count += page.documents.count
          if page.isLast { return count }
        }
      }
    }
    var query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(Self.a, .lessThan, 9)),
      orderBy: [.init(Self.a), .init(Self.b, .descending)])
    // The query sorts the documents of one value of `a` at a time. Each such group fits into the limit, but all groups
    // together do not.
    #expect(try await run(query, maximumSortBytes: 200_000) == 600)
    let rejection = await failure { try await run(query, maximumSortBytes: 50_000) }
    #expect(rejection?.code == .failedPrecondition)
    #expect(rejection?.message.hasPrefix("The query requires an index.") == true)
    #expect(rejection?.message.contains("collection c on (a ASC, b DESC, __name__ DESC)") == true)
    // A limit keeps only the first results in memory.
    query.limit = 20
    #expect(try await run(query, maximumSortBytes: 50_000) == 20)
    // If no index has even the first order field, the query sorts all results in memory.
    let group = StructuredQuery(
      from: [.init("c", allDescendants: true)], filter: .field(FieldFilter(Self.a, .equal, 1)),
      orderBy: [.init(Self.b)])
    #expect(try await run(group, maximumSortBytes: 200_000) == 300)
    let unsorted = await failure { try await run(group, maximumSortBytes: 20_000) }
    #expect(unsorted?.message.contains("collection group c on (a ASC, b ASC, __name__ ASC)") == true)
  }

  @Test("more than 64 MiB of unsorted results is FAILED_PRECONDITION, and a limit makes the query succeed")
  func sortLimitOfLargeDocuments() async throws {
    let fixture = try EngineFixture()
    let bytes = Value.bytes([UInt8](repeating: 7, count: 1_000_000))
    for index in 0..<70 {
      try await fixture.set(
        ResourcePath(["c", "d\(index)"]), ["a": 1, "b": .integer(Int64(index % 7)), "x": bytes])
    }
    var query = StructuredQuery(from: [.init("c")], orderBy: [.init(Self.a), .init(Self.b, .descending)])
    let rejection = await failure { try await fixture.query(query) }
    #expect(rejection?.code == .failedPrecondition)
    #expect(rejection?.message.contains("64 MiB") == true)
    query.limit = 3
    #expect(try await fixture.query(query).count == 3)
    query.orderBy = [.init(Self.a)]
    query.limit = nil
    #expect(try await fixture.query(query).count == 70)
  }
}
