// Tests queries between two document names: such a query reads only the documents between the names, and transactions
// lock only that range.

import Access
import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Queries between names", .timeLimit(.minutes(10))) struct NameBoundsTests {
  private static let count = 2_000
  private static let group = StructuredQuery.CollectionSelector("c", allDescendants: true)
  private static let everything = StructuredQuery.CollectionSelector("", allDescendants: true)

  private static func path(_ number: Int) -> ResourcePath {
    let id = "d\(10_000 + number)"
    return number % 2 == 0 ? ResourcePath(["c", id]) : ResourcePath(["c", id, "c", "e"])
  }

  private func filledFixture() async throws -> (EngineFixture, CountingStore) {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store, lockWait: 0)
    for start in stride(from: 0, to: Self.count, by: 500) {
      try await fixture.commit(
        try (start..<start + 500).map {
          Write(.update(try fixture.name(Self.path($0)), fields: ["n": .integer(Int64($0))]))
        })
    }
    try await fixture.set("a/first", [:])
    try await fixture.set("z/last", [:])
    _ = store.takeCount()
    return (fixture, store)
  }

  private func reference(_ fixture: EngineFixture, _ path: ResourcePath) throws -> Value {
    .reference(try fixture.name(path))
  }

  private func between(_ lower: Value, _ upper: Value) -> Filter {
    .composite(
      .and,
      [
        .field(FieldFilter(.documentID, .greaterThanOrEqual, lower)),
        .field(FieldFilter(.documentID, .lessThan, upper)),
      ])
  }

  @Test(
    "a query between names reads only that range, by filters or cursors, in either direction and any scope"
  )
  func readsOnlyTheRange() async throws {
    let (fixture, store) = try await filledFixture()
    let lower = try reference(fixture, Self.path(1_000))
    let upper = try reference(fixture, Self.path(1_010))
    let ascending = StructuredQuery.Order(.documentID)
    let descending = StructuredQuery.Order(.documentID, .descending)
    let n = FieldPath(field: "n")
    for selector in [Self.group, Self.everything, .init("")] {
      let expected = (1_000..<1_010).map(Self.path).filter { selector.allDescendants || $0.count == 2 }
      let filter = between(lower, upper)
      let queries = [
        StructuredQuery(from: [selector], filter: filter),
        StructuredQuery(from: [selector], filter: filter, orderBy: [descending]),
        StructuredQuery(from: [selector], filter: filter, orderBy: [.init(n)]),
        StructuredQuery(
          from: [selector], orderBy: [ascending], startAt: Cursor([lower], before: true),
          endAt: Cursor([upper], before: true)),
        StructuredQuery(
          from: [selector], orderBy: [descending], startAt: Cursor([upper], before: false),
          endAt: Cursor([lower], before: false)),
      ]
      for (index, query) in queries.enumerated() {
        let found = try await fixture.query(query).map(\.name.path)
        #expect(found == ([1, 4].contains(index) ? expected.reversed() : expected), "query \(index)")
        let rows = store.takeCount()
        // The limit allows several seeks per result, which a scan of all collections needs.
        #expect(rows < 200, "query \(index) of \(selector): \(rows) rows")
      }
    }
  }

  @Test("paging a collection group by name reads each document once, and so do the parts of PartitionQuery")
  func pagingCost() async throws {
    let (fixture, store) = try await filledFixture()
    var query = StructuredQuery(from: [Self.group], orderBy: [.init(.documentID)], limit: 100)
    var found = 0
    while true {
      let page = try await fixture.query(query)
      found += page.count
      guard let last = page.last else { break }
      query.startAt = Cursor([.reference(last.name)], before: false)
    }
    #expect(found == Self.count)
    let paging = store.takeCount()
    // Each document costs an index entry and a row; a page also reads the last document of the previous one.
    #expect(paging < 9 * Self.count / 4, "\(paging) rows")
    let request = PartitionQueryRequest(
      Query(parent: fixture.root, StructuredQuery(from: [Self.group], orderBy: [.init(.documentID)])),
      count: 20)
    let points = try await fixture.engine.partitionQuery(request, as: .administrator).points
    #expect(points.count == 20)
    _ = store.takeCount()
    var parts = 0
    let bounds = [nil] + points.map { Optional($0) } + [nil]
    for (from, to) in zip(bounds, bounds.dropFirst()) {
      var part = StructuredQuery(from: [Self.group], orderBy: [.init(.documentID)])
      part.startAt = from.map { Cursor([.reference($0)], before: true) }
      part.endAt = to.map { Cursor([.reference($0)], before: true) }
      parts += try await fixture.query(part).count
    }
    #expect(parts == Self.count)
    let partCost = store.takeCount()
    #expect(partCost < 4 * Self.count, "\(partCost) rows")
  }

  @Test("a recursive delete of one collection does not read other collections")
  func recursiveDelete() async throws {
    let (fixture, store) = try await filledFixture()
    let lowest = "__id\(Int64.min)__"
    for (collection, count) in [("a", 1), ("c", Self.count), ("b", 0)] {
      let filter = between(
        try reference(fixture, ResourcePath([collection, lowest])),
        try reference(fixture, ResourcePath([collection + "\u{0}", lowest])))
      let query = StructuredQuery(
        from: [Self.everything], filter: filter, orderBy: [.init(.documentID)], limit: 5_000,
        select: [.documentID])
      #expect(try await fixture.query(query).count == count)
      let rows = store.takeCount()
      #expect(rows < 10 * count + 20, "\(rows) rows of \(collection)")
    }
  }

  @Test(
    "a transaction locks the queried names against phantoms, and no other names",
    arguments: [group, everything, .init("")])
  func locksOnlyTheRange(selector: StructuredQuery.CollectionSelector) async throws {
    let (fixture, _) = try await filledFixture()
    let query = StructuredQuery(
      from: [selector],
      filter: between(try reference(fixture, "c/d10100"), try reference(fixture, "c/d10200")))
    let token = try await fixture.begin()
    #expect(try await fixture.query(query, .transaction(token)).count == (selector.allDescendants ? 100 : 50))
    var inside: [ResourcePath] = ["c/d10101", "c/d10150", "c/d10100x"]
    if selector.allDescendants { inside += ["c/d10100/c/e", "c/d10150/x/y/c/z", "c/d10199/c/f"] }
    for path in inside {
      #expect(await failure { try await fixture.set(path, [:]) }?.code == .aborted, "\(path)")
    }
    for path in ["c/d10099", "c/d10098/c/f", "c/d10201", "c/d10201/c/f", "a/b/c/d", "z/b/c/d", "z/c"]
      as [ResourcePath]
    {
      try await fixture.set(path, [:])
    }
    try await fixture.commit([], transaction: token)
    // An optimistic transaction detects the same conflicts at its commit.
    for (path, conflicts) in [("c/d10050", false), ("c/d10150", true)] as [(ResourcePath, Bool)] {
      let token = try await fixture.begin(.readWrite(concurrency: .optimistic))
      _ = try await fixture.query(query, .transaction(token))
      try await fixture.set(path, ["n": 1])
      let write = Write(.update(try fixture.name("other/one"), fields: [:]))
      let rejection = await failure { try await fixture.commit([write], transaction: token) }
      #expect(rejection?.code == (conflicts ? .aborted : nil), "\(path)")
    }
  }

  @Test("the row ranges of two name bounds contain every document between the bounds, at any depth")
  func containsBetween() throws {
    var model = RandomModel(seed: 11, database: DatabaseName(project: "demo"))
    let parents: [ResourcePath] = ["", "c/d1", "x/missing", "c/d1/c/d3"]
    for _ in 0..<20_000 {
      var bounds = NameBounds()
      if model.chance(80) { bounds.narrow(from: model.path()) }
      if model.chance(80) { bounds.narrow(through: model.path()) }
      let parent = model.pick(parents)
      let path = model.path()
      guard path.hasPrefix(parent), path != parent else { continue }
      let isBetween =
        bounds.lower.map { ResourcePath.compare($0, path) != .descending } ?? true
        && bounds.upper.map { ResourcePath.compare(path, $0) != .descending } ?? true
      guard isBetween else { continue }
      let inside = bounds.inside(parent)
      let key = FirestoreKeyLayout.document(path)
      #expect(inside.rows(below: parent).contains { $0.contains(key) }, "\(path) below \(parent)")
      if path.count == parent.count + 2 { #expect(inside.children(of: parent).contains(key)) }
    }
  }
}
