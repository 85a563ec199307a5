// Tests of stored rulesets (rules files with an id): the releases that put a ruleset in force, the history of releases, the
// copies of rulesets in each database, and the maximum number of rulesets.

import Access
import AccessFixture
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Rulesets", .timeLimit(.minutes(1))) struct RulesetTests {
  private let database = DatabaseName(project: "p")
  private let named = DatabaseName(project: "p", database: "named")

  private func engine(_ store: any OrderedStore) -> FirestoreEngine {
    var options = FirestoreEngine.Options(createsDatabases: true)
    options.compileRules = { TestPolicy.denying($0) }
    return FirestoreEngine(store: store, policy: OpenPolicy<FirestoreAccess>(), options: options)
  }

  private func create(_ source: String, _ engine: FirestoreEngine) async throws -> StoredRuleset {
    try await engine.createRuleset([.init(name: "a.rules", content: source)], in: "p")
  }

  private func release(
    _ ruleset: StoredRuleset, in name: DatabaseName, _ engine: FirestoreEngine
  ) async throws {
    try await engine.releaseRules(
      ReleasedRules(ruleset, policy: TestPolicy.denying(ruleset.source)), in: name)
  }

  private func code(_ body: () async throws -> Void) async -> StatusCode? {
    do {
      try await body()
      return nil
    } catch { return (error as? FirestoreError)?.code }
  }

  @Test("a release is durable with its ruleset and history; releasing the ruleset in force changes nothing")
  func releases() async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = self.engine(store)
    let (first, second) = (try await create("a", engine), try await create("b", engine))
    #expect(try await engine.currentRelease(of: database) == nil)
    try await release(first, in: database, engine)
    try await release(second, in: database, engine)
    try await release(second, in: database, engine)
    try await release(first, in: database, engine)
    await engine.shutDown()
    let after = self.engine(store)
    let current = try #require(try await after.currentRelease(of: database))
    let history = try await after.releaseHistory(of: database, limit: 10)
    #expect(history.map(\.rulesetID) == [first, second, first].map(\.header.id))
    #expect(history.allSatisfy { $0.isStored })
    #expect(current.rulesetID == first.header.id)
    #expect(current.updatedAt == history.first?.time && current.createdAt == history.last?.time)
    #expect(try await after.storedRules(of: database) == "a")
    #expect(try await after.ruleset(second.header.id, of: "p") == second)
    #expect(try await after.ruleset(second.header.id, of: "q") == nil)
    await after.shutDown()
  }

  @Test("rules that are released from a file get a new ruleset; a release copies its ruleset to the database")
  func copies() async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = self.engine(store)
    try await engine.releaseRules(
      ReleasedRules(source: "f", policy: TestPolicy.denying("f")), inGroup: "g"
    ) { $0 == self.named }
    let current = try #require(try await engine.currentRelease(of: named))
    #expect(try await engine.ruleset(current.rulesetID, of: "p")?.source == "f")
    let ruleset = try await create("a", engine)
    try await release(ruleset, in: named, engine)
    #expect(try await engine.storedRules(of: named) == "a")
    #expect(
      try await engine.rulesets(of: "p").map(\.id).sorted()
        == [current.rulesetID, ruleset.header.id].sorted())
    await engine.shutDown()
  }

  @Test(
    "the ruleset in force cannot be deleted; other rulesets are deleted from all databases of their project")
  func deletion() async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = self.engine(store)
    let (first, second) = (try await create("a", engine), try await create("b", engine))
    try await release(first, in: named, engine)
    try await release(second, in: named, engine)
    #expect(await code { try await engine.deleteRuleset(second.header.id, of: "p") } == .failedPrecondition)
    try await engine.deleteRuleset(first.header.id, of: "p")
    #expect(try await engine.ruleset(first.header.id, of: "p") == nil)
    #expect(await code { try await engine.deleteRuleset(first.header.id, of: "p") } == .notFound)
    #expect(try await engine.releaseHistory(of: named, limit: 10).map(\.isStored) == [true, false])
    await engine.shutDown()
  }

  @Test("a database whose release was deleted behaves like a database without rules, also after a restart")
  func deletedRelease() async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = self.engine(store)
    try await release(try await create("a", engine), in: database, engine)
    #expect(!engine.policies.slot(of: database).current.allowsEverything(.user("u")))
    try await engine.deleteRelease(of: database)
    #expect(engine.policies.slot(of: database).current.allowsEverything(.user("u")))
    #expect(try await engine.currentRelease(of: database) == nil)
    await engine.shutDown()
    let after = self.engine(store)
    #expect(try await after.currentRelease(of: database) == nil)
    #expect(after.policies.slot(of: database).current.allowsEverything(.user("u")))
    await after.shutDown()
  }

  @Test(
    "a database with the maximum number of rulesets rejects another; a release from a file drops the oldest")
  func maximum() async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = self.engine(store)
    let oldest = try await create("a", engine)
    let rows = try await engine.database(database).rows
    _ = try await rows.execute(validating: nil) { view in
      let header = StoredRuleset.Header(id: "", createdAt: Timestamp(seconds: 9_000_000_000))
      for number in 1..<RulesetRows.maximumCount {
        try view.set(FirestoreKeyLayout.ruleset("r\(number)"), header.encoded)
      }
    }
    #expect(await code { _ = try await create("b", engine) } == .resourceExhausted)
    try await engine.releaseRules(
      ReleasedRules(source: "c", policy: TestPolicy.denying("c")), inGroup: "g"
    ) { _ in true }
    #expect(try await engine.rulesets(of: "p").count == RulesetRows.maximumCount)
    #expect(try await engine.ruleset(oldest.header.id, of: "p") == nil)
    await engine.shutDown()
  }

  @Test("a release of the old format without a ruleset gets a ruleset when its database is opened")
  func unnamedRelease() async throws {
    let store = try MemoryStore(StoreOptions())
    let rows = try await store.database(
      named: FirestoreDatabase.catalogueName(database), history: .seconds(3600))
    _ = try await rows.execute(validating: nil) {
      try $0.set(FirestoreKeyLayout.rules, [1, 0, 0, 0, 0, 0, 0, 1, 2, 0x61])
    }
    let engine = self.engine(store)
    let current = try #require(try await engine.currentRelease(of: database))
    let ruleset = try #require(try await engine.ruleset(current.rulesetID, of: "p"))
    #expect(ruleset.source == "a" && ruleset.header.createdAt == Timestamp(microseconds: 258))
    await engine.shutDown()
  }

  @Test("decoding a damaged ruleset throws an error")
  func corruption() {
    #expect(throws: FirestoreError.self) { try StoredRuleset.Header(id: "r", decoding: [1, 2]) }
    for row: [UInt8] in [[0, 0, 0], [0, 0, 0, 9, 1], [0, 0, 0, 1, 0xFF, 0, 0, 0, 0]] {
      #expect(throws: FirestoreError.self) { try [StoredRuleset.File](decoding: row) }
    }
  }
}
