// Tests of stored rules. A release, the record that puts rules in force, survives a restart and also covers databases that
// are opened later. Damaged rules deny every user.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Stored rules", .timeLimit(.minutes(1))) struct RulesReleaseTests {
  private struct Unreadable: Error {}

  private let user = Principal.user("u1")
  private let first = DatabaseName(project: "p")
  private let second = DatabaseName(project: "p", database: "second")
  private let other = DatabaseName(project: "q")

  /// An engine whose rules are the name of the collection that users may not read.
  private func engine(_ store: any OrderedStore) -> FirestoreEngine {
    var options = FirestoreEngine.Options(createsDatabases: true)
    options.compileRules = { source in
      guard source != "invalid" else { throw Unreadable() }
      return TestPolicy.denying(source)
    }
    return FirestoreEngine(store: store, policy: OpenPolicy<FirestoreAccess>(), options: options)
  }

  private func release(_ source: String, on engine: FirestoreEngine) async throws {
    try await engine.releaseRules(
      ReleasedRules(source: source, policy: TestPolicy.denying(source)), inGroup: "p"
    ) { $0.project == "p" }
  }

  /// Creates a database by its first commit.
  private func write(in database: DatabaseName, _ engine: FirestoreEngine) async throws {
    let name = try #require(DocumentName(database: database, path: "any/d"))
    _ = try await engine.commit(in: database, [Write(.update(name, fields: [:]))], as: .administrator)
  }

  private func isDenied(_ collection: String, in database: DatabaseName, _ engine: FirestoreEngine)
    async throws -> Bool
  {
    let name = try #require(DocumentName(database: database, path: ResourcePath([collection, "d"])))
    do {
      try await engine.batchGetDocuments(in: database, [name], as: user) { _ in }
      return false
    } catch let error as FirestoreError {
      #expect(error.code == .permissionDenied || error.code == .unauthenticated)
      return true
    }
  }

  @Test("released rules are in force in open databases, in databases opened later, and after a restart")
  func releases() async throws {
    let store = try MemoryStore(StoreOptions())
    let before = self.engine(store)
    #expect(try await !isDenied("a", in: first, before))
    try await release("a", on: before)
    #expect(try await isDenied("a", in: first, before))
    #expect(try await isDenied("a", in: second, before))
    #expect(try await !isDenied("a", in: other, before))
    #expect(try await before.storedRules(of: second) == "a")
    try await release("b", on: before)
    #expect(try await !isDenied("a", in: first, before))
    for database in [first, second] { try await write(in: database, before) }
    await before.shutDown()
    let after = self.engine(store)
    for database in [first, second] {
      #expect(try await isDenied("b", in: database, after))
      #expect(try await !isDenied("a", in: database, after))
    }
    #expect(try await !isDenied("b", in: other, after))
    #expect(try await after.storedRules(of: other) == nil)
    await after.shutDown()
    try await store.close()
  }

  @Test("rules that do not compile any more deny every user")
  func invalidRules() async throws {
    let store = try MemoryStore(StoreOptions())
    let before = self.engine(store)
    #expect(try await !isDenied("a", in: first, before))
    try await release("invalid", on: before)
    try await write(in: first, before)
    await before.shutDown()
    let after = self.engine(store)
    #expect(try await isDenied("a", in: first, after))
    await after.shutDown()
    try await store.close()
  }

  @Test("a damaged row of rules denies every user until rules are released")
  func damagedRules() async throws {
    let store = try MemoryStore(StoreOptions())
    let rows = try await store.database(
      named: FirestoreDatabase.catalogueName(first), history: .seconds(3600))
    _ = try await rows.execute(validating: nil) { try $0.set(FirestoreKeyLayout.rules, [9, 9]) }
    let engine = self.engine(store)
    #expect(try await isDenied("a", in: first, engine))
    try await release("b", on: engine)
    #expect(try await !isDenied("a", in: first, engine))
    #expect(try await isDenied("b", in: first, engine))
    await engine.shutDown()
    try await store.close()
  }

  @Test("the bytes of a stored release are the same in every version of the engine")
  func storedForm() throws {
    let release = RulesRelease(source: "é", rulesetID: "r1", at: 258)
    #expect(release.encoded == [2, 0, 0, 0, 0, 0, 0, 1, 2, 2, 0x72, 0x31, 0xC3, 0xA9])
    #expect(try RulesRelease(decoding: release.encoded) == release)
    #expect(throws: FirestoreError.self) { try RulesRelease(decoding: [1, 2]) }
    #expect(throws: FirestoreError.self) { try RulesRelease(decoding: Array(release.encoded.dropLast())) }
  }
}
