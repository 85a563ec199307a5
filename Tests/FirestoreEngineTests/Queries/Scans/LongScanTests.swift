// Tests queries that scan many rows and find few results. Each read is bounded, other work runs in between, and a query
// ends soon after its caller disconnects.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Queries with few results", .timeLimit(.minutes(10)))
struct LongScanTests {
  private static let count = 6_000
  private static let maximumScanRows = 200

  private static func filter(_ field: String, _ op: FieldFilter.Operator, _ value: Value) -> Filter {
    .field(FieldFilter(FieldPath(field: field), op, value))
  }

  /// Queries that match at most one document and must check every candidate, for each kind of row source.
  static let queries: [StructuredQuery] = [
    // An index, with a filter on a field that is not in the index.
    StructuredQuery(
      from: [.init("c")],
      filter: .composite(.and, [filter("n", .greaterThanOrEqual, 3_000), filter("m", .lessThan, 3_000)])),
    // Two indexes without a common document.
    StructuredQuery(
      from: [.init("c")], filter: .composite(.and, [filter("odd", .equal, 0), filter("two", .equal, 1)])),
    // The same intersection in a disjunction.
    StructuredQuery(
      from: [.init("c")],
      filter: .composite(
        .or,
        [
          .composite(.and, [filter("odd", .equal, 0), filter("two", .equal, 1)]), filter("n", .equal, 5_999),
        ])),
    // A collection group that must be scanned completely.
    StructuredQuery(
      from: [.init("c", allDescendants: true)],
      filter: .composite(.and, [filter("n", .greaterThanOrEqual, 3_000), filter("m", .lessThan, 3_000)])),
    // Sorted in memory.
    StructuredQuery(
      from: [.init("c")],
      filter: .composite(.and, [filter("n", .greaterThanOrEqual, 3_000), filter("m", .lessThan, 3_000)]),
      orderBy: [.init(FieldPath(field: "m")), .init(FieldPath(field: "n"))]),
  ]

  private func filledFixture() async throws -> (EngineFixture, CountingStore) {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store, maximumScanRows: Self.maximumScanRows)
    for start in stride(from: 0, to: Self.count, by: 500) {
      try await fixture.commit(
        try (start..<start + 500).map { number in
          // The order of names differs from that of the numbers. So matches of two indexes that share no document
          // alternate, and their intersection cannot skip ahead.
          let name = try fixture.name(ResourcePath(["c", String(number &* 7_919 % 1_000_003, radix: 36)]))
          return Write(
            .update(
              name,
              fields: [
                "n": .integer(Int64(number)), "m": .integer(Int64(number)),
                "odd": .integer(Int64(number % 2)),
                "two": .integer(Int64(number % 2)),
              ]))
        })
    }
    _ = (store.takeCount(), store.takeLargest())
    return (fixture, store)
  }

  @Test("every read visits a bounded number of rows, and the result is correct")
  func bounded() async throws {
    let (fixture, store) = try await filledFixture()
    for (index, query) in Self.queries.enumerated() {
      let found = try await fixture.query(query)
      #expect(found.count == (index == 2 ? 1 : 0), "query \(index)")
      // One read may exceed the bound, because it finishes its current batch of rows and also reads rows for the plan.
      let largest = store.takeLargest()
      #expect(largest < Self.maximumScanRows + 1_100, "query \(index): \(largest) rows in one read")
      let rows = store.takeCount()
      #expect(rows > Self.count / 3, "query \(index): \(rows) rows")
    }
  }

  @Test("a cancelled query stops reading")
  func cancelled() async throws {
    let (fixture, store) = try await filledFixture()
    for (index, structured) in Self.queries.enumerated() {
      let query = Query(parent: fixture.root, structured)
      let running = Task {
        // The task is cancelled before the first page.
        withUnsafeCurrentTask { $0?.cancel() }
        try await fixture.engine.runQuery(query, as: .administrator) { _ in }
      }
      await #expect(throws: CancellationError.self, "query \(index)") { try await running.value }
      #expect(store.takeCount() < 2 * Self.maximumScanRows + 1_100, "query \(index)")
    }
  }

  @Test("a read at a past time skips later creations and deletions in bounded steps")
  func skipsLaterChanges() async throws {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store, maximumScanRows: Self.maximumScanRows)
    let b = FieldPath(field: "b")
    try await fixture.setIndexes(
      DatabaseIndexConfiguration(indexes: [
        .init("c", .collection, [.init(FieldPath(field: "a"), .ascending), .init(b, .ascending)])
      ]))
    let fields: MapValue = ["a": 1, "b": 2, "n": 3]
    try await fixture.set("c/0", fields)
    let time = try #require(try await fixture.set("c/z", fields).commitTime)
    // Most documents of the workload are deleted right after their creation.
    let count = 3_000
    for start in stride(from: 0, to: count, by: 500) {
      let names = try (start..<start + 500).map { try fixture.name(ResourcePath(["c", "j\(10_000 + $0)"])) }
      try await fixture.commit(names.map { Write(.update($0, fields: fields)) })
      try await fixture.commit(names.dropFirst(10).map { Write(.delete($0)) })
    }
    let one = Self.filter("a", .equal, 1)
    let both = Filter.composite(.and, [one, Self.filter("n", .equal, 3)])
    let group = StructuredQuery.CollectionSelector("c", allDescendants: true)
    let name = FieldPath.documentID
    let queries = [
      StructuredQuery(from: [.init("c")]), StructuredQuery(from: [.init("c")], filter: one),
      StructuredQuery(from: [.init("c")], filter: both),
      StructuredQuery(from: [.init("c")], filter: .composite(.or, [both, Self.filter("b", .equal, 2)])),
      StructuredQuery(from: [.init("c")], orderBy: [.init(b)]),
      StructuredQuery(from: [.init("c")], filter: one, orderBy: [.init(b)]), StructuredQuery(from: [group]),
    ]
    _ = (store.takeCount(), store.takeLargest())
    for (index, query) in queries.enumerated() {
      for isReverse in [false, true] {
        var query = query
        if isReverse, query.orderBy.isEmpty { query.orderBy = [.init(name, .descending)] }
        if isReverse, query.orderBy == [.init(b)] { query.orderBy = [.init(b, .descending)] }
        let found = try await fixture.query(query, .readTime(time)).map(\.name.id)
        #expect(found == (isReverse ? ["z", "0"] : ["0", "z"]), "query \(index)")
        let (steps, largest) = (store.takeCount(), store.takeLargest())
        #expect(
          steps >= count && largest < 4 * Self.maximumScanRows,
          "query \(index): \(largest) of \(steps) at once")
      }
    }
    let request = PartitionQueryRequest(
      Query(parent: fixture.root, StructuredQuery(from: [group], orderBy: [.init(name)])), count: 2,
      consistency: .readTime(time))
    #expect(try await fixture.engine.partitionQuery(request, as: .administrator).points.isEmpty)
  }

  @Test("a listener that disconnects stops its scan, also if nothing was sent")
  func listenerDisconnects() async throws {
    let (fixture, store) = try await filledFixture()
    let hub = try await fixture.engine.database(fixture.database).hub
    /// Counts the rows that a listener reads. It disconnects after `rows` rows, or once its target is
    /// current.
    func cost(_ target: WatchTarget, until rows: Int? = nil) async throws -> (rows: Int, token: [UInt8]) {
      _ = store.takeCount()
      let client = WatchClient()
      let stream = try await fixture.watch(client)
      if let rows { store.runOnce(afterRows: rows) { stream.close() } }
      stream.addTarget(target)
      if rows == nil {
        try await eventually("the target is current") { !client.view.snapshots.isEmpty }
        stream.close()
      }
      try await eventually("the stream has ended") { hub.streamCount == 0 }
      return (store.takeCount(), client.view.token)
    }
    for (index, query) in Self.queries.enumerated() {
      let fresh = WatchTarget(id: 2, fixture.selection(query))
      let token = try await cost(fresh).token
      let resumed = WatchTarget(
        id: 2, fixture.selection(query), start: .resumeToken(token), expectedCount: 5)
      // The resume first counts the documents at the resume token's time, and then the current documents.
      let total = try await cost(resumed).rows
      for (target, rows) in [(fresh, total / 8), (resumed, total / 8), (resumed, total * 5 / 8)] {
        let read = try await cost(target, until: rows).rows
        #expect(
          read >= rows && read < rows + 2 * Self.maximumScanRows + 1_100,
          "query \(index): \(read) of \(total)")
      }
    }
  }

  @Test(
    "a listing that must be sorted reads a bounded number of rows at a time and can be cancelled"
  )
  func listing() async throws {
    let (fixture, store) = try await filledFixture()
    let database = fixture.database
    let request = ListDocumentsRequest(
      parent: ParentName(rootOf: database), collectionID: "c", pageSize: 2, orderBy: "odd, n")
    let page = try await fixture.engine.listDocuments(request, as: .administrator)
    let numbers = try page.documents.map { listed -> Value? in
      guard case .found(let document) = listed else { return nil }
      return try document.fields()["n"]
    }
    #expect(numbers == [0, 2])
    let largest = store.takeLargest()
    #expect(largest < Self.maximumScanRows + 1_100, "\(largest) rows in one read")
    #expect(store.takeCount() > Self.count / 2)
    let running = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await fixture.engine.listDocuments(request, as: .administrator)
    }
    await #expect(throws: FirestoreError.self) { _ = try await running.value }
    #expect(store.takeCount() < 2 * Self.maximumScanRows + 1_100)
  }
}
