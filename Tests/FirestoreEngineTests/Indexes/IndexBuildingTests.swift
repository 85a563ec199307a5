// Tests index builds and removals while documents change and the engine restarts. Entries always match the documents,
// and queries always return correct results.

import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Index building", .timeLimit(.minutes(10))) struct IndexBuildingTests {
  private static func index(_ fields: [(String, DatabaseIndexConfiguration.Mode)])
    -> DatabaseIndexConfiguration
  {
    DatabaseIndexConfiguration(indexes: [
      .init("c", .collection, fields.map { .init(FieldPath(field: $0), $1) })
    ])
  }

  @Test("after random index changes, commits and restarts, the index entries match the documents exactly")
  func random() async throws {
    for seed in 1...9 as ClosedRange<UInt64> {
      var model = RandomModel(seed: seed &* 7_368_787, database: DatabaseName(project: "demo"))
      let store = try MemoryStore()
      var fixture = try EngineFixture(store: store)
      var documents: [ResourcePath: MapValue] = [:]
      for _ in 0..<40 {
        switch Int.random(in: 0..<12, using: &model.random) {
        case 0...6:
          var writes: [Write] = []
          for _ in 0..<Int.random(in: 1...12, using: &model.random) {
            let path = model.path()
            if model.chance(25) {
              documents[path] = nil
              writes.append(Write(.delete(try fixture.name(path))))
            } else {
              let fields = model.fields()
              documents[path] = fields
              writes.append(Write(.update(try fixture.name(path), fields: fields)))
            }
          }
          try await fixture.commit(writes)
        case 7, 8:
          try await fixture.engine.setIndexes(model.indexes(), ofDatabase: fixture.database.database)
          _ = try await fixture.engine.database(fixture.database)
        case 9: fixture.clock.advance(by: EngineLimits.standard.transactionTimeout)
        case 10:
          // A restart discards uncommitted state; the new engine loads the committed state.
          await fixture.engine.shutDown()
          fixture = try EngineFixture(store: store)
        default:
          let query = model.query(root: fixture.root)
          guard (try? NormalizedQuery(query)) != nil else { continue }
          let expected = ReferenceEvaluator(database: fixture.database, documents: documents)
            .result(of: query).map(\.path)
          #expect(try await fixture.query(query).map(\.name.path) == expected, "seed \(seed)")
        }
        let report = try await fixture.check()
        try #require(report.isConsistent, "seed \(seed): \(report)")
      }
      let indexes = try await fixture.engine.database(fixture.database).indexes
      try await eventually("the old entries are removed") {
        fixture.clock.advance(by: EngineLimits.standard.transactionTimeout)
        return indexes.current.state.phase == .stable
      }
      #expect(try await fixture.check().isConsistent)
      await fixture.engine.shutDown()
    }
  }

  @Test("an index is built in steps during writes, and a restarted engine continues the build")
  func buildsDuringWrites() async throws {
    let store = try MemoryStore()
    let first = try EngineFixture(store: store)
    for start in stride(from: 0, to: 3_000, by: 500) {
      try await first.commit(
        try (start..<start + 500).map {
          Write(
            .update(
              try first.name(ResourcePath(["c", "d\($0)"])), fields: ["a": .integer(Int64($0 % 7)), "b": 1]))
        })
    }
    let indexes = try await first.engine.database(first.database).indexes
    try await first.engine.setIndexes(
      Self.index([("a", .ascending), ("b", .descending)]), ofDatabase: "(default)")
    try await eventually("some documents are indexed") { indexes.current.state.progress.documents > 0 }
    await first.engine.shutDown()
    let second = try EngineFixture(store: store)
    let again = try await second.engine.database(second.database).indexes
    for number in 0..<50 {
      try await second.set(ResourcePath(["c", "w\(number)"]), ["a": 3, "b": .integer(Int64(number))])
    }
    try await eventually("the index is built") { again.current.state.phase != .building }
    let report = try await second.check()
    #expect(report.isConsistent, "\(report)")
    #expect(report.documents == 3_050 && report.compositeEntries == 3_050)
    let query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(FieldPath(field: "a"), .equal, 3)),
      orderBy: [.init(FieldPath(field: "b"), .descending)], limit: 3)
    #expect(try await second.query(query).map(\.name.id) == ["w49", "w48", "w47"])
    await second.engine.shutDown()
  }

  @Test("a store that rejects commits delays the build, and this is logged once")
  func unavailable() async throws {
    let store = CountingStore(try MemoryStore())
    let reports = Collected<String>()
    let fixture = try EngineFixture(store: store, report: { reports.append($0) })
    for number in 0..<3 {
      try await fixture.set(ResourcePath(["c", "d\(number)"]), ["a": .integer(Int64(number)), "b": 1])
    }
    let indexes = try await fixture.engine.database(fixture.database).indexes
    // The first commit stores the configuration and succeeds. The next three come from the index builder and fail.
    store.rejectCommits(3, after: 1)
    try await fixture.engine.setIndexes(
      Self.index([("a", .ascending), ("b", .descending)]), ofDatabase: "(default)")
    try await eventually("the builder waits") { fixture.clock.sleepers > 0 }
    #expect(indexes.current.state.phase == .building)
    try await eventually("the index is built") {
      fixture.clock.advance(by: 1_000_000)
      return indexes.current.state.phase != .building
    }
    let report = try await fixture.check()
    #expect(report.isConsistent && report.compositeEntries == 3, "\(report)")
    #expect(reports.all.count { $0.contains("is delayed") } == 1, "\(reports.all)")
    // A builder whose commits always fail still stops with the engine.
    store.rejectCommits(.max, after: 1)
    try await fixture.engine.setIndexes(Self.index([("b", .ascending)]), ofDatabase: "(default)")
    try await eventually("the builder waits again") { reports.all.count { $0.contains("is delayed") } == 2 }
    await fixture.engine.shutDown()
  }

  @Test("large index entries are built and removed in several commits")
  func largeEntries() async throws {
    let fixture = try EngineFixture()
    // Each entry has more than 10 KB; a commit holds 6,400 entries.
    let parent = ResourcePath(["p", String(repeating: "p", count: 1_490), "c"])
    let fields = ["a", "b", "c", "d", "e"]
    var document = MapValue(fields.map { ($0, .string(String(repeating: "x", count: 1_490))) })
    document["tags"] = .array((0..<950).map { .integer($0) })
    for number in 0..<7 {
      try await fixture.set(
        parent.appending(String(repeating: "d", count: 1_489) + "\(number)"), document)
    }
    let configuration = Self.index(
      [("tags", .contains)] + fields.map { ($0, DatabaseIndexConfiguration.Mode.ascending) })
    try await fixture.setIndexes(configuration)
    let built = try await fixture.check()
    #expect(built.isConsistent && built.compositeEntries == 6_650)
    try await fixture.setIndexes(DatabaseIndexConfiguration(), untilStable: true)
    #expect(try await fixture.check().compositeEntries == 0)
  }

  @Test("an index build fails with the cause if one document has more entries than a commit can replace")
  func tooManyEntries() async throws {
    let fixture = try EngineFixture()
    let text = Value.string(String(repeating: "x", count: 1_490))
    let fields = ["a", "b", "c", "d"]
    var document = MapValue(fields.map { ($0, text) })
    document["tags"] = .array((0..<6_000).map { .integer($0) })
    try await fixture.set("c/large", document)
    try await fixture.set("c/small", ["tags": [1], "a": 1, "b": 1, "c": 1, "d": 1])
    var configuration = Self.index(
      [("tags", .contains)] + fields.map { ($0, DatabaseIndexConfiguration.Mode.ascending) })
    configuration.indexes += Self.index([("tags", .contains), ("a", .ascending)]).indexes
    try await fixture.setIndexes(configuration, untilStable: true)
    let state = try await fixture.engine.database(fixture.database).indexes.current.state
    let failures = state.composites.map(\.failure)
    #expect(failures.map { $0 != nil } == [true, false])
    #expect(failures.first??.hasPrefix("c/large: ") == true)
    let report = try await fixture.check()
    #expect(report.isConsistent && report.compositeEntries == 6_001)
    try await fixture.delete("c/large")
  }

  @Test("an entry that is too large fails the build of its index only; a complete index rejects such writes")
  func tooLarge() async throws {
    let fixture = try EngineFixture()
    let long = Value.string(String(repeating: "x", count: 1_500))
    let fields = (0..<6).map { "f\($0)" }
    let large = MapValue(fields.map { ($0, long) })
    try await fixture.set(ResourcePath(["c", "large"]), large)
    try await fixture.set(ResourcePath(["c", "small"]), ["f0": 1, "f1": 2])
    var configuration = Self.index(fields.map { ($0, .ascending) })
    configuration.indexes += Self.index([("f0", .ascending), ("f1", .ascending)]).indexes
    try await fixture.setIndexes(configuration, untilStable: true)
    let state = try await fixture.engine.database(fixture.database).indexes.current.state
    #expect(state.composites.map { $0.failure != nil } == [true, false])
    #expect(try await fixture.check().isConsistent)
    try await fixture.delete(ResourcePath(["c", "large"]))
    configuration.overrides = [.init("other", nil, [])]
    try await fixture.setIndexes(configuration, untilStable: true)
    #expect(
      try await fixture.engine.database(fixture.database).indexes.current.state.composites.allSatisfy {
        $0.failure == nil
      })
    #expect(
      await failure { try await fixture.set(ResourcePath(["c", "large"]), large) }?.code == .invalidArgument)
    #expect(try await fixture.check().isConsistent)
  }

  @Test("a field exemption removes its entries; queries on the field scan, or are rejected in strict mode")
  func exemptions() async throws {
    for strict in [false, true] {
      let fixture = try EngineFixture(strict: strict)
      for number in 0..<20 {
        try await fixture.set(
          ResourcePath(["c", "d\(number + 10)"]), ["a": .integer(Int64(number)), "m": ["x": 1, "y": 2]])
      }
      let before = try await fixture.check()
      #expect(before.automaticEntries == 80)
      let a = FieldPath(field: "a")
      let m = FieldPath(field: "m")
      let configuration = DatabaseIndexConfiguration(overrides: [
        .init("c", a, []), .init("c", m, []), .init("c", m.appending("y"), [.init(.collection, .ascending)]),
      ])
      try await fixture.setIndexes(configuration, untilStable: true)
      let after = try await fixture.check()
      #expect(after.isConsistent && after.automaticEntries == 20)
      let onA = StructuredQuery(from: [.init("c")], filter: .field(FieldFilter(a, .greaterThan, 17)))
      let onX = StructuredQuery(from: [.init("c")], filter: .field(FieldFilter(m.appending("x"), .equal, 1)))
      let onY = StructuredQuery(from: [.init("c")], filter: .field(FieldFilter(m.appending("y"), .equal, 2)))
      #expect(try await fixture.query(onY).count == 20)
      if strict {
        let error = await failure { try await fixture.query(onA) }
        #expect(error?.code == .failedPrecondition)
        #expect(
          error?.message.hasPrefix("The query requires a COLLECTION_ASC index for collection c and field a.")
            == true)
        #expect(await failure { try await fixture.query(onX) }?.code == .failedPrecondition)
      } else {
        #expect(try await fixture.query(onA).count == 2)
        #expect(try await fixture.query(onX).count == 20)
      }
      try await fixture.setIndexes(DatabaseIndexConfiguration(), untilStable: true)
      #expect(try await fixture.check() == before)
      #expect(try await fixture.query(onA).count == 2)
      // Exempts all fields except one.
      try await fixture.setIndexes(
        DatabaseIndexConfiguration(overrides: [
          .init("c", nil, []), .init("c", a, [.init(.collection, .ascending)]),
        ]),
        untilStable: true)
      #expect(try await fixture.check().automaticEntries == 20)
    }
  }

  @Test(
    "ranges of an index that a transaction scanned stay locked against phantoms after the index is removed"
  )
  func locksOutliveIndex() async throws {
    let fixture = try EngineFixture(lockWait: 0)
    try await fixture.setIndexes(Self.index([("a", .ascending), ("b", .ascending)]))
    try await fixture.set(ResourcePath(["c", "one"]), ["a": 1, "b": 1])
    let token = try await fixture.begin()
    let query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(FieldPath(field: "a"), .equal, 1)),
      orderBy: [.init(FieldPath(field: "b"))])
    #expect(try await fixture.query(query, .transaction(token)).count == 1)
    try await fixture.engine.setIndexes(DatabaseIndexConfiguration(), ofDatabase: "(default)")
    let phantom = await failure { try await fixture.set(ResourcePath(["c", "two"]), ["a": 1, "b": 2]) }
    #expect(phantom?.code == .aborted)
    try await fixture.set(ResourcePath(["c", "other"]), ["a": 2, "b": 2])
    try await fixture.commit(
      [Write(.delete(try fixture.name(ResourcePath(["c", "one"]))))], transaction: token)
    try await fixture.set(ResourcePath(["c", "two"]), ["a": 1, "b": 2])
    #expect(try await fixture.query(query).map(\.name.id) == ["two"])
  }

  @Test("a consistency check reports missing and stray rows")
  func corruption() async throws {
    let fixture = try EngineFixture()
    try await fixture.setIndexes(Self.index([("a", .ascending), ("b", .ascending)]))
    let path = ResourcePath(["c", "d"])
    try await fixture.set(path, ["a": 1, "b": 2])
    let rows = try await fixture.engine.database(fixture.database).rows
    func faults(_ corruption: @escaping @Sendable (any SequencedTransaction) throws -> Void) async throws
      -> [ConsistencyReport.Fault]
    {
      _ = try await rows.execute(validating: nil) { view in try corruption(view) }
      return try await fixture.check().problems.map(\.fault)
    }
    #expect(try await fixture.check().isConsistent)
    let entry = try #require(try IndexEntries.keys(of: ["a": 1], at: path).first)
    #expect(try await faults { try $0.clear(entry) } == [.missingEntry])
    #expect(try await faults { try $0.set(entry, []) } == [])
    let unexpectedKey = try #require(try IndexEntries.keys(of: ["a": 2], at: path).first)
    #expect(try await faults { try $0.set(unexpectedKey, []) } == [.strayEntry])
    #expect(try await faults { try $0.clear(unexpectedKey) } == [])
    #expect(try await faults { try $0.clear(FirestoreKeyLayout.group(path)) } == [.missingGroupRow])
    #expect(
      try await faults { view in
        try view.set(FirestoreKeyLayout.group(path), [])
        try view.set(FirestoreKeyLayout.group(ResourcePath(["c", "gone"])), [])
        try view.clear(KeyRange(prefix: [FirestoreKeyLayout.composites]))
      } == [.missingEntry, .strayGroupRow])
    #expect(
      try await faults { try $0.set(FirestoreKeyLayout.composite(99), []) }
        == [.missingEntry, .strayGroupRow, .strayEntry])
  }
}
