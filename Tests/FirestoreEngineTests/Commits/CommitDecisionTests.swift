// Commits whose decision takes several time slices of the sequencer.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Commits that are decided in parts", .timeLimit(.minutes(2))) struct CommitDecisionTests {
  /// Decides commits of `c` in three parts that read `flags/open`. Calls `parted` after each unfinished part.
  private static func policy(
    _ parts: Collected<Int>, _ parted: @escaping @Sendable (_ part: Int) -> Void
  ) -> TestPolicy {
    TestPolicy { _, operation, view in
      guard operation.touches("c"), case .commit = operation,
        let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open")
      else { return .allowed }
      var part = 0
      if case .rest(let next) = view.part { part = next as? Int ?? -1 }
      parts.append(part)
      guard try view.document(flag)?.fields["on"] == .boolean(true) else { return .deny(reason: "closed") }
      var decision = FirestoreDecision.allow(dependingOn: [flag])
      if part < 2 {
        decision.continuation = part + 1
        parted(part)
      }
      return decision
    }
  }

  private func writes(_ fixture: EngineFixture) throws -> [Write] {
    try (0..<3).map { Write(.update(try fixture.name(ResourcePath(["c", "d\($0)"])), fields: ["n": 1])) }
  }

  @Test("a commit is written once, after the last part of its decision")
  func parts() async throws {
    let parts = Collected<Int>()
    let fixture = try EngineFixture(policy: Self.policy(parts) { _ in })
    try await fixture.set("flags/open", ["on": true])
    let response = try await fixture.engine.commit(
      in: fixture.database, try writes(fixture), as: .user("u"))
    #expect(response.writeResults.count == 3)
    #expect(parts.all == [0, 1, 2])
    let stored = try await fixture.engine.getDocument(try fixture.name("c/d0"), as: .administrator)
    #expect(stored.document.updateTime == response.commitTime)
  }

  @Test(
    "a decision starts again if a document that it has read, or one that the commit writes, changed between its parts",
    arguments: ["flags/open", "c/d1"])
  func changes(path: ResourcePath) async throws {
    let parts = Collected<Int>()
    let engine = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, parts.all.count == 2, let fixture = engine.withLock({ $0 }) else { return }
        // Enqueued before the commit that is being decided.
        guard let name = DocumentName(database: fixture.database, path: path) else { return }
        let write = Write(.update(name, fields: ["on": true, "again": true]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    engine.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    _ = try await fixture.engine.commit(in: fixture.database, try writes(fixture), as: .user("u"))
    #expect(parts.all == [0, 1, 0, 1, 2])
  }

  @Test("permission that ends between the parts denies the commit")
  func revocation() async throws {
    let parts = Collected<Int>()
    let engine = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, let fixture = engine.withLock({ $0 }),
          let name = DocumentName(database: fixture.database, path: "flags/open")
        else { return }
        let write = Write(.update(name, fields: ["on": false]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    engine.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    let commit = try writes(fixture)
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error?.code == .permissionDenied)
    #expect(parts.all == [0, 1, 0])
  }

  @Test("a policy that is replaced between the parts decides from the start")
  func replacedPolicy() async throws {
    let parts = Collected<Int>()
    let engine = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, let fixture = engine.withLock({ $0 }) else { return }
        fixture.engine.policies.publish(TestPolicy.denying("c"), for: fixture.database)
      })
    engine.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    let commit = try writes(fixture)
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error?.code == .permissionDenied)
    #expect(parts.all == [0, 1])
  }

  @Test("a commit that is planned again and again for its decision is denied beyond the cost of one commit")
  func cost() async throws {
    let parts = Collected<Int>()
    let fixture = try EngineFixture(policy: Self.policy(parts) { _ in }, maximumCommitCost: 10_000)
    try await fixture.set("flags/open", ["on": true])
    let text = Value.string(String(repeating: "x", count: 2_000))
    for write in try writes(fixture) { try await fixture.set(write.document.path, ["text": text]) }
    let commit = try writes(fixture).map { Write(.delete($0.document)) }
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error == FirestoreAccess.permissionDenied)
    #expect(parts.all == [0, 1])
  }

  @Test("a decision whose documents change at every part ends with ABORTED, and writes nothing")
  func contention() async throws {
    let parts = Collected<Int>()
    let engine = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { _ in
        guard let fixture = engine.withLock({ $0 }),
          let name = DocumentName(database: fixture.database, path: "flags/open")
        else { return }
        let write = Write(.update(name, fields: ["on": true, "n": .integer(Int64(parts.all.count))]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    engine.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    let commit = try writes(fixture)
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error?.code == .aborted)
    #expect(parts.all.allSatisfy { $0 == 0 } && parts.all.count == EngineLimits.maximumCommitDecisions + 1)
    let name = try fixture.name("c/d0")
    #expect(
      await failure { _ = try await fixture.engine.getDocument(name, as: .administrator) }?.code == .notFound)
  }
}
