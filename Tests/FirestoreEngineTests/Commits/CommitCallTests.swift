// Tests of commits whose caller passes a callback instead of awaiting the outcome: opening the database, waiting for locks,
// and cancellation.

import Access
import Locking
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Commit call", .timeLimit(.minutes(1))) struct CommitCallTests {
  /// The outcomes that a callback received.
  private final class Outcomes: Sendable {
    private let received = Guarded<[Result<CommitResponse, FirestoreError>]>([])

    var all: [Result<CommitResponse, FirestoreError>] { received.withLock { $0 } }

    @Sendable func add(_ outcome: Result<CommitResponse, FirestoreError>) {
      received.withLock { $0.append(outcome) }
    }
  }

  @Test("the first commit to a database opens it and reports one outcome")
  func opensDatabase() async throws {
    let fixture = try EngineFixture()
    let outcomes = Outcomes()
    let write = Write(.update(try fixture.name("c/d"), fields: ["n": 1]))
    fixture.engine.commit(in: fixture.database, [write], as: .administrator, completion: outcomes.add)
    try await eventually("the commit completes") { !outcomes.all.isEmpty }
    let response = try #require(outcomes.all.first).get()
    #expect(response.writeResults.count == 1 && outcomes.all.count == 1)
    #expect(try await fixture.get("c/d") == ["n": 1])
  }

  @Test("a commit waits for a transaction's lock; cancelling it reports CANCELLED and writes nothing")
  func cancelledWait() async throws {
    let fixture = try EngineFixture(lockWait: 200_000_000)
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin()
    _ = try await fixture.get("c/d", .transaction(token))
    try await eventually("the sweeper sleeps") { fixture.clock.sleepers == 1 }
    let outcomes = Outcomes()
    let write = Write(.update(try fixture.name("c/d"), fields: ["n": 2]))
    let call = fixture.engine.commit(
      in: fixture.database, [write], as: .administrator, completion: outcomes.add)
    try await eventually("the commit waits") { fixture.clock.sleepers == 2 }
    #expect(outcomes.all.isEmpty)
    call.cancel()
    try await eventually("the wait ends") { !outcomes.all.isEmpty }
    #expect(throws: FirestoreError(.cancelled, "The request was cancelled.")) {
      try #require(outcomes.all.first).get()
    }
    #expect(outcomes.all.count == 1)
    #expect(try await fixture.get("c/d") == ["n": 1])
  }

  @Test("a waiting commit completes once the transaction ends")
  func completedWait() async throws {
    let fixture = try EngineFixture(lockWait: 200_000_000)
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin()
    _ = try await fixture.get("c/d", .transaction(token))
    try await eventually("the sweeper sleeps") { fixture.clock.sleepers == 1 }
    let outcomes = Outcomes()
    let write = Write(.update(try fixture.name("c/d"), fields: ["n": 2]))
    fixture.engine.commit(in: fixture.database, [write], as: .administrator, completion: outcomes.add)
    try await eventually("the commit waits") { fixture.clock.sleepers == 2 }
    try await fixture.commit([], transaction: token)
    try await eventually("the commit completes") { !outcomes.all.isEmpty }
    #expect(try #require(outcomes.all.first).get().writeResults.count == 1)
    #expect(try await fixture.get("c/d") == ["n": 2])
  }
}
