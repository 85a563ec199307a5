// Tests large commits about which the access policy decides in several parts, each in a separate time slice of the
// sequencer, which runs one commit of a database at a time.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Commits with decisions in parts", .timeLimit(.minutes(2))) struct CommitDecisionTests {
  /// Decides commits of `c` in three parts that read `flags/open`. Calls `onUnfinishedPart` after each unfinished part.
  private static func policy(
    _ parts: Collected<Int>, _ onUnfinishedPart: @escaping @Sendable (_ part: Int) -> Void
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
        onUnfinishedPart(part)
      }
      return decision
    }
  }

  private func writes(_ fixture: EngineFixture) throws -> [Write] {
    try (0..<3).map { Write(.update(try fixture.name(ResourcePath(["c", "d\($0)"])), fields: ["n": 1])) }
  }

  @Test("a commit is written once, after the last part of its decision")
  func writtenOnce() async throws {
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
    let fixtureHolder = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, parts.all.count == 2, let fixture = fixtureHolder.withLock({ $0 }) else { return }
        // This write is enqueued before the next part of the commit's decision.
        guard let name = DocumentName(database: fixture.database, path: path) else { return }
        let write = Write(.update(name, fields: ["on": true, "again": true]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    fixtureHolder.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    _ = try await fixture.engine.commit(in: fixture.database, try writes(fixture), as: .user("u"))
    #expect(parts.all == [0, 1, 0, 1, 2])
  }

  @Test("a commit is denied if its permission ends between the parts of the decision")
  func revocation() async throws {
    let parts = Collected<Int>()
    let fixtureHolder = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, let fixture = fixtureHolder.withLock({ $0 }),
          let name = DocumentName(database: fixture.database, path: "flags/open")
        else { return }
        let write = Write(.update(name, fields: ["on": false]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    fixtureHolder.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    let commit = try writes(fixture)
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error?.code == .permissionDenied)
    #expect(parts.all == [0, 1, 0])
  }

  @Test("if the policy is replaced between the parts, the new policy decides from the start")
  func replacedPolicy() async throws {
    let parts = Collected<Int>()
    let fixtureHolder = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, let fixture = fixtureHolder.withLock({ $0 }) else { return }
        fixture.engine.policies.publish(TestPolicy.denying("c"), for: fixture.database)
      })
    fixtureHolder.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    let commit = try writes(fixture)
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error?.code == .permissionDenied)
    #expect(parts.all == [0, 1])
  }

  @Test(
    "each part of a decision plans the commit again; if all plans exceed the cost limit, the commit is denied"
  )
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

  @Test("each repeated plan of a commit costs at least the size of the documents that it creates")
  func costOfCreations() async throws {
    let parts = Collected<Int>()
    let fixture = try EngineFixture(policy: Self.policy(parts) { _ in }, maximumCommitCost: 10_000)
    try await fixture.set("flags/open", ["on": true])
    let text = Value.string(String(repeating: "x", count: 2_000))
    let commit = try writes(fixture).map { Write(.update($0.document, fields: ["text": text])) }
    let error = await failure {
      _ = try await fixture.engine.commit(in: fixture.database, commit, as: .user("u"))
    }
    #expect(error == FirestoreAccess.permissionDenied)
    #expect(parts.all == [0, 1])
  }

  /// A part of a commit about which the policy has decided.
  private struct Decided: Equatable {
    let commit: String
    let part: Int
  }

  @Test(
    "one commit at a time continues its unfinished decision; a cancelled commit in the queue delays no other"
  )
  func queue() async throws {
    let decided = Collected<Decided>()
    let submit = Guarded<(@Sendable () -> Void)?>(nil)
    let cancelled = Guarded<CommitCall?>(nil)
    let policy = TestPolicy { _, operation, view in
      guard operation.touches("c"), case .commit(let writes) = operation, let write = writes.first else {
        return .allowed
      }
      var part = 0
      if case .rest(let next) = view.part { part = next as? Int ?? -1 }
      let commit = write.name.path.segments.last ?? ""
      decided.append(Decided(commit: commit, part: part))
      if let submit = submit.withLock({ submit in
        defer { submit = nil }
        return submit
      }) {
        submit()
      }
      // The policy has decided about the first parts of all three commits.
      if commit == "a", part == 1 { cancelled.withLock { $0?.cancel() } }
      var decision = FirestoreDecision.allowed
      if part < 2 { decision.continuation = part + 1 }
      return decision
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("other/d", ["n": 1])
    let outcomes = Collected<String>()
    @Sendable func commit(_ id: String) -> CommitCall? {
      guard let name = DocumentName(database: fixture.database, path: ResourcePath(["c", id])) else {
        return nil
      }
      return fixture.engine.commit(
        in: fixture.database, [Write(.update(name, fields: ["n": 1]))], as: .user("u")
      ) { outcome in
        switch outcome {
        case .success: outcomes.append(id)
        case .failure(let error): outcomes.append("\(id) \(error.code)")
        }
      }
    }
    submit.withLock {
      $0 = {
        let call = commit("b")
        cancelled.withLock { $0 = call }
        _ = commit("c")
      }
    }
    _ = commit("a")
    try await eventually("all commits end") { outcomes.all.count == 3 }
    #expect(outcomes.all.sorted() == ["a", "b CANCELLED", "c"])
    let order = ["a0", "b0", "c0", "a1", "a2", "c1", "c2"]
    #expect(decided.all.map { "\($0.commit)\($0.part)" } == order)
  }

  @Test(
    "all parts of a decision see the same time and server timestamps; a decision that starts again sees new times"
  )
  func time() async throws {
    let seen = Collected<Timestamp>()
    let fixture = Guarded<EngineFixture?>(nil)
    let milliseconds = Guarded<UInt64>(1_764_000_000_000)
    // Each version is in a different millisecond.
    let clock = StoreClock {
      milliseconds.withLock {
        $0 += 1
        return $0 * 1000
      }
    }
    let policy = TestPolicy { _, operation, view in
      guard operation.touches("c"), case .commit(let writes) = operation, let write = writes.first else {
        return .allowed
      }
      var part = 0
      if case .rest(let next) = view.part { part = next as? Int ?? -1 }
      seen.append(view.time)
      guard try view.documentAfter(write.name)?.fields["at"] == .timestamp(view.time) else {
        return .deny(reason: "another time")
      }
      if seen.all.count == 2, let fixture = fixture.withLock({ $0 }) {
        let change = Write(.update(write.name, fields: ["n": 1]))
        fixture.engine.commit(in: fixture.database, [change], as: .administrator) { _ in }
      }
      var decision = FirestoreDecision.allowed
      if part < 2 { decision.continuation = part + 1 }
      return decision
    }
    let made = try EngineFixture(store: MemoryStore(StoreOptions(clock: clock)), policy: policy)
    fixture.withLock { $0 = made }
    let field = FieldPath(field: "at")
    let write = Write(
      .update(try made.name("c/d"), fields: [:]), transforms: [FieldTransform(field, .serverTimestamp)])
    _ = try await made.engine.commit(in: made.database, [write], as: .user("u"))
    let times = seen.all
    try #require(times.count == 5)
    #expect(times[0] == times[1] && times[1] < times[2] && times[2] == times[3] && times[3] == times[4])
    #expect(try await made.get("c/d")?["at"] == .timestamp(times[4]))
  }

  /// Counts the parts that an observer of all decisions receives.
  private struct Observer: DecisionObserver {
    let count: Guarded<Int>
    var observesAllowed: Bool { true }

    func observe(
      _ decision: FirestoreDecision, about operation: FirestoreOperation, of principal: Principal,
      by policy: any AccessPolicy<FirestoreAccess>, view: (any DocumentView)?
    ) { if operation.touches("c") { count.withLock { $0 += 1 } } }
  }

  @Test("an observer receives each part once, even if the decision starts again")
  func observation() async throws {
    let parts = Collected<Int>()
    let count = Guarded(0)
    let fixtureHolder = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { part in
        guard part == 1, parts.all.count == 2, let fixture = fixtureHolder.withLock({ $0 }),
          let name = DocumentName(database: fixture.database, path: "flags/open")
        else { return }
        let write = Write(.update(name, fields: ["on": true, "again": true]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      }, observer: Observer(count: count))
    fixtureHolder.withLock { $0 = fixture }
    try await fixture.set("flags/open", ["on": true])
    _ = try await fixture.engine.commit(in: fixture.database, try writes(fixture), as: .user("u"))
    #expect(parts.all == [0, 1, 0, 1, 2])
    #expect(count.withLock { $0 } == 3)
  }

  @Test("a decision whose documents change at every part ends with ABORTED, and writes nothing")
  func contention() async throws {
    let parts = Collected<Int>()
    let fixtureHolder = Guarded<EngineFixture?>(nil)
    let fixture = try EngineFixture(
      policy: Self.policy(parts) { _ in
        guard let fixture = fixtureHolder.withLock({ $0 }),
          let name = DocumentName(database: fixture.database, path: "flags/open")
        else { return }
        let write = Write(.update(name, fields: ["on": true, "n": .integer(Int64(parts.all.count))]))
        fixture.engine.commit(in: fixture.database, [write], as: .administrator) { _ in }
      })
    fixtureHolder.withLock { $0 = fixture }
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
