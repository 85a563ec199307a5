// Tests writes without a transaction (plain writes) among transactions: fairness between them, and the expiry of
// abandoned transactions.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

extension TransactionTests {
  /// Begins a transaction that retries another one, and therefore locks exclusively.
  private func beginRetry() async throws -> [UInt8] {
    try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
  }

  private func rollBack(_ token: [UInt8]) async throws {
    try await fixture.engine.rollback(in: fixture.database, transaction: token, as: .administrator)
  }

  /// Starts a task and returns once it waits for a lock.
  private func startWaiting<Result: Sendable>(
    _ what: String, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Task<Result, any Error> {
    let locks = try await fixture.engine.database(fixture.database).locks
    let waiting = locks.waiterCount
    let task = Task { try await body() }
    try await eventually(what) { locks.waiterCount > waiting }
    return task
  }

  @Test("a transaction expires one idle timeout after its last request, also if that request was long")
  func idleAfterLongRequest() async throws {
    let fixture = try EngineFixture(lockWait: 200_000_000)
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin()
    try await eventually("the sweeper sleeps") { fixture.clock.sleepers == 1 }
    let database = try await fixture.engine.database(fixture.database)
    var session = try await database.beginRead(.transaction(token), [], as: .administrator)
    let name = try fixture.name("c/d")
    try await database.lock(&session, keys: [FirestoreKeyLayout.document(name.path)])
    // The sweeper, which ends expired transactions, wakes and sleeps again while the only transaction has an active request.
    fixture.clock.advance(by: EngineLimits.standard.transactionIdleTimeout + 1)
    try await eventually("the sweeper sleeps again") { fixture.clock.sleepers == 1 }
    _ = try await database.read(&session) { try $0.document(name)?.fields()["n"] }
    database.endRead(session)
    let isDone = Guarded(false)
    let write = Task {
      try await fixture.set("c/d", ["n": 2])
      isDone.withLock { $0 = true }
    }
    try await eventually("the write waits") { fixture.clock.sleepers == 2 }
    fixture.clock.advance(by: EngineLimits.standard.transactionIdleTimeout + 1)
    try await eventually("the write resumes") { isDone.withLock { $0 } }
    write.cancel()
    #expect(database.transactions.openCount == 0)
  }

  @Test("a waiting plain write runs before transactions that queued later")
  func waitingWriteRunsFirst() async throws {
    try await fixture.set("c/d", ["n": 1])
    let holder = try await fixture.begin()
    #expect(try await read("c/d", holder) == 1)
    let write = try await startWaiting("the write waits") {
      try await self.fixture.commit([try self.increment("c/d", by: 10)])
    }
    let retry = try await beginRetry()
    let reading = try await startWaiting("the retry waits") { try await self.read("c/d", retry) }
    try await rollBack(holder)
    #expect(try await reading.value == 11)
    _ = try await write.value
    try await fixture.commit([try set("c/d", 12)], transaction: retry)
    #expect(try await number("c/d") == 12)
  }

  @Test("increments by plain writes succeed while sixteen clients increment the same counter in transactions")
  func incrementsAmongTransactions() async throws {
    let rounds = 20
    let isDone = Guarded(false)
    let commits = Guarded(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 {
        group.addTask {
          while !isDone.withLock({ $0 }), commits.withLock({ $0 }) < 3_000 {
            var first: [UInt8]?
            while true {
              let token = try await self.fixture.begin(.readWrite(retrying: first))
              first = first ?? token
              let value = try await self.read("c/counter", token)
              await Task.yield()
              do {
                try await self.fixture.commit([try self.set("c/counter", value + 1)], transaction: token)
                commits.withLock { $0 += 1 }
                break
              } catch let error as FirestoreError where error.code == .aborted {}
            }
          }
        }
      }
      try await eventually("the counter is busy") { commits.withLock { $0 } > 10 }
      for _ in 0..<rounds { try await fixture.commit([try increment("c/counter")]) }
      isDone.withLock { $0 = true }
      try await group.waitForAll()
    }
    let committed = commits.withLock { $0 }
    #expect(committed < 3_000)
    #expect(try await number("c/counter") == Int64(committed + rounds))
  }

  @Test("new readers queue after a write that is close to its lock timeout")
  func readersYieldToWrite() async throws {
    try await fixture.set("c/d", ["n": 1])
    try await fixture.set("c/other", ["n": 5])
    let holder = try await fixture.begin()
    #expect(try await read("c/d", holder) == 1)
    let write = try await startWaiting("the write waits") { try await self.fixture.set("c/d", ["n": 2]) }
    // Readers do not queue after a write that has only begun to wait, because most lock holders end soon.
    let early = try await fixture.begin()
    #expect(try await read("c/d", early) == 1)
    fixture.clock.advance(by: 1_000_001)
    let late = try await fixture.begin()
    let lateReading = try await startWaiting("a late reader gives way") { try await self.read("c/d", late) }
    let busy = try await fixture.begin()
    #expect(try await read("c/other", busy) == 5)
    let busyReading = try await startWaiting("also one that holds something") {
      try await self.read("c/d", busy)
    }
    let query = StructuredQuery(from: [.init("c")])
    let scanner = try await fixture.begin()
    let scanning = try await startWaiting("also a query") {
      try await self.fixture.query(query, .transaction(scanner)).count
    }
    // Current lock holders and readers of other documents do not wait.
    #expect(try await read("c/d", holder) == 1)
    #expect(try await read("c/other", late) == 5)
    try await rollBack(holder)
    try await rollBack(early)
    _ = try await write.value
    #expect(try await lateReading.value == 2)
    #expect(try await busyReading.value == 2)
    #expect(try await scanning.value == 2)
  }

  @Test("a reader that yields to a write continues when the write times out")
  func readersYieldBriefly() async throws {
    try await fixture.set("c/d", ["n": 1])
    let holder = try await fixture.begin()
    #expect(try await read("c/d", holder) == 1)
    let write = try await startWaiting("the write waits") {
      await failure { try await self.fixture.set("c/d", ["n": 2]) }
    }
    fixture.clock.advance(by: 1_000_001)
    let late = try await fixture.begin()
    let reading = try await startWaiting("the reader gives way") { try await self.read("c/d", late) }
    fixture.clock.advance(by: 1_000_000)
    #expect(try await write.value?.code == .aborted)
    #expect(try await reading.value == 1)
    try await fixture.commit([], transaction: holder)
    try await fixture.commit([try set("c/d", 3)], transaction: late)
    #expect(try await number("c/d") == 3)
  }

  @Test("a retry that has already waited for its previous attempt does not also yield to a waiting write")
  func retriesYieldOnce() async throws {
    try await fixture.set("c/d", ["n": 1])
    try await fixture.set("c/other", ["n": 1])
    let holder = try await fixture.begin()
    #expect(try await read("c/other", holder) == 1)
    let first = try await fixture.begin()
    #expect(try await read("c/d", first) == 1)
    let retry = try await fixture.begin(.readWrite(retrying: first))
    let hasRead = Guarded(false)
    let reading = try await startWaiting("the retry waits for the first attempt") {
      defer { hasRead.withLock { $0 = true } }
      return try await self.read("c/d", retry)
    }
    fixture.clock.advance(by: 500_000)
    let write = try await startWaiting("the write waits") {
      try await self.fixture.commit([try self.set("c/d", 2), try self.set("c/other", 2)])
    }
    // The first attempt ends while the write has 0.5 s left.
    fixture.clock.advance(by: 1_500_001)
    try await eventually("the retry has read") { hasRead.withLock { $0 } }
    #expect(try await reading.value == 1)
    try await rollBack(retry)
    try await rollBack(holder)
    _ = try await write.value
    #expect(try await number("c/d") == 2)
  }

  @Test("a reader does not yield to a write that waits for the reader, directly or indirectly")
  func noCyclicYield() async throws {
    for id in ["a", "b", "z"] { try await fixture.set(ResourcePath(["c", id]), ["n": 1]) }
    let holder = try await fixture.begin()
    #expect(try await read("c/a", holder) == 1)
    let other = try await fixture.begin()
    #expect(try await read("c/z", other) == 1)
    let write = try await startWaiting("the write waits") {
      try await self.fixture.commit([try self.set("c/a", 2), try self.set("c/b", 2)])
    }
    fixture.clock.advance(by: 1_000_001)
    // The write waits for `holder`, so `holder` does not yield to the write.
    #expect(try await read("c/b", holder) == 1)
    // `other` yields to the write at first. Then the commit of `holder` waits for `other`. Now `other` must stop
    // yielding, because otherwise the write, `holder` and `other` would wait for each other in a cycle.
    let reading = try await startWaiting("the other gives way") { try await self.read("c/a", other) }
    let commit = Task {
      try await self.fixture.commit([try self.set("c/z", 3)], transaction: holder)
    }
    #expect(try await reading.value == 1)
    try await fixture.commit([], transaction: other)
    _ = try await commit.value
    _ = try await write.value
    #expect(try await number("c/a") == 2)
    #expect(try await number("c/z") == 3)
  }
}
