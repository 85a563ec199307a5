// Tests transactions by their tokens: optimistic and read-only transactions, expiry, ended transactions and retries.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

extension TransactionTests {
  @Test("an optimistic transaction aborts if another commit changed its reads")
  func optimistic() async throws {
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin(.readWrite(concurrency: .optimistic))
    #expect(try await read("c/d", token) == 1)
    try await fixture.set("c/d", ["n": 5])
    #expect(try await read("c/d", token) == 1)
    let rejection = await failure { try await fixture.commit([try set("c/d", 2)], transaction: token) }
    #expect(rejection?.code == .aborted)
    #expect(try await number("c/d") == 5)
    let other = try await fixture.begin(.readWrite(concurrency: .optimistic))
    let query = StructuredQuery(from: [.init("c")])
    #expect(try await fixture.query(query, .transaction(other)).count == 1)
    try await fixture.set("c/phantom", ["n": 9])
    let phantom = await failure { try await fixture.commit([try set("x/y", 2)], transaction: other) }
    #expect(phantom?.code == .aborted)
    let fresh = try await fixture.begin(.readWrite(concurrency: .optimistic))
    _ = try await read("c/d", fresh)
    try await fixture.set("elsewhere/d", ["n": 9])
    try await fixture.commit([try set("c/d", 6)], transaction: fresh)
    #expect(try await number("c/d") == 6)
  }

  @Test("a read-only transaction reads one snapshot, takes no locks and rejects writes")
  func readOnly() async throws {
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin(.readOnly())
    #expect(try await read("c/d", token) == 1)
    try await fixture.set("c/d", ["n": 2])
    #expect(try await read("c/d", token) == 1)
    try await fixture.commit([], transaction: token)
    let second = try await fixture.begin(.readOnly())
    let rejection = await failure { try await fixture.commit([try set("c/d", 3)], transaction: second) }
    #expect(rejection == .invalidArgument("Cannot modify entities in a read-only transaction."))
    let after = await failure { try await read("c/d", second) }
    #expect(after?.message == TransactionTable.expiredMessage)
  }

  @Test("transactions expire after 60 s idle and after 270 s in total")
  func expiry() async throws {
    let idle = try await fixture.begin()
    fixture.clock.advance(by: EngineLimits.standard.transactionIdleTimeout + 1)
    #expect(await failure { try await read("c/d", idle) } == .aborted(TransactionTable.expiredMessage))
    let busy = try await fixture.begin()
    for _ in 0..<5 {
      fixture.clock.advance(by: 50_000_000)
      _ = try await read("c/d", busy)
    }
    fixture.clock.advance(by: 21_000_000)
    #expect(await failure { try await read("c/d", busy) } == .aborted(TransactionTable.expiredMessage))
    #expect(await failure { try await fixture.commit([], transaction: busy) }?.code == .aborted)
  }

  @Test("ended transactions return Firestore's error codes")
  func endedTransactions() async throws {
    func rollback(_ token: [UInt8]) async -> FirestoreError? {
      await failure {
        try await fixture.engine.rollback(in: fixture.database, transaction: token, as: .administrator)
      }
    }
    let committed = try await fixture.begin()
    try await fixture.commit([try set("c/d", 1)], transaction: committed)
    #expect(await failure { try await fixture.commit([], transaction: committed) }?.code == .invalidArgument)
    #expect(await rollback(committed)?.code == .invalidArgument)
    #expect(await failure { try await read("c/d", committed) }?.message == TransactionTable.expiredMessage)
    let rolledBack = try await fixture.begin()
    #expect(await rollback(rolledBack) == nil)
    #expect(await rollback(rolledBack) == nil)
    #expect(await failure { try await fixture.commit([], transaction: rolledBack) }?.code == .invalidArgument)
    let failed = try await fixture.begin()
    let missing = Write(.update(try fixture.name("c/none"), fields: [:]), precondition: .exists(true))
    #expect(await failure { try await fixture.commit([missing], transaction: failed) }?.code == .notFound)
    #expect(
      await failure { try await fixture.commit([], transaction: failed) }
        == .invalidArgument(TransactionTable.expiredMessage))
    #expect(
      await failure { try await read("c/d", failed) } == .invalidArgument(TransactionTable.expiredMessage))
    #expect(await rollback(failed) == nil)
    #expect(await rollback(failed) == nil)
  }

  @Test("forged tokens and tokens of other databases are rejected")
  func foreignTokens() async throws {
    // This first commit stores the key that signs tokens. Otherwise the second engine below would have another key.
    try await fixture.set("c/d", [:])
    let token = try await fixture.begin()
    func code(_ token: [UInt8], _ database: DatabaseName) async -> StatusCode? {
      await failure {
        try await fixture.engine.commit(in: database, [], transaction: token, as: .administrator)
      }?.code
    }
    #expect(await code([1, 2, 3], fixture.database) == .invalidArgument)
    var tampered = token
    tampered[12] ^= 1
    #expect(await code(tampered, fixture.database) == .invalidArgument)
    #expect(await code(token, DatabaseName(project: "demo", database: "other")) == .aborted)
    #expect(await code(token, DatabaseName(project: "other")) == .invalidArgument)
    let retry = await failure { try await fixture.begin(.readWrite(retrying: [9])) }
    #expect(retry?.code == .invalidArgument)
    let earlier = try EngineFixture(store: fixture.store)
    let stale = await failure { try await earlier.commit([], transaction: token) }
    #expect(stale == .aborted(TransactionTable.expiredMessage))
  }

  @Test(
    "a retry waits for the attempt whose token it names, and aborts that attempt if it is idle for the lock timeout"
  )
  func retryWaitsForFirstAttempt() async throws {
    try await fixture.set("c/d", ["n": 1])
    let first = try await fixture.begin()
    _ = try await read("c/d", first)
    let second = try await fixture.begin(.readWrite(retrying: first))
    let reading = Task { try await self.read("c/d", second) }
    try await eventually("the retry waits") { fixture.clock.sleepers >= 2 }
    fixture.clock.advance(by: 2_000_001)
    #expect(try await reading.value == 1)
    try await fixture.commit([try set("c/d", 2)], transaction: second)
    #expect(await failure { try await fixture.commit([], transaction: first) }?.code == .aborted)
    // An active attempt may finish, because another client may have retried the same token.
    let busy = try await fixture.begin()
    _ = try await read("c/d", busy)
    let third = try await fixture.begin(.readWrite(retrying: busy))
    let late = Task { try await self.read("c/d", third) }
    try await eventually("the retry waits") { fixture.clock.sleepers >= 2 }
    try await fixture.commit([try set("c/d", 3)], transaction: busy)
    #expect(try await late.value == 3)
  }
}
