// Tests of group commit: one sync makes the commits of several calls durable. The body of a call is the closure that reads
// and writes rows. A gated engine lets each test block commits to disk, release them, or make them fail. Tests wait for
// events and never for a time.

import Locking
import OrderedStore
import StoreFixture
import Testing

/// Counts the bodies that have run.
private final class BodyCounter: Sendable {
  private let count = Guarded(0)

  func increment() {
    count.withLock { $0 += 1 }
    count.broadcast()
  }

  func waitUntil(_ expected: Int) async {
    await withCheckedContinuation { continuation in
      _ = DedicatedThread { [count] in
        count.wait { $0 >= expected ? () : nil }
        continuation.resume()
      }
    }
  }
}

@Suite("Group commit")
struct CommitPipelineTests {
  private let bodies = BodyCounter()

  private func open(_ engine: GatedEngine) async throws -> (EngineStore, any OrderedDatabase) {
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    return (store, try await store.database(named: "a", history: .seconds(60)))
  }

  /// Starts a call that increments the number under key 1.
  private func increment(_ database: any OrderedDatabase) -> Task<Committed<Int>, any Error> {
    Task {
      try await database.execute(validating: nil) { state in
        let next = Int(try state.get([1])?.value[0] ?? 0) + 1
        try state.set([1], [UInt8(next)])
        bodies.increment()
        return next
      }
    }
  }

  /// Starts a call whose body reads the value under key 1 in the sequencer.
  private func readSequenced(_ database: any OrderedDatabase) -> Task<Committed<StoredValue?>, any Error> {
    Task {
      try await database.execute(validating: nil) { state in
        bodies.increment()
        return try state.get([1])?.value
      }
    }
  }

  @Test(
    "Commits that arrive during a sync share the next sync, and their bodies already run during the first sync"
  )
  func commitsShareSyncs() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let before = engine.state.withLock { $0.commits }
    engine.blockCommits()
    let first = increment(database)
    await engine.waitUntilBlocked()
    let rest = (0..<40).map { _ in increment(database) }
    await bodies.waitUntil(41)
    // The reader's body runs after the bodies of all earlier calls have run and their commits were submitted.
    // It writes nothing, so it needs no additional sync.
    let reader = readSequenced(database)
    await bodies.waitUntil(42)
    // All 41 bodies have run, each on the rows of the previous body. Reads see none of these rows yet.
    #expect(try await database.read(at: nil) { try $0.get([1]) } == nil)
    engine.unblock()
    var results = [try await first.value.result]
    for task in rest { results.append(try await task.value.result) }
    #expect(results.sorted() == Array(1...41))
    #expect(try await reader.value.result == [41])
    #expect(engine.state.withLock { $0.commits } - before == 2)
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [41])
    try await store.close()
  }

  @Test("A call whose body only reads completes after the rows that the body saw are durable")
  func readersWait() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    engine.blockCommits()
    let write = increment(database)
    await engine.waitUntilBlocked()
    let isCompleted = Guarded(false)
    let reader = Task {
      let seen = try await readSequenced(database).value
      isCompleted.withLock { $0 = true }
      return seen
    }
    let failing = Task {
      try await database.execute(validating: nil) { state -> Void in
        bodies.increment()
        throw StoreError.limitExceeded("row \(try state.get([1])?.value ?? [])")
      }
    }
    await bodies.waitUntil(3)
    #expect(!isCompleted.withLock { $0 })
    engine.unblock()
    let committed = try await write.value
    let seen = try await reader.value
    #expect(seen.result == [1] && seen.version == committed.version && !seen.wrote)
    await #expect(throws: StoreError.limitExceeded("row [1]")) { try await failing.value }
    try await store.close()
  }

  @Test("After a failed write, calls in flight and later calls fail as unavailable, and reads succeed")
  func failedWrite() async throws {
    let engine = GatedEngine()
    let reports = Guarded<[String]>([])
    let options = StoreOptions(
      trimmingIntervalMilliseconds: 0, report: { line in reports.withLock { $0.append(line) } })
    let store = try EngineStore(engine, options)
    let database = try await store.database(named: "a", history: .seconds(60))
    let acknowledged = try await increment(database).value
    engine.blockCommits()
    let first = increment(database)
    await engine.waitUntilBlocked()
    let second = increment(database)
    await bodies.waitUntil(3)
    let reservation = Task { try await database.reserveVersion() }
    engine.unblock(failing: .unavailable("no space left"))
    for task in [first, second, increment(database)] {
      let error = await #expect(throws: StoreError.self) { try await task.value }
      #expect(error?.code == .unavailable)
      #expect(error?.message.contains("until the server restarts: no space left") == true)
    }
    await #expect(throws: StoreError.self) { try await reservation.value }
    // The engine would accept writes again. But the outcome of the failed write is unknown, so the store
    // writes nothing until a restart.
    engine.unblock()
    await #expect(throws: StoreError.self) { try await increment(database).value }
    await #expect(throws: StoreError.self) {
      try await store.database(named: "new", history: .activeReadersOnly)
    }
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    #expect(try await database.read(at: acknowledged.version) { try $0.get([1])?.value } == [1])
    #expect(reports.withLock { $0.count } == 1)
    try await store.close()
  }

  @Test("After a failed write, existing databases can be opened and read, and no new database can be created")
  func openingAfterFailedWrite() async throws {
    let engine = GatedEngine()
    let (first, database) = try await open(engine)
    _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
    try await first.close()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let other = try await store.database(named: "other", history: .seconds(60))
    engine.unblock(failing: .unavailable("no space left"))
    await #expect(throws: StoreError.self) {
      try await other.execute(validating: nil) { try $0.set([1], [2]) }
    }
    let found = try await store.database(named: "a", history: .seconds(60))
    #expect(try await found.read(at: nil) { try $0.get([1])?.value } == [1])
    for name in ["new", "newer"] {
      let error = await #expect(throws: StoreError.self) {
        try await store.database(named: name, history: .seconds(60))
      }
      #expect(error?.code == .unavailable)
    }
    await #expect(throws: StoreError.self) {
      try await found.execute(validating: nil) { try $0.set([1], [3]) }
    }
    try await store.close()
  }

  @Test("After a failed write of the trimmer, which deletes old history, later writes fail as unavailable")
  func failedTrimming() async throws {
    let engine = GatedEngine()
    let clock = SteppedClock()
    let options = StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0)
    let store = try EngineStore(engine, options)
    let database = try await store.database(named: "a", history: .seconds(60))
    for _ in 0..<2 { _ = try await increment(database).value }
    clock.move(seconds: 1000)
    engine.unblock(failing: .unavailable("no space left"))
    await #expect(throws: StoreError.self) { try await store.trimNow() }
    let commits = engine.state.withLock { $0.commits }
    engine.unblock()
    await #expect(throws: StoreError.self) { try await increment(database).value }
    #expect(engine.state.withLock { $0.commits } == commits)
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [2])
    try await store.close()
  }

  @Test(
    "A commit whose write failed appears neither in reads nor in the log, and no follower of the log receives it"
  )
  func failedCommitsStayUnseen() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let delivered = Guarded<[StoredValue]>([])
    let subscription = database.follow { record in delivered.withLock { $0.append(record.payload) } }
    let acknowledged = try await database.execute(validating: nil) { state in
      try state.set([1], [1])
      try state.log([1], nil)
    }
    engine.blockCommits()
    let failing = (UInt8(2)...9).map { value in
      Task {
        try await database.execute(validating: nil) { state in
          try state.set([1], [value])
          try state.log([value], nil)
        }
      }
    }
    await engine.waitUntilBlocked()
    engine.unblock(failing: .unavailable("input/output error"))
    for task in failing { await #expect(throws: StoreError.self) { try await task.value } }
    #expect(delivered.withLock { $0 } == [[1]])
    #expect(try await database.log(after: .zero, limit: 99).map(\.version) == [acknowledged.version])
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    #expect(database.latestVersion == acknowledged.version)
    await #expect(throws: StoreError.versionInFuture) {
      try await database.read(at: Version(microseconds: acknowledged.version.microseconds + 1)) { _ in }
    }
    subscription.cancel()
    try await store.close()
  }

  @Test(
    "A conflict with a commit in flight is reported after the commit is durable, so a retry reads its rows")
  func conflictsWait() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let version = try await database.reserveVersion()
    engine.blockCommits()
    let write = increment(database)
    await engine.waitUntilBlocked()
    let outcome = Guarded<Result<Committed<Void>, any Error>?>(nil)
    database.execute(validating: ReadSet(version: version, keys: [[1]]), { try $0.set([2], [2]) }) { result in
      outcome.withLock { $0 = result }
    }
    // The sequencer runs calls in order. When the reader's body runs, the sequencer has already found the
    // conflict.
    let reader = readSequenced(database)
    await bodies.waitUntil(2)
    #expect(outcome.withLock { $0 == nil })
    engine.unblock()
    // Calls of one group complete in order, so the reader completes after the conflict.
    #expect(try await reader.value.result == [1])
    #expect(throws: StoreError.conflict) { try outcome.withLock { $0 }?.get() }
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    _ = try await write.value
    try await store.close()
  }

  @Test("A store that is released without close() completes every call")
  func releasedStore() async throws {
    let engine = GatedEngine()
    engine.unblock()
    let completed = Guarded(0)
    do {
      let (_, database) = try await open(engine)
      engine.blockCommits()
      for value in UInt8(0)..<20 {
        database.execute(validating: nil, { try $0.set([value], []) }) { _ in
          completed.withLock { $0 += 1 }
          completed.broadcast()
        }
      }
    }
    engine.unblock()
    await withCheckedContinuation { continuation in
      _ = DedicatedThread {
        completed.wait { $0 == 20 ? () : nil }
        continuation.resume()
      }
    }
  }
}
