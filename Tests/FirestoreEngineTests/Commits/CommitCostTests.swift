// Tests the limits on the cost of one commit: each document is checked once for any number of writes. Work that is
// repeated for each write counts against `maximumCommitCost`.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

/// Allows every operation and records the documents that the engine passes to it.
private struct RecordingPolicy: AccessPolicy {
  let seen = Collected<[MapValue?]>()

  func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision {
    if case .commit(let writes) = operation {
      for write in writes {
        seen.append([try view.document(write.name)?.fields, try view.documentAfter(write.name)?.fields])
      }
    }
    return .allowed
  }
}

@Suite("Cost of a commit", .timeLimit(.minutes(5))) struct CommitCostTests {
  private static let rejection =
    "The commit processes more than 1048576 bytes of documents and their index entries, with 16 for each "
    + "field or element that a write copies or compares. Split it into several commits."

  private func masked(_ name: DocumentName, _ field: String, _ value: Value?) -> Write {
    Write(
      .update(name, fields: value.map { [field: $0] } ?? [:]), mask: [FieldPath(field: field)])
  }

  @Test(
    "ten thousand writes of one field do not rescan a long array in the same document",
    .timeLimit(.minutes(1)))
  func longArray() async throws {
    let fixture = try EngineFixture()
    let name = try fixture.name("c/d")
    let array = Value.array([Value](repeating: .null, count: 200_000))
    try await fixture.set("c/d", ["x": array])
    try await fixture.commit((0..<10_000).map { masked(name, "n", .integer($0)) })
    #expect(try await fixture.get("c/d") == ["n": 9_999, "x": array])
  }

  @Test("the cost of a commit includes the array elements that each transform scans")
  func transforms() async throws {
    let fixture = try EngineFixture(maximumCommitCost: 1 << 20)
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", ["x": .array((0..<2_000).map { .integer($0) })])
    func append(_ count: Int) -> [Write] {
      (0..<count).map { index in
        Write(
          .transform(
            name, [FieldTransform(FieldPath(field: "x"), .appendMissing([.integer(Int64(5_000 + index))]))]))
      }
    }
    #expect(await failure { try await fixture.commit(append(60)) } == .invalidArgument(Self.rejection))
    try await fixture.commit(append(20))
    guard case .array(let elements)? = try await fixture.get("c/d")?["x"] else {
      Issue.record("no array")
      return
    }
    #expect(elements.count == 2_020)
  }

  @Test("the cost of a commit includes the fields that each masked write copies")
  func fields() async throws {
    let fixture = try EngineFixture(maximumCommitCost: 1 << 20)
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", MapValue((0..<1_000).map { ("f\($0)", Value.integer($0)) }))
    let writes = (0..<100).map { masked(name, "f1", .integer($0)) }
    #expect(await failure { try await fixture.commit(writes) } == .invalidArgument(Self.rejection))
    try await fixture.commit(Array(writes.prefix(30)))
    #expect(try await fixture.get("c/d")?["f1"] == 29)
  }

  @Test("documents that a commit only verifies add to the commit's cost")
  func documents() async throws {
    let fixture = try EngineFixture(maximumCommitCost: 1 << 20)
    let bytes = Value.bytes([UInt8](repeating: 1, count: 50_000))
    let names = try (0..<30).map { try fixture.name(ResourcePath(["c", "d\($0)"])) }
    for name in names { try await fixture.commit([Write(.update(name, fields: ["x": bytes]))]) }
    let verifies = names.map { Write(.verify($0), precondition: .exists(true)) }
    #expect(await failure { try await fixture.commit(verifies) } == .invalidArgument(Self.rejection))
    try await fixture.commit(Array(verifies.prefix(15)))
  }

  /// Writes of 40 documents of 1 KB, each with about 73 KB of index entries.
  private func entryWrites(_ fixture: EngineFixture) throws -> [Write] {
    let long = String(repeating: "x", count: 1_400)
    let numbers = Value.array((0..<50).map { .integer($0) })
    return try (10..<50).map {
      Write(.update(try fixture.name(ResourcePath([long, "d\($0)"])), fields: ["n": numbers]))
    }
  }

  /// The state of a plan (the row changes that a commit would make) after planning finished or rejected the commit.
  private struct PlanOutcome: Sendable {
    var changes: Int
    var entries: Int
    var entryBytes: Int
    var rejection: FirestoreError?
  }

  private func plan(
    _ writes: [Write], _ fixture: EngineFixture, written: Int = StoreLimits.maximumCommitBytes
  ) async throws -> PlanOutcome {
    let database = try await fixture.engine.database(fixture.database)
    return try await database.rows.execute(validating: nil) { view in
      let budget = CommitCostBudget(limit: .max, written: written)
      var plan = CommitPlan(view, .automatic, .standard, costBudget: budget, needsDecisions: false)
      try plan.apply(writes)
      var rejection: FirestoreError?
      do { try plan.finish() } catch let error as FirestoreError { rejection = error }
      let entries = plan.footprint.entries.flatMap(\.self)
      return PlanOutcome(
        changes: plan.changes.count, entries: entries.count, entryBytes: entries.reduce(0) { $0 + $1.count },
        rejection: rejection)
    }.result
  }

  @Test("a commit with too many index entry bytes is rejected before all entries are encoded")
  func writtenBytes() async throws {
    let fixture = try EngineFixture()
    let writes = try entryWrites(fixture)
    let rejection = FirestoreError.invalidArgument(
      "The commit writes and removes more than 1048576 bytes of documents and index entries. Split it into several "
        + "commits.")
    let creation = try await plan(writes, fixture, written: 1 << 20)
    #expect(creation.rejection == rejection)
    #expect((10..<16).contains(creation.changes) && creation.entryBytes <= 1 << 20, "\(creation)")
    for start in stride(from: 0, to: 40, by: 10) {
      try await fixture.commit(Array(writes[start..<start + 10]))
    }
    let deletion = try await plan(writes.map { Write(.delete($0.document)) }, fixture, written: 1 << 20)
    #expect(deletion.rejection == rejection)
    // The limit is checked after each document, so the plan also encodes the entries of the document that exceeds it.
    #expect((10..<16).contains(deletion.changes) && deletion.entryBytes <= 9 << 17, "\(deletion)")
    #expect(try await fixture.check().automaticEntries == 40 * 51)
  }

  @Test("the cost of a commit includes unchanged index entries, which the plan encodes once")
  func unchangedEntries() async throws {
    let fixture = try EngineFixture(maximumCommitCost: 1 << 20)
    let writes = try entryWrites(fixture)
    for start in stride(from: 0, to: 40, by: 10) {
      try await fixture.commit(Array(writes[start..<start + 10]))
    }
    let updates = writes.map { masked($0.document, "m", 1) }
    #expect(await failure { try await fixture.commit(updates) } == .invalidArgument(Self.rejection))
    let planned = try await plan(updates, fixture)
    // The entries of a document are those of the array, of its elements and of the new field, and one collection
    // group row.
    #expect(planned.rejection == nil && planned.changes == 40 && planned.entries == 40 * 53, "\(planned)")
    try await fixture.commit(Array(updates.prefix(10)))
    #expect(try await fixture.check().automaticEntries == 40 * 51 + 10)
  }

  @Test("composite index entries are counted before they are encoded")
  func composites() async throws {
    let tags = FieldPath(field: "tags")
    let a = FieldPath(field: "a")
    var configuration = DatabaseIndexConfiguration(indexes: [
      .init("c", .collection, [.init(tags, .contains), .init(a, .ascending)])
    ])
    configuration.overrides = [.init("c", tags, [])]
    let fixture = try EngineFixture(maximumCommitCost: 1 << 20)
    try await fixture.setIndexes(configuration, untilStable: true)
    let text = Value.string(String(repeating: "x", count: 1_400))
    func fields(_ count: Int64) -> MapValue { ["a": text, "tags": .array((0..<count).map { .integer($0) })] }
    #expect(await failure { try await fixture.set("c/d", fields(2_000)) } == .invalidArgument(Self.rejection))
    try await fixture.set("c/d", fields(200))
    // The limit on the number of entries is checked first.
    let count = await failure { try await fixture.set("c/d", fields(50_000)) }
    #expect(
      count?.message.hasPrefix("INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED") == true, "\(String(describing: count))")
    #expect(try await fixture.check().compositeEntries == 200)
  }

  @Test("a composite index reports the count and the bytes of a document's entries before it builds them")
  func reportedEntries() throws {
    let fields: MapValue = ["a": "text", "b": 7, "tags": [1, "two", 1, "three"]]
    for scope in [DatabaseIndexConfiguration.Scope.collection, .collectionGroup] {
      for parts in [["a"], ["tags"], ["b", "tags", "a"], ["a", "none"]] {
        let index = NumberedIndex(
          number: 7,
          index: CompositeIndex(
            collectionID: "c", scope: scope,
            parts: parts.map { .init(FieldPath(field: $0), $0 == "tags" ? .contains : .descending) },
            namesDescend: true))
        var reported: [[Int]] = []
        let entries = try index.entries(of: fields, at: "c/d") { reported.append([$0, $1]) }
        #expect(
          reported
            == (entries.isEmpty ? [] : [[entries.count, entries.reduce(0) { $0 + $1.0.count + $1.1.count }]]))
        #expect(entries.count == (parts.contains("none") ? 0 : parts.contains("tags") ? 3 : 1))
      }
    }
  }

  @Test("an access policy decides once about the net effect of several writes to a document")
  func netEffect() async throws {
    let policy = RecordingPolicy()
    let fixture = try EngineFixture(policy: policy, maximumCommitCost: 1 << 20)
    let name = try fixture.name("c/d")
    let text = Value.string(String(repeating: "x", count: 50_000))
    try await fixture.set("c/d", ["x": text])
    let writes = (0..<30).map { masked(name, "n", .integer($0)) }
    _ = try await fixture.engine.commit(in: fixture.database, writes, as: .user("u"))
    #expect(policy.seen.all == [[["x": text], ["n": 29, "x": text]]])
  }

  @Test(
    "document limits apply to the final state, and the first failing write is reported")
  func limits() async throws {
    let fixture = try EngineFixture()
    let name = try fixture.name("c/d")
    let text = Value.string(String(repeating: "x", count: 600_000))
    let grow = [masked(name, "a", text), masked(name, "b", text)]
    let other = Write(.update(try fixture.name("c/none"), fields: [:]), precondition: .exists(true))
    for writes in [grow, grow + [masked(name, "n", 1)], grow + [other]] {
      let rejection = await failure { try await fixture.commit(writes) }
      #expect(rejection?.code == .invalidArgument)
      #expect(rejection?.message.hasPrefix("Document '\(name)' cannot be written because its size") == true)
    }
    #expect(await failure { try await fixture.commit([other] + grow) }?.code == .notFound)
    try await fixture.commit(grow + [masked(name, "a", nil)])
    #expect(try await fixture.get("c/d") == ["b": text])
    // The depth of a field path and of its value add up.
    let path = try #require(FieldPath(segments: [String](repeating: "m", count: 21)))
    let deep = Write(.transform(name, [FieldTransform(path, .appendMissing([1]))]))
    #expect(await failure { try await fixture.commit([deep]) }?.message.contains("20 levels") == true)
  }
}
