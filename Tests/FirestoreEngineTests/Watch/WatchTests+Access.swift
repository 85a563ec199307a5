// Tests the permissions of listeners, and targets that lose their permission.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

extension WatchTests {
  @Test(
    "a listener without permission receives REMOVE, and a target is removed when its permission is revoked")
  func permissionRevoked() async throws {
    let fixture = try EngineFixture(policy: FlagPolicy())
    let flag = Write(.update(try fixture.name("flags/open"), fields: ["on": true]))
    try await fixture.commit([flag, Write(.update(try fixture.name("c/a"), fields: [:]))])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .nobody)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") {
      client.view.current == [2] && !client.view.snapshots.isEmpty
    }
    try await fixture.set("flags/open", ["on": false])
    try await eventually("the target is removed") { client.view.removed[2]??.code == .permissionDenied }
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is rejected") { client.view.removed[4]??.code == .permissionDenied }
    let rejection = await failure {
      try await fixture.engine.getDocument(try fixture.name("c/a"), as: .nobody)
    }
    #expect(rejection?.code == .permissionDenied)
    let write = Write(.update(try fixture.name("c/a"), fields: ["x": 1]))
    let unwritten = await failure {
      try await fixture.engine.commit(in: fixture.database, [write], as: .nobody)
    }
    #expect(unwritten?.code == .permissionDenied)
    #expect(try await fixture.get("c/a") == [:])
  }

  @Test("a slow client that loses its permission receives no later documents")
  func slowClientRevoked() async throws {
    var budget = WatchBufferLimits()
    budget.maximumChanges = 2
    budget.maximumNames = 2
    let fixture = try EngineFixture(policy: FlagPolicy(), watchBufferLimits: budget)
    try await fixture.commit([
      Write(.update(try fixture.name("flags/open"), fields: ["on": true])),
      Write(.update(try fixture.name("c/a"), fields: [:])),
    ])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .nobody)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") {
      client.view.current == [2] && !client.view.snapshots.isEmpty
    }
    client.block(true)
    // The stream sends one change before it blocks. The later changes exceed the budgets of the stream's buffer, so the
    // buffer replaces the changes by one marker, which resets all targets.
    try await fixture.set("c/b", [:])
    try await fixture.set("flags/open", ["on": false])
    for number in 0..<10 { try await fixture.set(ResourcePath(["c", "secret\(number)"]), [:]) }
    client.block(false)
    try await eventually("the target is removed") { client.view.removed[2]??.code == .permissionDenied }
    for case .documentChange(let document, _, _) in client.view.responses {
      #expect(!document.name.id.hasPrefix("secret"))
    }
    stream.close()
  }

  @Test("if a permission is revoked while the policy decides about the target, the policy decides again")
  func revokedDuringEvaluation() async throws {
    let gate = Guarded((evaluations: 0, isOpen: false))
    let fixture = try EngineFixture(
      policy: FlagPolicy {
        let isFirst = gate.withLock { gate in
          gate.evaluations += 1
          return gate.evaluations == 1
        }
        gate.broadcast()
        // The policy has read the flag, and the target does not receive changes of it yet.
        if isFirst { _ = gate.wait(milliseconds: 20_000) { $0.isOpen ? () : nil } }
      })
    try await fixture.commit([
      Write(.update(try fixture.name("flags/open"), fields: ["on": true])),
      Write(.update(try fixture.name("c/a"), fields: [:])),
    ])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .nobody)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the policy is evaluating") { gate.withLock { $0.evaluations > 0 } }
    try await fixture.set("flags/open", ["on": false])
    gate.withLock { $0.isOpen = true }
    gate.broadcast()
    try await eventually("the target is rejected") { client.view.removed[2]??.code == .permissionDenied }
    stream.close()
  }

  @Test("production mode answers UNAUTHENTICATED without credentials, and NOT_FOUND for unknown databases")
  func productionMode()
    async throws
  {
    let store = try MemoryStore()
    let engine = FirestoreEngine(
      store: store, policy: LockedPolicy(), options: .init(createsDatabases: false))
    let database = DatabaseName(project: "demo")
    let name = try #require(DocumentName(database: database, path: "c/d"))
    let missing = await failure { try await engine.getDocument(name, as: .administrator) }
    #expect(missing?.code == .notFound)
    #expect(missing?.message.contains("does not exist") == true)
    try await engine.createDatabase(database)
    #expect(try await engine.databaseNames() == [database])
    #expect(await failure { try await engine.getDocument(name, as: .nobody) }?.code == .unauthenticated)
    let write = Write(.update(name, fields: [:]))
    #expect(
      await failure { try await engine.commit(in: database, [write], as: .nobody) }?.code
        == .unauthenticated)
    _ = try await engine.commit(in: database, [write], as: .administrator)
  }
}

/// Allows anonymous callers everything while `flags/open` is true.
private struct FlagPolicy: AccessPolicy {
  /// Called after the flag was read.
  var onFlagRead: @Sendable () -> Void = {}

  func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision {
    guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open") else {
      return .deny(reason: "no flag")
    }
    let isOpen = try view.document(flag)?.fields["on"] == .boolean(true)
    onFlagRead()
    return isOpen ? .allow(dependingOn: [flag]) : .deny(reason: "closed")
  }
}
