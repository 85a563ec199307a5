// Tests of a policy's decisions about reads. The policy sees the request's time, the state that is read, and the limit and
// order that the client requested.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Decisions about reads", .timeLimit(.minutes(5))) struct ReadDecisionTests {
  /// Allows reads while `flags/open` is true in the state that is read.
  private static let flagPolicy = TestPolicy { _, operation, view in
    guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open") else {
      return .deny(reason: "no flag")
    }
    if case .transaction = operation { return .allowed }
    return try view.document(flag)?.fields["on"] == .boolean(true) ? .allowed : .deny(reason: "closed")
  }

  @Test("for a read, the policy sees the clock's time as the request's, even long after the last commit")
  func timeOfReads() async throws {
    let times = Collected<Timestamp>()
    let policy = TestPolicy { _, _, view in
      times.append(view.time)
      return .allowed
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("c/d", [:])
    fixture.clock.advance(by: 3_600_000_000)
    _ = try await fixture.engine.getDocument(try fixture.name("c/d"), as: .nobody)
    #expect(times.all == [Timestamp(microseconds: fixture.clock.wallTime())])
  }

  @Test("for a commit, the policy sees the time of the server timestamps as the time of the request")
  func commitTime() async throws {
    let times = Collected<Timestamp>()
    let policy = TestPolicy { _, operation, view in
      if case .commit(let writes) = operation, let name = writes.first?.name {
        times.append(view.time)
        if case .timestamp(let time)? = try view.documentAfter(name)?.fields["at"] { times.append(time) }
      }
      return .allowed
    }
    let fixture = try EngineFixture(policy: policy)
    let write = Write(
      .update(try fixture.name("c/d"), fields: [:]),
      transforms: [FieldTransform(FieldPath(field: "at"), .serverTimestamp)])
    _ = try await fixture.engine.commit(in: fixture.database, [write], as: .nobody)
    #expect(times.all.count == 2 && times.all.first == times.all.last)
  }

  @Test("a read at a past version needs permission at that version and at the newest version")
  func pastReads() async throws {
    let fixture = try EngineFixture(policy: Self.flagPolicy)
    let engine = fixture.engine
    let name = try fixture.name("c/d")
    let query = Query(parent: fixture.root, StructuredQuery(from: [.init("c")]))
    try await fixture.set("c/d", [:])
    let closed = try #require(try await fixture.set("flags/open", ["on": false]).commitTime)
    let open = try #require(try await fixture.set("flags/open", ["on": true]).commitTime)
    let reads: [@Sendable (ReadConsistency) async throws -> Void] = [
      { _ = try await engine.getDocument(name, consistency: $0, as: .nobody) },
      {
        try await engine.batchGetDocuments(in: name.database, [name], consistency: $0, as: .nobody) { _ in }
      },
      { try await engine.runQuery(query, consistency: $0, as: .nobody) { _ in } },
      {
        _ = try await engine.listDocuments(
          ListDocumentsRequest(parent: query.parent, collectionID: "c", consistency: $0), as: .nobody)
      },
    ]
    let snapshot = try await engine.beginTransaction(in: fixture.database, .readOnly(), as: .nobody)
    for read in reads {
      #expect(await failure { try await read(.readTime(closed)) }?.code == .permissionDenied)
      #expect(await failure { try await read(.readTime(open)) } == nil)
      #expect(await failure { try await read(.transaction(snapshot)) } == nil)
    }
    try await fixture.set("flags/open", ["on": false])
    for read in reads {
      #expect(await failure { try await read(.readTime(open)) }?.code == .permissionDenied)
      #expect(await failure { try await read(.transaction(snapshot)) }?.code == .permissionDenied)
    }
  }

  @Test("if the policy is replaced while a read waits for a lock, the new policy decides about the read")
  func policyReplacedDuringWait() async throws {
    let fixture = try EngineFixture(policy: TestPolicy { _, _, _ in .allowed })
    let engine = fixture.engine
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", [:])
    let locks = try await engine.database(fixture.database).locks
    let reads: [@Sendable ([UInt8]) async throws -> Void] = [
      { _ = try await engine.getDocument(name, consistency: .transaction($0), as: .user("u")) },
      {
        try await engine.batchGetDocuments(
          in: name.database, [name], consistency: .transaction($0), as: .user("u")
        ) { _ in }
      },
    ]
    for read in reads {
      engine.policies.publish(TestPolicy { _, _, _ in .allowed }, for: fixture.database)
      // A transaction that retries another one takes exclusive locks.
      let holder = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
      _ = try await engine.getDocument(name, consistency: .transaction(holder), as: .administrator)
      let token = try await engine.beginTransaction(in: fixture.database, .readWrite(), as: .user("u"))
      let waiting = Task { await failure { try await read(token) } }
      try await eventually("the read waits") { locks.waiterCount > 0 }
      engine.policies.publish(TestPolicy.denying("c"), for: fixture.database)
      try await engine.rollback(in: fixture.database, transaction: holder, as: .administrator)
      #expect(await waiting.value?.code == .permissionDenied)
    }
  }

  @Test("a policy sees the limit, the offset and the orders that the client sent")
  func requestedShape() async throws {
    let policy = TestPolicy { _, _, _ in .allowed }
    let fixture = try EngineFixture(policy: policy)
    for number in 0..<5 {
      try await fixture.set(ResourcePath(["c", "d\(number)"]), ["n": .integer(Int64(number))])
    }
    func listed(_ operation: () async throws -> Void) async throws -> StructuredQuery? {
      policy.operations.withLock { $0 = [] }
      try await operation()
      switch policy.operations.withLock({ $0.first }) {
      case .list(let listed)?, .aggregate(let listed)?: return listed.query.structured
      default: return nil
      }
    }
    for size in [0, 2] {
      let request = ListDocumentsRequest(
        parent: fixture.root, collectionID: "c", pageSize: size, orderBy: "n desc")
      let seen = try await listed { _ = try await fixture.engine.listDocuments(request, as: .nobody) }
      #expect(seen?.limit == (size == 0 ? nil : size))
      #expect(seen?.orderBy.map(\.field) == [FieldPath(field: "n")])
      #expect(seen?.startAt == nil)
    }
    var query = StructuredQuery(from: [.init("c")], limit: 3)
    query.offset = 1
    query.filter = .field(.init(FieldPath(field: "n"), .greaterThan, 0))
    let requested = Query(parent: fixture.root, query)
    let aggregation = AggregationQuery(query, [.init("n", .count(upTo: 1))])
    #expect(
      try await listed { try await fixture.engine.runQuery(requested, as: .nobody) { _ in } } == query)
    #expect(
      try await listed {
        _ = try await fixture.engine.runAggregationQuery(aggregation, under: fixture.root, as: .nobody)
      } == query)
  }

  @Test("the policy decides about all documents of a batch before the first page is delivered")
  func batchDecision() async throws {
    let policy = TestPolicy.denying("secret")
    let fixture = try EngineFixture(policy: policy)
    let names = try (0..<600).map { try fixture.name(ResourcePath(["c", "d\($0)"])) }
    let secret = try fixture.name("secret/d")
    let pages = Collected<Int>()
    let error = await failure {
      try await fixture.engine.batchGetDocuments(in: fixture.database, names + [secret], as: .nobody) {
        pages.append($0.items.count)
      }
    }
    #expect(error == FirestoreAccess.permissionDenied)
    #expect(pages.all.isEmpty)
    try await fixture.engine.batchGetDocuments(in: fixture.database, names, as: .nobody) {
      pages.append($0.items.count)
    }
    #expect(pages.all.reduce(0, +) == 600)
  }
}
