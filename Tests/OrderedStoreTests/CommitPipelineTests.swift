import Locking
import OrderedStore
import StoreFixture
import Testing

@Suite("Group commit")
struct CommitPipelineTests {
  private func open(_ engine: GatedEngine) async throws -> (EngineStore, any OrderedDatabase) {
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    return (store, try await store.database(named: "a", history: .seconds(60)))
  }

  /// Waits until so many bodies ran.
  private func bodies(_ count: Int, _ ran: Guarded<Int>) async {
    await withCheckedContinuation { continuation in
      _ = DedicatedThread {
        ran.wait { $0 >= count ? () : nil }
        continuation.resume()
      }
    }
  }

  private func increment(_ database: any OrderedDatabase, _ ran: Guarded<Int>) -> Task<
    Committed<Int>, any Error
  > {
    Task {
      try await database.execute(validating: nil) { state in
        let next = Int(try state.get([1])?.value[0] ?? 0) + 1
        try state.set([1], [UInt8(next)])
        ran.withLock { $0 += 1 }
        ran.broadcast()
        return next
      }
    }
  }

  @Test("everything that waits while one sync is under way goes into the next, and bodies run meanwhile")
  func groups() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let before = engine.state.withLock { $0.commits }
    engine.blockCommits()
    let ran = Guarded(0)
    let first = increment(database, ran)
    await engine.waitUntilBlocked()
    let rest = (0..<40).map { _ in increment(database, ran) }
    await bodies(41, ran)
    // All 41 bodies ran over each other's rows, and nobody outside sees any of them yet.
    #expect(try await database.read(at: nil) { try $0.get([1]) } == nil)
    engine.unblock()
    var results = [try await first.value.result]
    for task in rest { results.append(try await task.value.result) }
    #expect(results.sorted() == Array(1...41))
    #expect(engine.state.withLock { $0.commits } - before == 2)
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [41])
    try await store.close()
  }

  @Test("what only read waits until what it saw is durable")
  func readersWait() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    engine.blockCommits()
    let ran = Guarded(0)
    let write = increment(database, ran)
    await engine.waitUntilBlocked()
    let answered = Guarded(false)
    let look = Task {
      let seen = try await database.execute(validating: nil) { state in
        ran.withLock { $0 += 1 }
        ran.broadcast()
        return try state.get([1])?.value
      }
      answered.withLock { $0 = true }
      return seen
    }
    let refused = Task {
      try await database.execute(validating: nil) { state -> Void in
        ran.withLock { $0 += 1 }
        ran.broadcast()
        throw StoreError.limitExceeded("row \(try state.get([1])?.value ?? [])")
      }
    }
    await bodies(3, ran)
    #expect(!answered.withLock { $0 })
    engine.unblock()
    let committed = try await write.value
    let seen = try await look.value
    #expect(seen.result == [1] && seen.version == committed.version && !seen.wrote)
    await #expect(throws: StoreError.limitExceeded("row [1]")) { try await refused.value }
    try await store.close()
  }

  @Test("after a failed write everything in flight and later is unavailable, and reads go on")
  func failure() async throws {
    let engine = GatedEngine()
    let reports = Guarded<[String]>([])
    let options = StoreOptions(
      trimmingIntervalMilliseconds: 0, report: { line in reports.withLock { $0.append(line) } })
    let store = try EngineStore(engine, options)
    let database = try await store.database(named: "a", history: .seconds(60))
    let ran = Guarded(0)
    let kept = try await increment(database, ran).value
    engine.blockCommits()
    let first = increment(database, ran)
    await engine.waitUntilBlocked()
    let second = increment(database, ran)
    await bodies(3, ran)
    let reservation = Task { try await database.reserveVersion() }
    engine.unblock(failing: .unavailable("no space left"))
    for task in [first, second, increment(database, ran)] {
      let error = await #expect(throws: StoreError.self) { try await task.value }
      #expect(error?.code == .unavailable)
      #expect(error?.message.contains("until the server restarts: no space left") == true)
    }
    await #expect(throws: StoreError.self) { try await reservation.value }
    // The disk works again, but what it did with the failed write is unknown: nothing is written any more.
    engine.unblock()
    await #expect(throws: StoreError.self) { try await increment(database, ran).value }
    await #expect(throws: StoreError.self) {
      try await store.database(named: "new", history: .activeReadersOnly)
    }
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    #expect(try await database.read(at: kept.version) { try $0.get([1])?.value } == [1])
    #expect(reports.withLock { $0.count } == 1)
    try await store.close()
  }

  @Test("after a failed write databases that were not open yet are read too, and new ones are refused")
  func failureBeforeOpening() async throws {
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

  @Test("of a commit whose write failed nobody hears: no reader, no log, no follower")
  func failedCommitsStayUnseen() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let heard = Guarded<[StoredValue]>([])
    let subscription = database.follow { record in heard.withLock { $0.append(record.payload) } }
    let kept = try await database.execute(validating: nil) { state in
      try state.set([1], [1])
      try state.log([1], nil)
    }
    engine.blockCommits()
    let lost = (UInt8(2)...9).map { value in
      Task {
        try await database.execute(validating: nil) { state in
          try state.set([1], [value])
          try state.log([value], nil)
        }
      }
    }
    await engine.waitUntilBlocked()
    engine.unblock(failing: .unavailable("input/output error"))
    for task in lost { await #expect(throws: StoreError.self) { try await task.value } }
    #expect(heard.withLock { $0 } == [[1]])
    #expect(try await database.log(after: .zero, limit: 99).map(\.version) == [kept.version])
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    #expect(database.latestVersion == kept.version)
    await #expect(throws: StoreError.versionInFuture) {
      try await database.read(at: Version(microseconds: kept.version.microseconds + 1)) { _ in }
    }
    subscription.cancel()
    try await store.close()
  }

  @Test(
    "a conflict with a commit in flight is answered once that commit is durable, so that a retry reads it")
  func conflictsWait() async throws {
    let engine = GatedEngine()
    let (store, database) = try await open(engine)
    let read = try await database.reserveVersion()
    engine.blockCommits()
    let ran = Guarded(0)
    let write = increment(database, ran)
    await engine.waitUntilBlocked()
    let late = Task {
      try await database.execute(validating: ReadSet(version: read, keys: [[1]])) { try $0.set([2], [2]) }
    }
    engine.unblock()
    await #expect(throws: StoreError.conflict) { try await late.value }
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [1])
    _ = try await write.value
    try await store.close()
  }
}
