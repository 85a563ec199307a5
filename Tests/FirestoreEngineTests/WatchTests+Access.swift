// Who may listen, and what becomes of targets whose permission goes.

import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

extension WatchTests {
  @Test("who may not read gets REMOVE, and loses a target when the permission goes")
  func permissionIsLost() async throws {
    let fixture = try EngineFixture(policy: FlagPolicy())
    let flag = Write(.update(try fixture.name("flags/open"), fields: ["on": true]))
    try await fixture.commit([flag, Write(.update(try fixture.name("c/a"), fields: [:]))])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .anonymous)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("it is current") { client.view.current == [2] && !client.view.snapshots.isEmpty }
    try await fixture.set("flags/open", ["on": false])
    try await eventually("it is taken away") { client.view.removed[2]??.code == .permissionDenied }
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("it is refused") { client.view.removed[4]??.code == .permissionDenied }
    let refused = await failure {
      try await fixture.engine.getDocument(try fixture.name("c/a"), as: .anonymous)
    }
    #expect(refused?.code == .permissionDenied)
    let write = Write(.update(try fixture.name("c/a"), fields: ["x": 1]))
    let unwritten = await failure {
      try await fixture.engine.commit(in: fixture.database, [write], as: .anonymous)
    }
    #expect(unwritten?.code == .permissionDenied)
    #expect(try await fixture.get("c/a") == [:])
  }

  @Test("a reader who fell behind and lost the permission meanwhile is sent nothing of what came since")
  func permissionIsLostByALaggard() async throws {
    var budget = WatchBudget()
    budget.changes = 2
    budget.dirtyDocuments = 2
    let fixture = try EngineFixture(policy: FlagPolicy(), budget: budget)
    try await fixture.commit([
      Write(.update(try fixture.name("flags/open"), fields: ["on": true])),
      Write(.update(try fixture.name("c/a"), fields: [:])),
    ])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .anonymous)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("it is current") { client.view.current == [2] && !client.view.snapshots.isEmpty }
    client.block(true)
    // One is taken before the reader stops; of the others only that they were too many is kept.
    try await fixture.set("c/b", [:])
    try await fixture.set("flags/open", ["on": false])
    for number in 0..<10 { try await fixture.set(ResourcePath(["c", "secret\(number)"]), [:]) }
    client.block(false)
    try await eventually("it is taken away") { client.view.removed[2]??.code == .permissionDenied }
    for case .documentChange(let document, _, _) in client.view.responses {
      #expect(!document.name.id.hasPrefix("secret"))
    }
    stream.close()
  }

  @Test("a permission that goes while it is asked for is asked for again")
  func permissionIsLostMeanwhile() async throws {
    let gate = Guarded((asked: 0, isOpen: false))
    let fixture = try EngineFixture(
      policy: FlagPolicy {
        let isFirst = gate.withLock { gate in
          gate.asked += 1
          return gate.asked == 1
        }
        gate.broadcast()
        // What the answer rests on is read, and the target is not told of its changes yet.
        if isFirst { _ = gate.wait(milliseconds: 20_000) { $0.isOpen ? () : nil } }
      })
    try await fixture.commit([
      Write(.update(try fixture.name("flags/open"), fields: ["on": true])),
      Write(.update(try fixture.name("c/a"), fields: [:])),
    ])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client, as: .anonymous)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the policy is asked") { gate.withLock { $0.asked > 0 } }
    try await fixture.set("flags/open", ["on": false])
    gate.withLock { $0.isOpen = true }
    gate.broadcast()
    try await eventually("it is refused") { client.view.removed[2]??.code == .permissionDenied }
    stream.close()
  }

  @Test("without credentials production answers UNAUTHENTICATED, and unknown databases NOT_FOUND")
  func productionRefuses()
    async throws
  {
    let store = try MemoryStore()
    let engine = FirestoreEngine(
      store: store, policy: ProductionPolicy(), options: .init(createsDatabases: false))
    let database = DatabaseName(project: "demo")
    let name = try #require(DocumentName(database: database, path: "c/d"))
    let missing = await failure { try await engine.getDocument(name, as: .administrator) }
    #expect(missing?.code == .notFound)
    #expect(missing?.message.contains("does not exist") == true)
    try await engine.createDatabase(database)
    #expect(try await engine.databaseNames() == [database])
    #expect(await failure { try await engine.getDocument(name, as: .anonymous) }?.code == .unauthenticated)
    let write = Write(.update(name, fields: [:]))
    #expect(
      await failure { try await engine.commit(in: database, [write], as: .anonymous) }?.code
        == .unauthenticated)
    _ = try await engine.commit(in: database, [write], as: .administrator)
  }
}

/// Anonymous callers may do everything while `flags/open` says so.
private struct FlagPolicy: AccessPolicy {
  /// Called when the flag has been read.
  var whenRead: @Sendable () -> Void = {}

  func allowsEverything(_ caller: Caller) -> Bool { caller == .administrator }

  func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) throws -> AccessDecision {
    guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open") else {
      return .denied
    }
    let isOpen = try view.document(flag)?.fields()["on"] == .boolean(true)
    whenRead()
    return isOpen ? AccessDecision(denial: nil, dependencies: [flag]) : .denied
  }
}
