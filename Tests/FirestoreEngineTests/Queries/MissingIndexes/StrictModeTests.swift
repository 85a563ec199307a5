// Tests strict mode, in which a query fails without the indexes that Firebase requires: the queries that need an index,
// the error's message, and the same rule for listeners.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Strict mode", .timeLimit(.minutes(10))) struct StrictModeTests {
  private static let a = FieldPath(field: "a")
  private static let b = FieldPath(field: "b")

  private static func query(
    _ filters: [Filter] = [], _ orders: [StructuredQuery.Order] = [], group: Bool = false
  ) -> StructuredQuery {
    StructuredQuery(
      from: [.init("c", allDescendants: group)], filter: filters.isEmpty ? nil : .composite(.and, filters),
      orderBy: orders)
  }

  private static func filter(_ field: String, _ op: FieldFilter.Operator, _ value: Value = 1) -> Filter {
    .field(FieldFilter(FieldPath(field: field), op, value))
  }

  @Test("queries that automatic indexes serve succeed, and all others are rejected")
  func indexRequirements() async throws {
    let fixture = try EngineFixture(strict: true)
    try await fixture.set(ResourcePath(["c", "d"]), ["a": 1, "b": 1, "tags": [1]])
    let served: [StructuredQuery] = [
      Self.query(), Self.query([], [.init(.documentID, .descending)]),
      Self.query([Self.filter("a", .equal), Self.filter("b", .equal), Self.filter("tags", .arrayContains)]),
      Self.query([Self.filter("a", .greaterThan)]),
      Self.query([Self.filter("a", .greaterThan)], [.init(Self.a, .descending)]),
      Self.query([], [.init(Self.a)]), Self.query([Self.filter("a", .isIn, [1, 2])]),
      Self.query([Self.filter("a", .notEqual)]),
      Self.query([Self.filter("a", .equal)], [.init(.documentID, .descending)]),
      Self.query([Self.filter("a", .equal)], [.init(Self.a)]), Self.query(group: true),
      Self.query([Self.filter("tags", .arrayContainsAny, [1, 2])]),
    ]
    for query in served {
      let error = await failure { try await fixture.query(query) }
      #expect(error == nil, "\(query): \(String(describing: error))")
    }
    let rejectedQueries: [StructuredQuery] = [
      Self.query([Self.filter("a", .equal)], [.init(Self.b)]),
      Self.query([Self.filter("a", .equal), Self.filter("b", .greaterThan)]),
      Self.query([], [.init(Self.a), .init(Self.b)]),
      Self.query([Self.filter("a", .greaterThan), Self.filter("b", .lessThan)]),
      Self.query([Self.filter("a", .equal)], [.init(Self.b, .descending)]),
      Self.query([Self.filter("tags", .arrayContains)], [.init(Self.a)]),
      Self.query([Self.filter("a", .isIn, [1, 2])], [.init(Self.b)]),
      Self.query([], [.init(Self.a), .init(.documentID, .descending)]),
      Self.query([Self.filter("a", .equal)], group: true), Self.query([], [.init(Self.a)], group: true),
    ]
    for query in rejectedQueries {
      #expect(await failure { try await fixture.query(query) }?.code == .failedPrecondition, "\(query)")
      let aggregation = AggregationQuery(query, [.init("n", .count(upTo: nil))])
      let error = await failure {
        try await fixture.engine.runAggregationQuery(aggregation, under: fixture.root, as: .administrator)
      }
      #expect(error?.code == .failedPrecondition)
    }
  }

  @Test(
    "an aggregation accepts an index with the query's order fields, then the aggregated fields in any order and direction"
  )
  func aggregationIndexes() async throws {
    typealias Field = DatabaseIndexConfiguration.Field
    func field(_ name: String, _ mode: DatabaseIndexConfiguration.Mode = .ascending) -> Field {
      Field(FieldPath(field: name), mode)
    }
    func isAccepted(_ aggregation: AggregationQuery, with indexes: [[Field]]) async throws -> Bool {
      let fixture = try EngineFixture(strict: true)
      var configuration = DatabaseIndexConfiguration()
      configuration.indexes = indexes.map { .init("c", .collection, $0) }
      try await fixture.setIndexes(configuration)
      let error = await failure {
        try await fixture.engine.runAggregationQuery(aggregation, under: fixture.root, as: .administrator)
      }
      #expect(error == nil || error?.code == .failedPrecondition)
      return error == nil
    }
    let (a, b, year) = (FieldPath(field: "rating"), FieldPath(field: "pages"), FieldPath(field: "year"))
    let several = AggregationQuery(
      Self.query([Self.filter("testId", .equal)]),
      [.init("a", .sum(a)), .init("b", .sum(b)), .init("y", .average(year))])
    let test = field("testId")
    #expect(try await isAccepted(several, with: [[test, field("pages"), field("rating"), field("year")]]))
    #expect(
      try await isAccepted(
        several, with: [[test, field("year"), field("rating", .descending), field("pages")]]))
    #expect(try await !isAccepted(several, with: [[test, field("pages"), field("rating")]]))
    #expect(try await !isAccepted(several, with: [[field("pages"), test, field("rating"), field("year")]]))
    let more = [test, field("pages"), field("rating"), field("year"), field("z")]
    #expect(try await !isAccepted(several, with: [more]))

    let containing = AggregationQuery(
      Self.query([Self.filter("testId", .equal), Self.filter("rating", .arrayContains)]),
      [.init("a", .sum(a)), .init("b", .sum(b))])
    let element = field("rating", .contains)
    #expect(try await isAccepted(containing, with: [[element, test, field("pages"), field("rating")]]))
    #expect(try await isAccepted(containing, with: [[element, test, field("pages")]]))
    #expect(try await isAccepted(containing, with: [[element, field("pages")], [test, field("pages")]]))
    #expect(
      try await !isAccepted(
        containing, with: [[element, field("rating"), field("pages")], [test, field("pages")]]))

    let ordered = AggregationQuery(
      Self.query([], [.init(Self.a)]), [.init("a", .sum(a)), .init("b", .sum(b))])
    #expect(try await isAccepted(ordered, with: [[field("a"), field("rating"), field("pages")]]))
    #expect(try await isAccepted(ordered, with: [[field("a"), field("pages"), field("rating")]]))
    #expect(try await !isAccepted(ordered, with: [[field("pages"), field("a"), field("rating")]]))
    #expect(try await !isAccepted(ordered, with: [[field("a"), field("pages")]]))
  }

  @Test("the link in the error equals Firestore's byte for byte")
  func link() async throws {
    let database = DatabaseName(project: "demo-books")
    let index = CompositeIndex(
      collectionID: "books", scope: .collection,
      parts: [
        .init(FieldPath(field: "genre"), .ascending), .init(FieldPath(field: "pages"), .descending),
      ], namesDescend: true)
    #expect(
      MissingIndex.composite(index, .unknown).error(in: database).message
        == "The query requires an index. You can create it here: https://console.firebase.google.com/v1/r/project/"
        + "demo-books/firestore/indexes?create_composite=Ckhwcm9qZWN0cy9kZW1vLWJvb2tzL2RhdGFiYXNlcy8oZGVmYXVsdCkvY29s"
        + "bGVjdGlvbkdyb3Vwcy9ib29rcy9pbmRleGVzL18QARoJCgVnZW5yZRABGgkKBXBhZ2VzEAIaDAoIX19uYW1lX18QAg")
    let fixture = try EngineFixture(strict: true)
    let group = await failure { try await fixture.query(Self.query([Self.filter("a", .equal)], group: true)) }
    #expect(
      group?.message.hasPrefix(
        "The query requires a COLLECTION_GROUP_ASC index for collection c and field a. You can create it here: "
          + "https://console.firebase.google.com/v1/r/project/demo/firestore/indexes?create_exemption=")
        == true)
  }

  @Test(
    "an index serves its order and the reversed order; indexes with the same order fields together serve several equalities"
  )
  func servedQueries() async throws {
    let fixture = try EngineFixture(strict: true)
    for number in 0..<10 {
      try await fixture.set(
        ResourcePath(["c", "d\(number)"]),
        ["a": .integer(Int64(number % 2)), "b": .integer(Int64(number)), "k": .integer(Int64(number % 3))])
    }
    func index(
      _ fields: [(String, DatabaseIndexConfiguration.Mode)],
      _ scope: DatabaseIndexConfiguration.Scope = .collection
    )
      -> DatabaseIndexConfiguration.Index
    { .init("c", scope, fields.map { .init(FieldPath(field: $0), $1) }) }
    try await fixture.setIndexes(
      DatabaseIndexConfiguration(indexes: [
        index([("a", .ascending), ("b", .ascending)]), index([("k", .ascending), ("b", .ascending)]),
        index([("b", .ascending)], .collectionGroup),
      ]))
    func ids(_ query: StructuredQuery) async throws -> [String] {
      try await fixture.query(query).map(\.name.id)
    }
    #expect(
      try await ids(Self.query([Self.filter("a", .equal)], [.init(Self.b)])) == [
        "d1", "d3", "d5", "d7", "d9",
      ])
    #expect(
      try await ids(Self.query([Self.filter("a", .equal)], [.init(Self.b, .descending)]))
        == ["d9", "d7", "d5", "d3", "d1"])
    #expect(
      try await ids(
        Self.query([Self.filter("a", .equal), Self.filter("k", .equal), Self.filter("b", .greaterThan, 2)]))
        == ["d7"])
    #expect(try await ids(Self.query([Self.filter("b", .greaterThan, 7)], group: true)) == ["d8", "d9"])
    // A page of the query reads only a page of the index.
    let pages = Collected<QueryPage>()
    var page = Self.query([Self.filter("a", .equal)], [.init(Self.b)])
    page.limit = 2
    page.startAt = Cursor([3], before: false)
    try await fixture.engine.runQuery(
      Query(parent: fixture.root, page), explain: .analyze, as: .administrator
    ) { pages.append($0) }
    #expect(pages.all.flatMap(\.documents).map(\.name.id) == ["d5", "d7"])
    let explanation = try #require(pages.all.last?.explanation)
    #expect(
      explanation.indexesUsed == [.init(queryScope: "Collection", properties: "(a ASC, b ASC, __name__ ASC)")]
    )
    // Three documents are read: the cursor's and two results. Four entries are read, because one is read ahead.
    #expect(explanation.statistics?.entriesScanned == 4 && explanation.statistics?.documentsScanned == 3)
  }

  @Test("the error reports an index as being built only while it is configured, unfinished and not failed")
  func missingIndexStates() throws {
    let prepared = try PreparedQuery(
      Query(
        parent: ParentName(rootOf: DatabaseName(project: "demo")),
        Self.query([Self.filter("a", .equal)], [.init(Self.b, .descending)])), .standard)
    let index = CompositeIndex(
      collectionID: "c", scope: .collection, parts: [.init(Self.a, .ascending), .init(Self.b, .descending)],
      namesDescend: true)
    var state = IndexState()
    func status() -> MissingIndex.Status? {
      let missing = Planner(prepared, IndexSet(state), at: Version(microseconds: .max)).missingIndex
      guard case .composite(index, let status)? = missing else { return nil }
      return status
    }
    #expect(status() == .unknown)
    state.composites = [.init(number: 1, index: index.canonical)]
    state.phase = .building
    #expect(status() == .unknown)
    state.target.composites = [1]
    #expect(status() == .building)
    state.composites[0].failure = "c/d: why"
    #expect(status() == .failed("c/d: why"))
    state.phase = .stable
    #expect(status() == .failed("c/d: why"))
    state.target.composites = []
    #expect(status() == .unknown)
  }

  @Test("the error requests a removed index again, and does not report it as being built")
  func removed() async throws {
    let fixture = try EngineFixture(strict: true)
    try await fixture.set(ResourcePath(["c", "d"]), ["a": 1, "b": 1])
    let query = Self.query([Self.filter("a", .equal)], [.init(Self.b)])
    let missingIndexError = await failure { try await fixture.query(query) }
    #expect(
      missingIndexError?.message.hasPrefix("The query requires an index. You can create it here: ") == true)
    try await fixture.setIndexes(
      DatabaseIndexConfiguration(indexes: [
        .init("c", .collection, [.init(Self.a, .ascending), .init(Self.b, .ascending)])
      ]))
    #expect(try await fixture.query(query).count == 1)
    try await fixture.setIndexes(DatabaseIndexConfiguration())
    // The removed index keeps its entries until all transactions that may have read them have ended, but serves no
    // query.
    let state = try await fixture.engine.database(fixture.database).indexes.current.state
    #expect(state.phase == .waitingForTransactions && state.composites.count == 1)
    #expect(await failure { try await fixture.query(query) } == missingIndexError)
  }

  @Test("the error of a failed index reports that its build failed, and gives administrators the cause")
  func failed() async throws {
    let fixture = try EngineFixture(strict: true)
    let long = Value.string(String(repeating: "x", count: 1_500))
    let fields = (0..<6).map { "f\($0)" }
    try await fixture.set(ResourcePath(["c", "large"]), MapValue(fields.map { ($0, long) }))
    let query = Self.query(fields.dropLast().map { Self.filter($0, .equal) }, [.init(FieldPath(field: "f5"))])
    let missingIndexError = try #require(await failure { try await fixture.query(query) })
    try await fixture.setIndexes(
      DatabaseIndexConfiguration(indexes: [
        .init("c", .collection, fields.map { .init(FieldPath(field: $0), .ascending) })
      ]))
    let state = try await fixture.engine.database(fixture.database).indexes.current.state
    let cause = try #require(state.composites.first?.failure)
    #expect(cause.hasPrefix("c/large: "))
    #expect(
      await failure { try await fixture.query(query) }?.message
        == "\(missingIndexError.message) The last build of it failed: \(cause)")
    // Other callers must not learn the names of documents.
    let other = await failure {
      try await fixture.engine.runQuery(Query(parent: fixture.root, query), as: .nobody) { _ in }
    }
    #expect(
      other?.message == "\(missingIndexError.message) The last build of it failed: the server's log says why."
    )
  }

  @Test("a listener without an index is removed with the cause and its link, and its stream continues")
  func listeners() async throws {
    let fixture = try EngineFixture(strict: true)
    try await fixture.set(ResourcePath(["c", "d"]), ["a": 1, "b": 1])
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let query = Self.query([Self.filter("a", .equal)], [.init(Self.b)])
    stream.addTarget(WatchTarget(id: 2, fixture.selection(query)))
    stream.addTarget(WatchTarget(id: 4, fixture.selection(Self.query())))
    try await eventually("the other target is current") { client.view.current == [4] }
    let cause = try #require(client.view.removed[2] ?? nil)
    #expect(cause.code == .failedPrecondition && cause.message.contains("create_composite="))
    var configuration = DatabaseIndexConfiguration()
    let isLinked = configuration.add(linkedFrom: cause.message)
    #expect(isLinked)
    try await fixture.setIndexes(configuration)
    stream.addTarget(WatchTarget(id: 6, fixture.selection(query)))
    try await eventually("the target is served") { client.view.current == [4, 6] }
  }

  @Test("a nearest-neighbour query requires its vector index")
  func vectorIndex() async throws {
    let fixture = try EngineFixture(strict: true)
    try await fixture.set(ResourcePath(["c", "d"]), ["a": 1, "v": .vector([1, 2])])
    var query = Self.query([Self.filter("a", .equal)])
    let v = FieldPath(field: "v")
    query.findNearest = FindNearest(field: v, vector: [1, 2], measure: .euclidean, limit: 1)
    let error = await failure { try await fixture.query(query) }
    #expect(error?.code == .failedPrecondition)
    #expect(
      error?.message
        == "Missing vector index configuration. Please create the required index with the following gcloud command: "
        + "gcloud firestore indexes composite create --project=demo --collection-group=c --query-scope=COLLECTION "
        + "--field-config=order=ASCENDING,field-path=a "
        + #"--field-config=vector-config='{"dimension":"2","flat": "{}"}',field-path=v"#)
    try await fixture.setIndexes(
      DatabaseIndexConfiguration(indexes: [
        .init("c", .collection, [.init(Self.a, .ascending), .init(v, .vector(dimension: 2))])
      ]))
    #expect(try await fixture.query(query).count == 1)
  }
}
