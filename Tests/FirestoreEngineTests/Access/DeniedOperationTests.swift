// Tests that the error of a denied operation does not depend on stored data, and that denied operations take no locks.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Denied operations", .timeLimit(.minutes(5))) struct DeniedOperationTests {
  private static let denial = FirestoreAccess.permissionDenied

  @Test("the error of a denied write depends neither on stored data nor on its precondition")
  func preconditions() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"))
    let large = Value.string(String(repeating: "x", count: 700_000))
    try await fixture.set("secret/stored", ["large": large, "list": .array([1])])
    let stored = try await fixture.engine.getDocument(try fixture.name("secret/stored"), as: .administrator)
    let preconditions: [Precondition?] = [
      nil, .exists(true), .exists(false), .updateTime(stored.document.updateTime),
      .updateTime(Timestamp(microseconds: 1)),
    ]
    for path: ResourcePath in ["secret/stored", "secret/missing"] {
      let name = try fixture.name(path)
      for precondition in preconditions {
        let writes = [
          Write(.update(name, fields: ["n": 1]), precondition: precondition),
          // The merged document is too large if the document is stored.
          Write(
            .update(name, fields: ["more": large]), mask: [FieldPath(field: "more")],
            precondition: precondition),
          Write(.delete(name), precondition: precondition),
          Write(.verify(name), precondition: precondition ?? .exists(true)),
        ]
        for write in writes {
          let error = await failure {
            try await fixture.engine.commit(in: fixture.database, [write], as: .nobody)
          }
          #expect(error == Self.denial, "\(write)")
        }
        // A denied write hides the failures of the other writes of its commit.
        let other = Write(.update(try fixture.name("c/none"), fields: [:]), precondition: .exists(true))
        for commit in [[writes[0], other], [other, writes[0]]] {
          let error = await failure {
            try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
          }
          #expect(error == Self.denial)
        }
      }
      let created = await failure {
        try await fixture.engine.createDocument(
          in: try fixture.collection("secret"), id: name.id, fields: [:], as: .nobody)
      }
      #expect(created == Self.denial)
    }
    #expect(try await fixture.get("secret/stored") == ["large": large, "list": .array([1])])
  }

  @Test("a denied caller does not learn that stored documents exceed the cost limit of a commit")
  func hidesCommitCost() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"), maximumCommitCost: 1 << 18)
    let large = Value.bytes([UInt8](repeating: 1, count: 200_000))
    for id in ["a", "b", "c"] {
      try await fixture.set(ResourcePath(["secret", id]), ["x": large])
      try await fixture.set(ResourcePath(["c", id]), ["x": large])
    }
    func error(_ paths: [ResourcePath]) async throws -> FirestoreError? {
      let writes = try paths.map { Write(.delete(try fixture.name($0))) }
      return await failure { try await fixture.engine.commit(in: fixture.database, writes, as: .nobody) }
    }
    #expect(try await error(["secret/a", "secret/b", "secret/c"]) == Self.denial)
    #expect(try await error(["secret/x", "secret/y", "secret/z"]) == Self.denial)
    #expect(try await error(["c/a", "secret/b"]) == Self.denial)
    #expect(try await error(["c/a", "c/b"])?.code == .invalidArgument)
    // A later write that is invalid in every state of the database fails with the same error for any stored documents.
    let future = Precondition.updateTime(Timestamp(microseconds: 253_000_000_000_000_000))
    for ids in [["a", "b", "c"], ["x", "y", "z"]] {
      var writes = try ids.map { Write(.delete(try fixture.name(ResourcePath(["secret", $0])))) }
      writes.append(Write(.update(try fixture.name("secret/last"), fields: [:]), precondition: future))
      let fault = await failure { [writes] in
        try await fixture.engine.commit(in: fixture.database, writes, as: .nobody)
      }
      #expect(fault?.code == .invalidArgument)
    }
  }

  @Test("an allowed write still fails with the error of its precondition or of its merged contents")
  func allowedWrites() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"))
    let large = Value.string(String(repeating: "x", count: 700_000))
    try await fixture.set("c/stored", ["large": large])
    func code(_ write: Write) async -> StatusCode? {
      await failure { try await fixture.engine.commit(in: fixture.database, [write], as: .nobody) }?.code
    }
    let stored = try fixture.name("c/stored")
    let missing = try fixture.name("c/missing")
    #expect(await code(Write(.update(missing, fields: [:]), precondition: .exists(true))) == .notFound)
    #expect(await code(Write(.update(stored, fields: [:]), precondition: .exists(false))) == .alreadyExists)
    let old = Precondition.updateTime(Timestamp(microseconds: 1))
    #expect(await code(Write(.delete(stored), precondition: old)) == .failedPrecondition)
    let grown = Write(.update(stored, fields: ["more": large]), mask: [FieldPath(field: "more")])
    #expect(await code(grown) == .invalidArgument)
    #expect(await code(Write(.delete(stored))) == nil)
  }

  @Test("a precondition determines whether a policy decides about a creation or a change")
  func writeKinds() async throws {
    let policy = TestPolicy { _, _, _ in .deny(reason: "all") }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("c/stored", [:])
    func kinds(_ path: ResourcePath, _ writes: (DocumentName) -> [Write]) async throws -> [DocumentWrite.Kind]
    {
      policy.operations.withLock { $0 = [] }
      let commit = writes(try fixture.name(path))
      _ = await failure { try await fixture.engine.commit(in: fixture.database, commit, as: .nobody) }
      guard case .commit(let decided)? = policy.operations.withLock({ $0.first }) else { return [] }
      return decided.map(\.kind)
    }
    for path: ResourcePath in ["c/stored", "c/missing"] {
      let isStored = path == "c/stored"
      #expect(
        try await kinds(path) { [Write(.update($0, fields: [:]))] } == [isStored ? .update : .create])
      #expect(
        try await kinds(path) { [Write(.update($0, fields: [:]), precondition: .exists(true))] } == [.update])
      #expect(
        try await kinds(path) { [Write(.update($0, fields: [:]), precondition: .exists(false))] } == [.create]
      )
      #expect(
        try await kinds(path) { [Write(.delete($0)), Write(.update($0, fields: [:]))] }
          == [isStored ? .update : .create])
      #expect(
        try await kinds(path) { [Write(.update($0, fields: [:])), Write(.delete($0))] } == [.delete])
      #expect(
        try await kinds(path) {
          [Write(.verify($0), precondition: .exists(isStored))]
        } == [.verify])
    }
  }

  @Test("a denied read in a transaction takes no lock, so that no write waits for it")
  func deniedReadsTakeNoLocks() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"))
    try await fixture.set("secret/d", ["n": 1])
    let engine = fixture.engine
    let query = Query(parent: fixture.root, StructuredQuery(from: [.init("secret")]))
    let name = try fixture.name("secret/d")
    let reads: [@Sendable (ReadConsistency) async throws -> Void] = [
      { _ = try await engine.getDocument(name, consistency: $0, as: .nobody) },
      {
        try await engine.batchGetDocuments(in: name.database, [name], consistency: $0, as: .nobody) { _ in }
      },
      { try await engine.runQuery(query, consistency: $0, as: .nobody) { _ in } },
      {
        _ = try await engine.runAggregationQuery(
          AggregationQuery(query.structured, [.init("n", .count(upTo: nil))]), under: query.parent,
          consistency: $0, as: .nobody)
      },
      {
        _ = try await engine.listDocuments(
          ListDocumentsRequest(parent: query.parent, collectionID: "secret", consistency: $0), as: .nobody)
      },
    ]
    for read in reads {
      let token = try await engine.beginTransaction(in: fixture.database, .readWrite(), as: .nobody)
      #expect(await failure { try await read(.transaction(token)) } == Self.denial)
      #expect(await failure { try await read(.newTransaction(.readWrite())) } == Self.denial)
      // The test clock never advances, so a write that waits for a lock would never complete.
      try await fixture.set("secret/d", ["n": 2])
      try await engine.rollback(in: fixture.database, transaction: token, as: .nobody)
    }
  }

  @Test("a transaction continues after a denied read and keeps its earlier locks")
  func transactionContinues() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"))
    try await fixture.set("c/d", ["n": 1])
    let engine = fixture.engine
    let token = try await engine.beginTransaction(in: fixture.database, .readWrite(), as: .nobody)
    _ = try await engine.getDocument(
      try fixture.name("c/d"), consistency: .transaction(token), as: .nobody)
    let error = await failure {
      try await engine.getDocument(
        try fixture.name("secret/d"), consistency: .transaction(token), as: .nobody)
    }
    #expect(error == Self.denial)
    let write = Write(.update(try fixture.name("c/d"), fields: ["n": 2]))
    _ = try await engine.commit(in: fixture.database, [write], transaction: token, as: .nobody)
    #expect(try await fixture.get("c/d") == ["n": 2])
  }

  @Test("a denied caller does not learn which read times are too old")
  func oldReadTimes() async throws {
    let fixture = try EngineFixture(policy: TestPolicy.denying("secret"))
    try await fixture.set("secret/d", [:])
    let old = ReadConsistency.readTime(Timestamp(microseconds: 1))
    for (path, code) in [("secret/d", StatusCode.permissionDenied), ("c/d", .invalidArgument)] {
      let name = try fixture.name(ResourcePath(path.split(separator: "/").map(String.init)))
      let error = await failure { try await fixture.engine.getDocument(name, consistency: old, as: .nobody) }
      #expect(error?.code == code)
    }
  }

  @Test("a transaction loses its locks if a read is denied after it took them")
  func deniedUnderLocks() async throws {
    let decisions = Collected<Bool>()
    let policy = TestPolicy { _, operation, _ in
      guard case .get = operation else { return .allowed }
      decisions.append(true)
      // The policy decides first before the read takes its locks, and again while it holds them.
      return decisions.all.count == 2 ? .deny(reason: "closed") : .allowed
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.engine.beginTransaction(in: fixture.database, .readWrite(), as: .nobody)
    let error = await failure {
      try await fixture.engine.getDocument(
        try fixture.name("c/d"), consistency: .transaction(token), as: .nobody)
    }
    #expect(error == Self.denial)
    try await fixture.set("c/d", ["n": 2])
  }

  @Test("a denied caller does not learn that its transaction conflicts with another commit")
  func hidesConflicts() async throws {
    let isClosed = Collected<Bool>()
    let policy = TestPolicy { _, operation, _ in
      if case .commit = operation, !isClosed.all.isEmpty { return .deny(reason: "closed") }
      return .allowed
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("c/d", ["n": 1])
    func commit() async throws -> FirestoreError? {
      let token = try await fixture.engine.beginTransaction(
        in: fixture.database, .readWrite(concurrency: .optimistic), as: .nobody)
      _ = try await fixture.engine.getDocument(
        try fixture.name("c/d"), consistency: .transaction(token), as: .nobody)
      try await fixture.set("c/d", ["n": .integer(Int64.random(in: 2...1_000_000_000))])
      let write = Write(.update(try fixture.name("c/e"), fields: [:]))
      return await failure {
        try await fixture.engine.commit(in: fixture.database, [write], transaction: token, as: .nobody)
      }
    }
    #expect(try await commit()?.code == .aborted)
    isClosed.append(true)
    #expect(try await commit() == Self.denial)
  }

  @Test("an administrator of another project is denied like a caller without credentials")
  func otherProjects() async throws {
    let fixture = try EngineFixture(policy: LockedPolicy())
    try await fixture.set("c/d", [:])
    let own = Principal(.service(.administrator), project: "demo")
    let other = Principal(.service(.administrator), project: "other")
    let reader = Principal(.service(.reader), project: "demo")
    let name = try fixture.name("c/d")
    let write = Write(.update(name, fields: [:]))
    _ = try await fixture.engine.getDocument(name, as: own)
    _ = try await fixture.engine.getDocument(name, as: reader)
    #expect(await failure { try await fixture.engine.getDocument(name, as: other) }?.code == .unauthenticated)
    for caller in [other, reader] {
      #expect(
        await failure { try await fixture.engine.commit(in: fixture.database, [write], as: caller) } != nil)
      #expect(
        await failure { try await fixture.engine.batchWrite(in: fixture.database, [write], as: caller) }
          != nil)
    }
    _ = try await fixture.engine.commit(in: fixture.database, [write], as: own)
  }
}
