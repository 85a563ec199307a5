// Tests reads that need no sort order: aggregations, nearest-neighbour queries and the first loads of listeners do not
// need the query's order, so they must not hold results for sorting. These tests allow almost no sort memory, and
// compare with the reference evaluator.

import Access
import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Reads without sort memory", .timeLimit(.minutes(10))) struct UnsortedReadingTests {
  private static let n = FieldPath(field: "n")

  private static func filter(_ field: String, _ op: FieldFilter.Operator, _ value: Value) -> Filter {
    .field(FieldFilter(FieldPath(field: field), op, value))
  }

  private static func aggregates(
    _ fixture: EngineFixture, _ query: Query, _ operators: [AggregationQuery.Operator],
    _ consistency: ReadConsistency = .latest
  ) async throws -> [Value] {
    let result = try await fixture.engine.runAggregationQuery(
      AggregationQuery(query.structured, operators.map { .init("", $0) }), under: query.parent,
      consistency: consistency, as: .administrator)
    return operators.indices.map { result.fields["field_\($0 + 1)"] ?? .string("missing") }
  }

  /// Generates 350 documents in `c` and 350 in nested collections of that id. The order of `n` differs from
  /// that of names, and each `n` is unique.
  private static func documents() -> [ResourcePath: MapValue] {
    let long = String(repeating: "l", count: 1_600)
    var documents: [ResourcePath: MapValue] = [:]
    for index in 0..<700 {
      let id = "d\(1_000 + index * 389 % 700)"
      let path = ResourcePath(index < 350 ? ["c", id] : ["p", "q\(index % 2)", "c", id])
      documents[path] = [
        "n": .integer(Int64(index * 211 % 701)), "a": .integer(Int64(index % 3)),
        "b": .integer(Int64(index % 7)), "s": .string(long + "\(index % 5)"),
        "tags": .array([.string("t\(index % 2)"), .string("u\(index % 3)")]),
        "v": .vector([Double(index % 4), Double(index % 5)]),
      ]
    }
    return documents
  }

  private static func fixture(
    _ documents: [ResourcePath: MapValue], maximumSortBytes: Int = 0,
    maximumScanRows: Int = EngineLimits.maximumScanRows,
    limits: EngineLimits = .standard
  ) async throws -> EngineFixture {
    let fixture = try EngineFixture(
      lockWait: 0, maximumScanRows: maximumScanRows, limits: limits, maximumSortBytes: maximumSortBytes)
    let writes = try documents.map { Write(.update(try fixture.name($0.key), fields: $0.value)) }
    for start in stride(from: 0, to: writes.count, by: 500) {
      try await fixture.commit(Array(writes[start..<min(start + 500, writes.count)]))
    }
    return fixture
  }

  /// Queries over every kind of row source (index, scan, list of names) that does not provide the requested order.
  /// Each has more matches than one page.
  private static let queries: [StructuredQuery] = {
    let c = StructuredQuery.CollectionSelector("c")
    let group = StructuredQuery.CollectionSelector("c", allDescendants: true)
    let either = Filter.composite(
      .or, [filter("a", .equal, 1), filter("b", .lessThan, 5), filter("tags", .arrayContains, "t0")])
    let equalities = Filter.composite(
      .or,
      [filter("a", .isIn, .array([0, 1])), filter("b", .equal, 3), filter("tags", .arrayContains, "t0")])
    let names = (0..<350).compactMap { index in
      DocumentName(
        database: DatabaseName(project: "demo"), path: ResourcePath(["c", "d\(1_000 + index * 389 % 700)"])
      ).map(Value.reference)
    }
    return [
      // Inequalities on two fields. The index orders only the first field, so documents with equal first values must be
      // sorted.
      StructuredQuery(
        from: [c], filter: .composite(.and, [filter("a", .lessThan, 9), filter("n", .greaterThan, 5)])),
      // Long values are truncated in index entries. Documents with equal truncated values must be sorted, too.
      StructuredQuery(from: [c], orderBy: [.init(FieldPath(field: "s"))]),
      // An equality, and an inequality on another field. Each filter has its own index, so their intersection has no
      // order.
      StructuredQuery(
        from: [c],
        filter: .composite(.and, [filter("tags", .arrayContains, "t1"), filter("n", .greaterThan, 5)])),
      // Disjunctions in which one document matches several branches.
      StructuredQuery(from: [c], filter: equalities, orderBy: [.init(n, .descending)]),
      StructuredQuery(from: [c], filter: either, orderBy: [.init(FieldPath(field: "b")), .init(n)]),
      StructuredQuery(from: [group], filter: either, orderBy: [.init(FieldPath(field: "b"))]),
      // The sources are a collection group, all descendants of the root, and the direct children of the root.
      StructuredQuery(from: [group], filter: filter("n", .greaterThan, 50)),
      StructuredQuery(
        from: [group], filter: equalities, orderBy: [.init(n)], startAt: Cursor([100], before: true),
        endAt: Cursor([690], before: false)),
      StructuredQuery(from: [.init("", allDescendants: true)], orderBy: [.init(.documentID, .descending)]),
      StructuredQuery(orderBy: [.init(n, .descending)]),
      // A list of document names, read one by one.
      StructuredQuery(
        from: [c], filter: .field(FieldFilter(.documentID, .isIn, .array(names))), orderBy: [.init(n)]),
    ]
  }()

  private static let raisedLimits: EngineLimits = {
    var limits = EngineLimits.standard
    limits.data.disjunctions = 500
    return limits
  }()

  @Test(
    "aggregations over unordered sources count each document once, with and without an upper bound",
    arguments: [EngineLimits.maximumScanRows, 7])
  func unorderedAggregation(maximumScanRows: Int) async throws {
    let documents = Self.documents()
    let fixture = try await Self.fixture(
      documents, maximumScanRows: maximumScanRows, limits: Self.raisedLimits)
    let reference = ReferenceEvaluator(database: fixture.database, documents: documents)
    for (index, structured) in Self.queries.enumerated() {
      let query = Query(parent: fixture.root, structured)
      let all: [AggregationQuery.Operator] = [.count(upTo: nil), .sum(Self.n), .average(Self.n)]
      let expected = reference.aggregates(query, all)
      #expect(try await Self.aggregates(fixture, query, all) == expected, "query \(index)")
      let count = reference.result(of: query).count
      #expect(count > 150 && expected[0] == .integer(Int64(count)), "query \(index)")
      for bound in [1, 100, count, count + 1] {
        let found = try await Self.aggregates(fixture, query, [.count(upTo: Int64(bound))])
        #expect(found == [.integer(Int64(min(bound, count)))], "query \(index) up to \(bound)")
      }
      // A count does not depend on which documents the limit selects.
      var part = query
      part.structured.offset = 120
      part.structured.limit = 20
      #expect(
        try await Self.aggregates(fixture, part, [.count(upTo: nil)]) == [20], "query \(index)")
      #expect(try await Self.aggregates(fixture, part, [.count(upTo: 7)]) == [7], "query \(index)")
      part.structured.limit = nil
      #expect(
        try await Self.aggregates(fixture, part, [.count(upTo: nil)]) == [
          .integer(Int64(count - 120))
        ],
        "query \(index)")
    }
  }

  @Test("a sum over a query with a limit needs the query's order, and is rejected without sort memory")
  func limitedSum() async throws {
    let documents = Self.documents()
    let unsortable = try await Self.fixture(documents, limits: Self.raisedLimits)
    let sortable = try await Self.fixture(
      documents, maximumSortBytes: EngineLimits.maximumSortBytes, limits: Self.raisedLimits)
    let reference = ReferenceEvaluator(database: sortable.database, documents: documents)
    for (index, structured) in Self.queries.enumerated() {
      var query = Query(parent: sortable.root, structured)
      query.structured.offset = 3
      query.structured.limit = 30
      let operators: [AggregationQuery.Operator] = [.sum(Self.n), .count(upTo: nil)]
      let expected = reference.aggregates(query, operators)
      #expect(try await Self.aggregates(sortable, query, operators) == expected, "query \(index)")
      #expect(expected.last == 30)
      let rejection = await failure { try await Self.aggregates(unsortable, query, [.sum(Self.n)]) }
      #expect(rejection?.code == .failedPrecondition, "query \(index)")
    }
  }

  @Test(
    "without sort memory, listeners without a limit load their results, and the documents of a resumed listener are counted"
  )
  func listeners() async throws {
    let documents = Self.documents()
    let fixture = try await Self.fixture(documents, limits: Self.raisedLimits)
    let reference = ReferenceEvaluator(database: fixture.database, documents: documents)
    let expected = Self.queries.map {
      Set(reference.result(of: Query(parent: fixture.root, $0)).map(\.path))
    }
    func check(_ view: WatchClient.View) {
      #expect(view.violations.isEmpty && view.failure == nil)
      for (index, paths) in expected.enumerated() {
        let id = Int32(index + 1)
        #expect(view.removed[id] == nil, "query \(index)")
        #expect(view.documents[id].map { Set($0.keys) } == paths, "query \(index)")
      }
    }
    func allCurrent(_ client: WatchClient) async throws -> WatchClient.View {
      try await eventually("all targets have their results") {
        client.view.added.count + client.view.removals.count == Self.queries.count
          && client.view.snapshots.last?.documents.count == client.view.added.count
      }
      return client.view
    }
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    for (index, query) in Self.queries.enumerated() {
      stream.addTarget(WatchTarget(id: Int32(index + 1), fixture.selection(query)))
    }
    let first = try await allCurrent(client)
    check(first)
    stream.close()
    let again = WatchClient()
    again.setCachedDocuments(first.documents)
    let resumed = try await fixture.watch(again)
    for (index, query) in Self.queries.enumerated() {
      resumed.addTarget(
        WatchTarget(
          id: Int32(index + 1), fixture.selection(query), start: .resumeToken(first.token),
          expectedCount: expected[index].count))
    }
    let view = try await allCurrent(again)
    check(view)
    #expect(view.resets == 0 && view.filters.isEmpty)
  }

  @Test("nearest neighbours over unordered sources are complete, and ties follow the query's order")
  func neighbours() async throws {
    let documents = Self.documents()
    let fixture = try await Self.fixture(documents, limits: Self.raisedLimits)
    let reference = ReferenceEvaluator(database: fixture.database, documents: documents)
    for (index, structured) in Self.queries.enumerated() {
      let found = reference.result(of: Query(parent: fixture.root, structured))
      for (measure, limit) in [(FindNearest.Measure.euclidean, 60), (.dotProduct, 1_000)] {
        var query = structured
        query.findNearest = FindNearest(
          field: FieldPath(field: "v"), vector: [1, 2], measure: measure, limit: limit)
        let expected = found.enumerated().compactMap { position, one -> (Double, Int, ResourcePath)? in
          guard case .vector(let v)? = one.fields["v"] else { return nil }
          let distance =
            measure == .euclidean
            ? (v[0] - 1) * (v[0] - 1) + (v[1] - 2) * (v[1] - 2) : -(v[0] + 2 * v[1])
          return (distance, position, one.path)
        }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.prefix(limit).map(\.2)
        // Truncated index entries do not determine the order of their documents.
        if index == 1 {
          let byName = try await fixture.query(query).map(\.name.path)
          #expect(byName.count == expected.count)
          continue
        }
        #expect(try await fixture.query(query).map(\.name.path) == expected, "query \(index)")
      }
    }
    // A limit of the base query selects its documents by the order, so the search needs the order.
    var few = Self.queries[6]
    few.limit = 10
    few.findNearest = FindNearest(
      field: FieldPath(field: "v"), vector: [1, 2], measure: .euclidean, limit: 5)
    let query = few
    #expect(await failure { try await fixture.query(query) }?.code == .failedPrecondition)
  }

  @Test("random aggregations and listens without sort memory match the reference evaluator", arguments: 1...6)
  func randomQueries(seed: UInt64) async throws {
    let database = DatabaseName(project: "demo")
    var model = RandomModel(seed: seed &+ 5_000, database: database)
    if seed > 2 { model.schema = RandomSchema.random(&model.random) }
    var documents: [ResourcePath: MapValue] = [:]
    for _ in 0..<50 { documents[model.path()] = model.fields() }
    let fixture = try await Self.fixture(
      documents, maximumScanRows: model.pick([EngineLimits.maximumScanRows, 1, 7]))
    if seed % 2 == 0 { try await fixture.setIndexes(model.indexes()) }
    let reference = ReferenceEvaluator(database: database, documents: documents.mapValues(\.stored))
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    var expected: [Int32: Set<ResourcePath>] = [:]
    for id in Int32(1)...120 {
      let query = model.query(root: fixture.root)
      guard (try? NormalizedQuery(query)) != nil else { continue }
      let count = reference.result(of: query).count
      #expect(
        try await Self.aggregates(fixture, query, [.count(upTo: nil)]) == [.integer(Int64(count))],
        "\(query.structured)")
      var all = query
      all.structured.limit = nil
      all.structured.offset = 0
      let operators: [AggregationQuery.Operator] = [.count(upTo: nil), .sum(model.field()), .count(upTo: 3)]
      let found = try await Self.aggregates(fixture, all, operators)
      let sums = reference.aggregates(all, operators)
      #expect(found[0] == sums[0] && found[2] == sums[2], "\(all.structured)")
      #expect(Self.isSame(found[1], sums[1]), "\(all.structured)")
      let bounded = try await Self.aggregates(fixture, all, [.count(upTo: 2)])
      #expect(bounded == reference.aggregates(all, [.count(upTo: 2)]), "\(all.structured)")
      stream.addTarget(WatchTarget(id: id, .query(all)))
      expected[id] = Set(reference.result(of: all).map(\.path))
    }
    #expect(expected.count > 40)
    try await eventually("all targets have responses") {
      client.view.added.count + client.view.removals.count == expected.count
        && client.view.snapshots.last?.documents.count == client.view.added.count
    }
    #expect(client.view.violations.isEmpty && client.view.removals.isEmpty)
    for (id, paths) in expected { #expect(client.view.documents[id].map { Set($0.keys) } == paths) }
  }

  private static func isSame(_ a: Value, _ b: Value) -> Bool {
    guard case .double(let one) = a, case .double(let other) = b else { return a == b }
    return one == other || (one.isNaN && other.isNaN) || abs(one - other) <= abs(one) * 1e-12
  }

  @Test("a bounded count in a transaction locks only the range that it read")
  func boundedCountLocks() async throws {
    let fixture = try await Self.fixture(Self.documents())
    let query = Query(
      parent: fixture.root,
      StructuredQuery(
        from: [.init("c", allDescendants: true)], filter: Self.filter("n", .greaterThanOrEqual, 0)))
    let token = try await fixture.begin()
    #expect(
      try await Self.aggregates(fixture, query, [.count(upTo: 2)], .transaction(token)) == [2])
    try await fixture.set("c/e", ["n": 1])
    #expect(await failure { try await fixture.set("c/d", ["n": 1]) }?.code == .aborted)
    try await fixture.commit(
      [Write(.update(try fixture.name("totals/c"), fields: ["count": 2]))], transaction: token)
    try await fixture.set("c/d", ["n": 1])
  }

  // MARK: Targets that the server resets and loads again

  private static func fill(_ fixture: EngineFixture, _ ids: Range<Int>, odd: Value) async throws -> Timestamp
  {
    var last = Timestamp.epoch
    for start in stride(from: ids.lowerBound, to: ids.upperBound, by: 500) {
      let writes = try (start..<min(start + 500, ids.upperBound)).map { index in
        Write(
          .update(
            try fixture.name(ResourcePath(["c", "d\(10_000 + index)"])),
            fields: ["n": .integer(Int64(-index)), "odd": odd]))
      }
      last = try #require(try await fixture.commit(writes).commitTime)
    }
    return last
  }

  private static func limited(_ limit: Int) -> StructuredQuery {
    StructuredQuery(from: [.init("c")], filter: filter("odd", .equal, 1), orderBy: [.init(n)], limit: limit)
  }

  @Test("if loading a target fails after a reset, the target is removed with the error, and others continue")
  func failedReload() async throws {
    var budget = WatchBufferLimits()
    (budget.maximumChanges, budget.maximumNames) = (10, 100)
    let fixture = try EngineFixture(watchBufferLimits: budget, maximumSortBytes: 50_000)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(Self.limited(1_000))))
    stream.addTarget(WatchTarget(id: 4, fixture.selection(StructuredQuery(from: [.init("c")]))))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && client.view.snapshots.last?.documents.count == 2
    }
    client.block(true)
    var last = try await Self.fill(fixture, 0..<600, odd: 1)
    client.block(false)
    #expect(try await client.snapshot(at: last)[4]?.count == 600)
    let removed = client.view.removed[2]
    #expect(removed??.code == .failedPrecondition, "\(String(describing: removed))")
    #expect(client.view.failure == nil && client.view.violations.isEmpty)
    last = try await Self.fill(fixture, 600..<700, odd: 1)
    #expect(try await client.snapshot(at: last)[4]?.count == 700)
  }

  @Test("a target with a limit is reset and loaded again if the changes do not determine its new result")
  func boundaryReload() async throws {
    let fixture = try EngineFixture(maximumSortBytes: 50_000)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(Self.limited(20))))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    let last = try await Self.fill(fixture, 0..<500, odd: 1)
    let documents = try await client.snapshot(at: last)[2] ?? [:]
    #expect(Set(documents.keys) == Set((480..<500).map { ResourcePath(["c", "d\(10_000 + $0)"]) }))
    #expect(client.view.resets == 1 && client.view.failure == nil && client.view.violations.isEmpty)
  }
}
