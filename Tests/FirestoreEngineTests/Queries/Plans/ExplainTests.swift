// Tests explained queries: the plan, and statistics that match the rows that were really read.

import Access
import FirestoreModel
import Testing

@testable import FirestoreEngine

@Suite("Query explanation", .timeLimit(.minutes(10))) struct ExplainTests {
  private static func filledFixture() async throws -> EngineFixture {
    let fixture = try EngineFixture()
    for index in 0..<40 {
      let fields: MapValue = [
        "n": .integer(Int64(index)), "odd": .boolean(index % 2 == 1), "tags": [.string("t\(index % 4)")],
      ]
      try await fixture.set(ResourcePath(["c", "d\(100 + index)"]), fields)
    }
    return fixture
  }

  private static func pages(
    _ fixture: EngineFixture, _ query: StructuredQuery, _ mode: ExplainMode
  ) async throws -> [QueryPage] {
    let pages = Collected<QueryPage>()
    try await fixture.engine.runQuery(
      Query(parent: fixture.root, query), explain: mode, as: .administrator
    ) { pages.append($0) }
    return pages.all
  }

  private static func filter(_ field: String, _ op: FieldFilter.Operator, _ value: Value) -> Filter {
    .field(FieldFilter(FieldPath(field: field), op, value))
  }

  @Test("a plan names its indexes and reads no results")
  func plans() async throws {
    let fixture = try await Self.filledFixture()
    let n = FieldPath(field: "n")
    let equalities = Filter.composite(
      .and, [Self.filter("odd", .equal, true), Self.filter("tags", .arrayContains, "t1")])
    let cases: [(StructuredQuery, [(String, String)])] = [
      (StructuredQuery(from: [.init("c")]), [("Collection", "(__name__ ASC)")]),
      (
        StructuredQuery(from: [.init("c")], orderBy: [.init(n, .descending)]),
        [("Collection", "(n DESC, __name__ DESC)")]
      ),
      (
        StructuredQuery(from: [.init("c")], filter: equalities),
        [("Collection", "(odd ASC, __name__ ASC)"), ("Collection", "(tags CONTAINS, __name__ ASC)")]
      ),
      (
        StructuredQuery(from: [.init("c", allDescendants: true)]), [("Collection group", "(__name__ ASC)")]
      ),
      (StructuredQuery(from: [.init("", allDescendants: true)]), [("Database", "(__name__ ASC)")]),
      (StructuredQuery(from: [.init("c")], filter: Self.filter("n", .equal, .null)), []),
    ]
    for (query, expected) in cases {
      let pages = try await Self.pages(fixture, query, .plan)
      #expect(pages.count == 1 && pages[0].documents.isEmpty && pages[0].isLast)
      let explanation = try #require(pages[0].explanation)
      #expect(explanation.statistics == nil)
      #expect(explanation.indexesUsed.map(\.queryScope) == expected.map(\.0))
      #expect(explanation.indexesUsed.map(\.properties) == expected.map(\.1))
    }
    #expect(try await Self.pages(fixture, cases[0].0, .none).allSatisfy { $0.explanation == nil })
  }

  @Test("a query with `analyze` returns its results and counts the reads that they needed")
  func statistics() async throws {
    let fixture = try await Self.filledFixture()
    var query = StructuredQuery(
      from: [.init("c")], filter: Self.filter("n", .greaterThanOrEqual, 30), offset: 2)
    var statistics = try #require(
      try await Self.pages(fixture, query, .analyze).last?.explanation?.statistics)
    #expect(statistics.resultsReturned == 8 && statistics.documentsScanned == 10)
    #expect(statistics.entriesScanned == 10 && statistics.readOperations == 10)
    #expect(statistics.documentsBillable == 10 && statistics.microseconds > 0)

    query = StructuredQuery(from: [.init("c")])
    statistics = try #require(try await Self.pages(fixture, query, .analyze).last?.explanation?.statistics)
    #expect(statistics.documentsScanned == 40 && statistics.entriesScanned == 0)

    query = StructuredQuery(from: [.init("none")])
    let empty = try await Self.pages(fixture, query, .analyze)
    statistics = try #require(empty.last?.explanation?.statistics)
    #expect(empty.count == 1 && statistics.resultsReturned == 0 && statistics.documentsScanned == 0)
    #expect(statistics.readOperations == 1 && statistics.minimumCost == 1)

    let nearest = StructuredQuery(
      from: [.init("c")],
      findNearest: FindNearest(field: FieldPath(field: "v"), vector: [1], measure: .euclidean, limit: 1))
    statistics = try #require(try await Self.pages(fixture, nearest, .analyze).last?.explanation?.statistics)
    #expect(statistics.resultsReturned == 0 && statistics.documentsScanned == 40)
  }

  @Test("an explained aggregation returns a plan without values, and with `analyze` also its one result")
  func aggregations() async throws {
    let fixture = try await Self.filledFixture()
    let query = AggregationQuery(
      StructuredQuery(from: [.init("c")], filter: Self.filter("odd", .equal, true)),
      [.init("n", .count(upTo: nil))])
    func run(_ mode: ExplainMode) async throws -> AggregationResult {
      try await fixture.engine.runAggregationQuery(
        query, under: fixture.root, explain: mode, as: .administrator)
    }
    let planned = try await run(.plan)
    #expect(planned.fields == [:] && planned.explanation?.statistics == nil)
    #expect(planned.explanation?.indexesUsed.map(\.properties) == ["(odd ASC, __name__ ASC)"])
    let analysed = try await run(.analyze)
    #expect(analysed.fields == ["n": 20])
    let statistics = try #require(analysed.explanation?.statistics)
    #expect(statistics.resultsReturned == 1 && statistics.readOperations == 1)
    #expect(statistics.entriesScanned == 20 && statistics.documentsScanned == 20)
    #expect(try await run(.none).explanation == nil)
  }

  @Test("a plan is returned only to callers who may run the query")
  func access() async throws {
    let fixture = try EngineFixture(policy: LockedPolicy())
    let query = Query(parent: fixture.root, StructuredQuery(from: [.init("c")]))
    for mode in [ExplainMode.plan, .analyze] {
      let error = await failure {
        try await fixture.engine.runQuery(query, explain: mode, as: .nobody) { _ in }
      }
      #expect(error?.code == .unauthenticated)
    }
  }
}
