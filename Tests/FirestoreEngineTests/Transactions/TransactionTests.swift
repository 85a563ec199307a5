// Tests transactions: locks, priority by age, and transactions that lose their locks.

import Access
import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Transactions", .timeLimit(.minutes(10))) struct TransactionTests {
  let fixture: EngineFixture

  init() throws { fixture = try EngineFixture() }

  func increment(_ path: ResourcePath, by value: Int64 = 1) throws -> Write {
    Write(
      .transform(try fixture.name(path), [FieldTransform(FieldPath(field: "n"), .increment(.integer(value)))])
    )
  }

  func read(_ path: ResourcePath, _ token: [UInt8]) async throws -> Int64 {
    guard case .integer(let value)? = try await fixture.get(path, .transaction(token))?["n"] else {
      return 0
    }
    return value
  }

  func number(_ path: ResourcePath) async throws -> Int64 {
    guard case .integer(let value)? = try await fixture.get(path)?["n"] else { return 0 }
    return value
  }

  func set(_ path: ResourcePath, _ value: Int64) throws -> Write {
    Write(.update(try fixture.name(path), fields: ["n": .integer(value)]))
  }

  @Test("eight clients increment one document repeatedly, with at most one abort per increment")
  func concurrentIncrements()
    async throws
  {
    let clients = 8
    let rounds = 25
    let abortCounts = Collected<Int>()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<clients {
        group.addTask {
          for _ in 0..<rounds {
            var first: [UInt8]?
            var aborts = 0
            while true {
              // Retries name the first attempt's token and do not pause, as Google's Python client does.
              let token = try await self.fixture.begin(.readWrite(retrying: first))
              first = first ?? token
              let value = try await self.read("c/counter", token)
              await Task.yield()
              do {
                try await self.fixture.commit([try self.set("c/counter", value + 1)], transaction: token)
                break
              } catch let error as FirestoreError where error.code == .aborted { aborts += 1 }
            }
            abortCounts.append(aborts)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await number("c/counter") == Int64(clients * rounds))
    #expect((abortCounts.all.max() ?? 0) <= 1)
  }

  @Test("a write outside of a transaction fails after the lock timeout, and the lock's transaction commits")
  func plainWriteTimesOut() async throws {
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin()
    #expect(try await read("c/d", token) == 1)
    let outside = Task { [fixture] in await failure { try await fixture.set("c/d", ["n": 100]) } }
    try await eventually("the write waits") { fixture.clock.sleepers >= 2 }
    fixture.clock.advance(by: 2_000_001)
    #expect(await outside.value == .aborted("Too much contention on these documents. Please try again."))
    try await fixture.commit([try set("c/d", 2)], transaction: token)
    #expect(try await number("c/d") == 2)
  }

  @Test("a waiting write resumes when the transaction ends", arguments: ["commit", "rollback", "expiry"])
  func waitingWriteResumes(how: String) async throws {
    try await fixture.set("c/d", ["n": 1])
    let token = try await fixture.begin()
    #expect(try await read("c/d", token) == 1)
    let outside = Task { [fixture] in try await fixture.commit([try self.increment("c/d", by: 10)]) }
    try await eventually("the write waits") { fixture.clock.sleepers >= 2 }
    switch how {
    case "commit": try await fixture.commit([], transaction: token)
    case "rollback":
      try await fixture.engine.rollback(in: fixture.database, transaction: token, as: .administrator)
    default:
      // The transaction expires before the write's lock timeout.
      outside.cancel()
      _ = try? await outside.value
      fixture.clock.advance(by: EngineLimits.standard.transactionIdleTimeout - 1_000_000)
      let lateWrite = Task { [fixture] in try await fixture.commit([try self.increment("c/d", by: 10)]) }
      try await eventually("the write waits") { fixture.clock.sleepers >= 2 }
      fixture.clock.advance(by: 1_000_001)
      _ = try await lateWrite.value
      #expect(try await number("c/d") == 11)
      return
    }
    _ = try await outside.value
    #expect(try await number("c/d") == 11)
  }

  @Test("a scanned range is locked against phantoms, also if it was empty")
  func rangeLocksPhantoms() async throws {
    let token = try await fixture.begin()
    let query = StructuredQuery(
      from: [.init("c")], filter: .field(FieldFilter(FieldPath(field: "n"), .greaterThan, 5)))
    #expect(try await fixture.query(query, .transaction(token)).isEmpty)
    // A write outside the range commits immediately.
    try await fixture.set("c/low", ["n": 5])
    let phantom = Task { [fixture] in await failure { try await fixture.set("c/high", ["n": 6]) } }
    try await eventually("the phantom waits") { fixture.clock.sleepers >= 2 }
    #expect(try await fixture.query(query, .transaction(token)).isEmpty)
    try await fixture.commit([try set("d/result", 0)], transaction: token)
    #expect(await phantom.value == nil)
    #expect(try await fixture.query(query).count == 1)
  }

  @Test(
    "a collection-group query locks the documents that it read, and locks its range against new documents")
  func groupQueryLocks() async throws {
    try await fixture.set("a/x/g/read", ["n": 1])
    try await fixture.set("b/y/g/other", ["n": 2])
    let token = try await fixture.begin()
    let group = StructuredQuery(
      from: [.init("g", allDescendants: true)],
      filter: .field(FieldFilter(FieldPath(field: "n"), .equal, 1)))
    #expect(try await fixture.query(group, .transaction(token)).count == 1)
    let sleepers = fixture.clock.sleepers
    let leaving = Task { [fixture] in await failure { try await fixture.set("a/x/g/read", ["n": 3]) } }
    let entering = Task { [fixture] in await failure { try await fixture.set("b/y/g/other", ["n": 1]) } }
    try await eventually("both changes wait") { fixture.clock.sleepers >= sleepers + 2 }
    #expect(try await fixture.query(group, .transaction(token)).count == 1)
    try await fixture.commit([try set("d/result", 0)], transaction: token)
    #expect(await leaving.value == nil)
    #expect(await entering.value == nil)
  }

  @Test("a query with a limit locks only the range that it read")
  func limitLocksReadRange() async throws {
    let writes = try (0..<200).map { index in
      Write(
        .update(try fixture.name(ResourcePath(["c", "d\(index)"])), fields: ["n": .integer(Int64(index))]))
    }
    try await fixture.commit(writes)
    let first = StructuredQuery(from: [.init("c")], orderBy: [.init(FieldPath(field: "n"))], limit: 1)
    let token = try await fixture.begin()
    #expect(try await fixture.query(first, .transaction(token)).map(\.name.id) == ["d0"])
    // A write far after the read range commits immediately; a write before it waits.
    try await fixture.commit([try set("c/late", 1_000)])
    let early = Task { [fixture] in await failure { try await fixture.commit([try self.set("c/early", -1)]) }
    }
    try await eventually("the insert before it waits") { fixture.clock.sleepers >= 2 }
    try await fixture.commit([Write(.delete(try fixture.name("c/d0")))], transaction: token)
    #expect(await early.value == nil)
    #expect(try await fixture.query(first).map(\.name.id) == ["early"])
  }

  @Test("if two transactions upgrade a lock, the older one commits and the younger one is aborted")
  func olderUpgradeWins() async throws {
    try await fixture.set("c/d", ["n": 1])
    let older = try await fixture.begin()
    let younger = try await fixture.begin()
    _ = try await read("c/d", older)
    _ = try await read("c/d", younger)
    let late = Task { [fixture] in
      await failure { try await fixture.commit([try self.set("c/d", 20)], transaction: younger) }
    }
    try await eventually("the younger waits") { fixture.clock.sleepers >= 2 }
    try await fixture.commit([try set("c/d", 10)], transaction: older)
    #expect(await late.value?.code == .aborted)
    #expect(try await number("c/d") == 10)
  }

  @Test("the younger transaction commits if the older one ends without writing")
  func youngerCommitsAfterRollback() async throws {
    try await fixture.set("c/d", ["n": 1])
    let older = try await fixture.begin()
    let younger = try await fixture.begin()
    _ = try await read("c/d", older)
    _ = try await read("c/d", younger)
    let late = Task { [fixture] in try await fixture.commit([try self.set("c/d", 20)], transaction: younger) }
    try await eventually("the younger waits") { fixture.clock.sleepers >= 2 }
    try await fixture.engine.rollback(in: fixture.database, transaction: older, as: .administrator)
    _ = try await late.value
    #expect(try await number("c/d") == 20)
  }

  @Test("a deadlock over two documents aborts the younger transaction")
  func deadlock() async throws {
    let older = try await fixture.begin()
    let younger = try await fixture.begin()
    _ = try await read("c/a", older)
    _ = try await read("c/b", younger)
    let waiting = Task { [fixture] in try await fixture.commit([try self.set("c/b", 1)], transaction: older) }
    try await eventually("the older waits") { fixture.clock.sleepers >= 2 }
    let rejection = await failure { try await fixture.commit([try set("c/a", 1)], transaction: younger) }
    #expect(rejection?.code == .aborted)
    _ = try await waiting.value
    #expect(try await number("c/b") == 1)
  }

  @Test("a transaction that lost its locks can read its snapshot, and its commit is aborted")
  func lostLocksAbortCommit() async throws {
    try await fixture.set("c/a", ["n": 1])
    try await fixture.set("c/b", ["n": 1])
    let older = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    let younger = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    _ = try await read("c/a", older)
    _ = try await read("c/b", younger)
    // Each transaction reads the document that the other has locked exclusively. The younger transaction loses its locks and
    // reads from its snapshot.
    let waiting = Task { try await self.read("c/b", older) }
    try await eventually("the older waits") { fixture.clock.sleepers >= 2 }
    #expect(try await read("c/a", younger) == 1)
    #expect(try await waiting.value == 1)
    try await fixture.commit([try set("c/a", 2), try set("c/b", 2)], transaction: older)
    #expect(try await read("c/a", younger) == 1)
    #expect(
      await failure { try await fixture.commit([try set("c/b", 9)], transaction: younger) }?.code == .aborted)
    #expect(try await number("c/b") == 2)
  }

  @Test("a transaction whose first lock times out reads one snapshot and aborts at its commit")
  func firstLockTimesOut() async throws {
    try await fixture.set("c/a", ["n": 1])
    let holder = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    _ = try await read("c/a", holder)
    let late = try await fixture.begin()
    let reading = Task { try await self.read("c/a", late) }
    try await eventually("the read waits for the holder") { fixture.clock.sleepers >= 2 }
    fixture.clock.advance(by: 2_000_001)
    #expect(try await reading.value == 1)
    try await fixture.commit([try set("c/a", 2)], transaction: holder)
    #expect(try await read("c/a", late) == 1)
    #expect(
      await failure { try await fixture.commit([try set("c/a", 9)], transaction: late) }?.code == .aborted)
    #expect(try await number("c/a") == 2)
  }

  @Test("a read waits longer for a transaction whose client stays active")
  func activeHolder() async throws {
    try await fixture.set("c/a", ["n": 1])
    let holder = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    _ = try await read("c/a", holder)
    let late = try await fixture.begin()
    let reading = Task { try await self.read("c/a", late) }
    for _ in 0..<4 {
      try await eventually("the read waits for the holder") { fixture.clock.sleepers >= 2 }
      fixture.clock.advance(by: 1_500_000)
      _ = try await read("c/a", holder)
    }
    try await fixture.commit([try set("c/a", 2)], transaction: holder)
    #expect(try await reading.value == 2)
    try await fixture.commit([try set("c/a", 3)], transaction: late)
    #expect(try await number("c/a") == 3)
  }

  @Test("a transaction that loses its locks during a read continues with that read's snapshot")
  func lostWhileReading() async throws {
    try await fixture.set("c/a", ["n": 1])
    let token = try await fixture.begin()
    #expect(try await read("c/a", token) == 1)
    try await fixture.set("c/b", ["n": 2])
    let database = try await fixture.engine.database(fixture.database)
    var session = try await database.beginRead(.transaction(token), [], as: .administrator)
    let owner = try #require(session.transaction?.owner)
    let name = try fixture.name("c/b")
    try await database.lock(&session, keys: [FirestoreKeyLayout.document(name.path)])
    let seen = try await database.read(&session) { try $0.document(name)?.fields()["n"] }
    #expect(seen == .integer(2))
    database.transactions.markLocksLost(owner)
    database.locks.release(owner)
    database.endRead(session)
    try await fixture.set("c/b", ["n": 3])
    #expect(try await read("c/b", token) == 2)
  }

  @Test("random transfers between accounts preserve the sum, despite aborts")
  func transfersPreserveSum() async throws {
    let accounts = (0..<5).map { ResourcePath(["accounts", "a\($0)"]) }
    for account in accounts { try await fixture.set(account, ["n": 100]) }
    let clockTask = Task { [fixture] in
      // Expiry and lock timeouts need the clock to advance.
      while !Task.isCancelled {
        try await Task.sleep(nanoseconds: 1_000_000)
        fixture.clock.advance(by: 20_000)
      }
    }
    defer { clockTask.cancel() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in 0..<6 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(client) + 1)
          for round in 0..<12 {
            let options = TransactionOptions.readWrite(
              concurrency: round.isMultiple(of: 3) ? .optimistic : .pessimistic)
            var retried: [UInt8]?
            while true {
              var attempt = options
              if let retried, case .readWrite(_, let mode) = options {
                attempt = .readWrite(retrying: retried, concurrency: mode)
              }
              let token = try await self.fixture.begin(attempt)
              do {
                let from = accounts.randomElement(using: &random) ?? accounts[0]
                let to = accounts.randomElement(using: &random) ?? accounts[1]
                if round.isMultiple(of: 5) {
                  let all = try await self.fixture.query(
                    StructuredQuery(from: [.init("accounts")]), .transaction(token))
                  let sum = try all.reduce(Int64(0)) {
                    guard case .integer(let n)? = try $1.fields()["n"] else { return $0 }
                    return $0 + n
                  }
                  #expect(sum == 500)
                }
                let fromBalance = try await self.read(from, token)
                let toBalance = try await self.read(to, token)
                var writes = [try self.set(from, fromBalance - 1)]
                if from != to { writes.append(try self.set(to, toBalance + 1)) } else { writes = [] }
                try await self.fixture.commit(writes, transaction: token)
                break
              } catch let error as FirestoreError where error.code == .aborted { retried = retried ?? token }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    var sum: Int64 = 0
    for account in accounts { sum += try await number(account) }
    #expect(sum == 500)
  }
}
