// Tests of concurrent changes of rules: the last change in the log is in force, and an acknowledged change is in force. A
// release puts rules in force for a database; its deletion takes them out of force.

import Access
import AccessFixture
import EmbeddedStore
import FirestoreModel
import Locking
import OrderedStore
import RandomModels
import StoreFixture
import Testing

@testable import FirestoreEngine

@Suite("Changes of rules", .timeLimit(.minutes(1))) struct RulesChangeTests {
  private let database = DatabaseName(project: "p")
  private let user = Principal.user("u1")

  /// An engine whose rules consist of one word: the name of the collection that users may not read.
  private func engine(_ store: any OrderedStore) -> FirestoreEngine {
    var options = FirestoreEngine.Options(createsDatabases: true)
    options.compileRules = { TestPolicy.denying($0) }
    return FirestoreEngine(store: store, policy: OpenPolicy<FirestoreAccess>(), options: options)
  }

  private func release(_ source: String, on engine: FirestoreEngine) async throws {
    try await engine.releaseRules(
      ReleasedRules(source: source, policy: TestPolicy.denying(source)), in: database)
  }

  /// The collections that a user may not read.
  private func denied(by engine: FirestoreEngine) async throws -> [String] {
    var denied: [String] = []
    for collection in ["a", "b", "c"] {
      let name = try #require(DocumentName(database: database, path: ResourcePath([collection, "d"])))
      let failure = await failure { try await engine.getDocument(name, as: user) }
      if failure?.code == .permissionDenied { denied.append(collection) }
    }
    return denied
  }

  @Test("A change is acknowledged when it is durable and in force; until then the old rules decide")
  func acknowledgement() async throws {
    let gate = GatedEngine()
    let store = try EngineStore(gate, StoreOptions())
    let engine = self.engine(store)
    try await release("a", on: engine)
    gate.blockCommits()
    let isAcknowledged = Guarded(false)
    let change = Task {
      try await release("b", on: engine)
      isAcknowledged.withLock { $0 = true }
    }
    await gate.waitUntilBlocked()
    #expect(try await denied(by: engine) == ["a"])
    #expect(try await engine.storedRules(of: database) == "a")
    #expect(!isAcknowledged.withLock { $0 })
    gate.unblock()
    try await change.value
    #expect(try await denied(by: engine) == ["b"])
    #expect(try await engine.storedRules(of: database) == "b")
    await engine.shutDown()
    try await store.close()
  }

  @Test("A change that is not durable is not in force, even if another change completes")
  func overtakingChange() async throws {
    let gate = GatedEngine()
    let store = try EngineStore(gate, StoreOptions())
    let engine = self.engine(store)
    try await release("a", on: engine)
    gate.blockCommits()
    let first = Task { try await release("b", on: engine) }
    await gate.waitUntilBlocked()
    let second = Task { try await release("c", on: engine) }
    try await eventually("the second change is requested") {
      engine.rules.withLock { $0.lastChange(of: database)?.rules?.source } == "c"
    }
    gate.unblock(failing: .unavailable("the disk is full"))
    await #expect(throws: FirestoreError.self) { try await first.value }
    await #expect(throws: FirestoreError.self) { try await second.value }
    #expect(try await denied(by: engine) == ["a"])
    await engine.shutDown()
    try? await store.close()
  }

  @Test(
    "After concurrent releases and deletions, the last change in the log is in force, also after a restart")
  func concurrentChanges() async throws {
    let directory = try TemporaryDirectory()
    var random = SeededGenerator(seed: 27)
    var stored: String?
    for _ in 0..<4 {
      let store = try await EmbeddedStore.open(directory: directory.path, EmbeddedOptions())
      let engine = self.engine(store)
      #expect(try await denied(by: engine) == (stored.map { [$0] } ?? []), "after a restart")
      for _ in 0..<60 {
        let changes: [String?] = (0..<Int.random(in: 2...4, using: &random)).map { _ in
          ["a", "b", nil].randomElement(using: &random) ?? nil
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
          for change in changes {
            group.addTask {
              if let change {
                try await release(change, on: engine)
              } else {
                try await engine.deleteRelease(of: database)
              }
            }
          }
          try await group.waitForAll()
        }
        stored = try await engine.storedRules(of: database)
        #expect(try await denied(by: engine) == (stored.map { [$0] } ?? []), "\(changes)")
      }
      await engine.shutDown()
      try await store.close()
    }
  }
}
