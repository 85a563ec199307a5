// Tests databases without a commit: a request finds such a database empty and does not create it; the first commit does.

import Access
import AccessFixture
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Unwritten databases", .timeLimit(.minutes(1))) struct UnwrittenDatabaseTests {
  private static func name(_ project: String) throws -> DocumentName {
    try #require(DocumentName(database: DatabaseName(project: project), path: "c/d"))
  }

  /// The number of databases that the engine holds open.
  private static func openCount(_ engine: FirestoreEngine) -> Int { engine.openDatabases.count }

  @Test("reads, transactions and rejected commits create no database")
  func requests() async throws {
    let fixture = try EngineFixture()
    #expect(try await fixture.get("c/d") == nil)
    #expect(try await fixture.query(StructuredQuery(from: [.init("c")])).isEmpty)
    let page = try await fixture.engine.listDocuments(
      ListDocumentsRequest(parent: fixture.root, collectionID: "c"), as: .administrator)
    #expect(page.documents.isEmpty)
    let transaction = try await fixture.begin()
    #expect(try await fixture.get("c/d", .transaction(transaction)) == nil)
    try await fixture.engine.rollback(in: fixture.database, transaction: transaction, as: .administrator)
    let missing = Write(.update(try fixture.name("c/d"), fields: [:]), precondition: .exists(true))
    #expect(await failure { try await fixture.commit([missing]) }?.code == .notFound)
    try await fixture.delete("c/d")
    try await fixture.engine.clear(fixture.database, as: .administrator)
    #expect(try await fixture.engine.databaseNames().isEmpty)
    #expect(try await fixture.store.databaseNames().isEmpty)

    try await fixture.set("c/d", ["a": 1])
    #expect(try await fixture.engine.databaseNames() == [fixture.database])
    #expect(try await fixture.get("c/d") == ["a": 1])
    #expect(try await fixture.check().isConsistent)
  }

  @Test("a listener on a missing database receives the first write")
  func listener() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    #expect(try await fixture.engine.databaseNames().isEmpty)
    // The stream keeps its database open while many other databases are requested.
    for index in 0..<300 {
      _ = await failure {
        try await fixture.engine.getDocument(try Self.name("p\(index)"), as: .administrator)
      }
    }
    let time = try #require(try await fixture.set("c/d", ["a": 1]).commitTime)
    let documents = try await client.snapshot(at: time)
    #expect(documents[2]?.keys.map { $0 } == ["c/d"])
    #expect(client.view.violations.isEmpty)
    stream.close()
  }

  @Test("the engine releases databases that were only read, but no database with an open transaction")
  func release() async throws {
    let fixture = try EngineFixture()
    let token = try await fixture.begin()
    #expect(try await fixture.get("c/d", .transaction(token)) == nil)
    for index in 0..<1000 {
      let error = await failure {
        try await fixture.engine.getDocument(try Self.name("p\(index)"), as: .administrator)
      }
      #expect(error?.code == .notFound)
      #expect(Self.openCount(fixture.engine) < 200)
    }
    try await fixture.commit(
      [Write(.update(try fixture.name("c/d"), fields: ["a": 1]))], transaction: token)
    #expect(try await fixture.engine.databaseNames() == [fixture.database])
  }

  @Test("read times keep rising when a missing database is released and opened again")
  func readTimes() async throws {
    let fixture = try EngineFixture()
    var last = Timestamp.epoch
    for round in 0..<3 {
      let times = Collected<Timestamp>()
      try await fixture.engine.runQuery(
        Query(parent: fixture.root, StructuredQuery(from: [.init("c")])), as: .administrator
      ) { times.append($0.readTime) }
      let time = try #require(times.all.last)
      #expect(time >= last)
      last = time
      for index in 0..<100 {
        _ = await failure {
          try await fixture.engine.getDocument(try Self.name("p\(round)-\(index)"), as: .administrator)
        }
      }
    }
    #expect(try #require(try await fixture.set("c/d", [:]).commitTime) > last)
  }

  @Test("the first commit stores the token key, the indexes and the rules that are in force")
  func firstRows() async throws {
    let store = try MemoryStore()
    let denying = ReleasedRules(source: "private", policy: TestPolicy.denying("private"))
    var indexes = DatabaseIndexConfiguration()
    indexes.indexes = [
      .init(
        "c", .collection,
        [.init(FieldPath(field: "a"), .ascending), .init(FieldPath(field: "b"), .ascending)])
    ]
    let before = try EngineFixture(store: store, strict: true)
    #expect(try await before.get("c/d") == nil)
    try await before.engine.setIndexes(indexes, ofDatabase: before.database.database)
    try await before.engine.releaseRules(denying, inGroup: "all") { _ in true }
    let query = StructuredQuery(
      from: [.init("c")], orderBy: [.init(FieldPath(field: "a")), .init(FieldPath(field: "b"))])
    #expect(try await before.query(query).isEmpty)
    #expect(try await store.databaseNames().isEmpty)
    let secret = try before.name("private/d")
    let user = Principal.user("u")
    #expect(
      await failure { try await before.engine.getDocument(secret, as: user) }?.code == .permissionDenied)

    for id in ["d", "e"] { try await before.set(ResourcePath(["c", id]), ["a": 1, "b": 2]) }
    #expect(try await before.query(query).count == 2)
    let page = try await before.engine.listDocuments(
      ListDocumentsRequest(parent: before.root, collectionID: "c", pageSize: 1), as: .administrator)
    await before.engine.shutDown()

    let after = try EngineFixture(store: store, strict: true)
    #expect(try await after.engine.storedRules(of: after.database) == "private")
    #expect(try await after.query(query).count == 2)
    let next = try await after.engine.listDocuments(
      ListDocumentsRequest(parent: after.root, collectionID: "c", pageSize: 1, pageToken: page.nextPageToken),
      as: .administrator)
    #expect(next.documents.count == 1)
    #expect(try await after.check().isConsistent)
    await after.engine.shutDown()
    try await store.close()
  }
}
