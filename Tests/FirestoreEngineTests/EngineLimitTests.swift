// Limits of time and of indexes, as they are and raised; and queries that have as many parts as they may.

import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Limits of the engine", .timeLimit(.minutes(10)))
struct EngineLimitTests {
  /// A store whose clock a test sets.
  private static func store(_ clock: Guarded<UInt64>) throws -> MemoryStore {
    try MemoryStore(
      StoreOptions(clock: StoreClock { clock.withLock { $0 } }, trimmingIntervalMilliseconds: 1))
  }

  @Test("a window of a query with as many filters as allowed is filled again")
  func window() async throws {
    let fixture = try EngineFixture()
    for id in ["a", "b", "c"] { try await fixture.set(ResourcePath(["c", id]), ["z": 0]) }
    let filter = Filter.composite(
      .and,
      (0..<FirestoreLimits.standard.filtersAndOrders).map { _ in
        .field(FieldFilter(FieldPath(field: "z"), .equal, 0))
      })
    let query = StructuredQuery(from: [.init("c")], filter: filter, limit: 2)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(query)))
    try await eventually("the target is current") { client.view.current == [2] }
    for id in ["a", "b"] {
      let time = try #require(try await fixture.delete(ResourcePath(["c", id])).commitTime)
      let left = try await client.snapshot(at: time)
      #expect(left[2]?.keys.contains("c/c") == true, "\(client.view.removed)")
    }
    #expect(client.view.removed.isEmpty && client.view.violations.isEmpty)
    stream.close()
  }

  @Test("a transaction lives as long as it was told to", arguments: [1, 10])
  func leases(factor: Int) async throws {
    var limits = EngineLimits.standard
    limits.transactionIdleSeconds *= factor
    limits.transactionSeconds *= factor
    let fixture = try EngineFixture(limits: limits)
    try await fixture.set("c/d", [:])
    let idle = try await fixture.begin()
    fixture.clock.advance(by: UInt64(60 * factor) * 1_000_000 - 1)
    _ = try await fixture.get("c/d", .transaction(idle))
    fixture.clock.advance(by: UInt64(60 * factor) * 1_000_000 + 1)
    #expect(
      await failure { try await fixture.get("c/d", .transaction(idle)) } == .aborted(TransactionTable.expired)
    )
    let busy = try await fixture.begin()
    for _ in 0..<5 {
      fixture.clock.advance(by: UInt64(50 * factor) * 1_000_000)
      _ = try await fixture.get("c/d", .transaction(busy))
    }
    fixture.clock.advance(by: UInt64(20 * factor) * 1_000_000 + 1)
    #expect(
      await failure { try await fixture.get("c/d", .transaction(busy)) } == .aborted(TransactionTable.expired)
    )
  }

  @Test("reads and resume tokens reach as far back as they were told to", arguments: [false, true])
  func history(isRaised: Bool) async throws {
    let now = Guarded<UInt64>(1_800_000_000_000_000)
    var limits = EngineLimits.standard
    if isRaised {
      limits.historySeconds = 3 * 3_600
      limits.resumeSeconds = 3 * 3_600
    }
    let fixture = try EngineFixture(store: try Self.store(now), limits: limits)
    let first = try #require(try await fixture.set("c/a", ["n": 1]).commitTime)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let query = fixture.selection(StructuredQuery(from: [.init("c")]))
    stream.addTarget(WatchTarget(id: 2, query))
    _ = try await client.snapshot(at: first)
    stream.close()
    let token = client.view.token
    try await fixture.set("c/a", ["n": 2])
    now.withLock { $0 += 2 * 3_600 * 1_000_000 }
    let last = try #require(try await fixture.set("c/b", ["n": 3]).commitTime)
    if isRaised {
      #expect(try await fixture.get("c/a", .readTime(first)) == ["n": 1])
    } else {
      // What lies below the window is dropped now and then.
      try await eventually("the old state is gone") {
        await failure { try await fixture.get("c/a", .readTime(first)) }?.code == .failedPrecondition
      }
    }
    let resumed = WatchClient()
    resumed.assume(client.view.documents)
    let again = try await fixture.watch(resumed)
    again.addTarget(WatchTarget(id: 2, query, start: .resumeToken(token), expectedCount: 1))
    _ = try await resumed.snapshot(at: last)
    #expect(resumed.view.resets == (isRaised ? 0 : 1))
    again.close()
  }

  @Test("a database has at most 1,000 composite indexes and 200 field overrides, or what it was told to")
  func indexes() async throws {
    func configuration(_ composites: Int, _ overrides: Int) -> IndexConfiguration {
      var configuration = IndexConfiguration()
      configuration.indexes = (0..<composites).map { number in
        IndexConfiguration.Index(
          "c", .collection,
          [
            .init(FieldPath(field: "a\(number)"), .ascending), .init(FieldPath(field: "b"), .ascending),
          ])
      }
      configuration.overrides = (0..<overrides).map {
        IndexConfiguration.Override("c", FieldPath(field: "o\($0)"), [])
      }
      return configuration
    }
    let fixture = try EngineFixture()
    func choose(_ engine: FirestoreEngine, _ composites: Int, _ overrides: Int) async -> FirestoreError? {
      await failure {
        try await engine.setIndexes(configuration(composites, overrides), ofDatabase: "(default)")
      }
    }
    #expect(await choose(fixture.engine, 1_000, 200) == nil)
    #expect(
      await choose(fixture.engine, 1_001, 0)
        == .invalidArgument(
          "The database (default) would have 1001 composite indexes; at most 1000 are allowed."))
    #expect(
      await choose(fixture.engine, 0, 201)
        == .invalidArgument("The database (default) would have 201 field overrides; at most 200 are allowed.")
    )
    var limits = EngineLimits.standard
    limits.compositeIndexes = 1_001
    limits.fieldOverrides = 201
    let raised = try EngineFixture(limits: limits)
    #expect(await choose(raised.engine, 1_001, 201) == nil)
    #expect(await choose(raised.engine, 1_002, 201) != nil)
    #expect(await choose(raised.engine, 1_001, 202) != nil)
  }

  @Test("a stream has at most 1,000 targets, or as many as it was told to", arguments: [nil, 100_000])
  func targets(raised: Int?) async throws {
    var limits = EngineLimits.standard
    if let raised { limits.streamTargets = raised }
    let most = raised ?? 1_000
    let fixture = try EngineFixture(limits: limits)
    try await fixture.set("c/d7", ["n": 0])
    let client = TargetCounter()
    let stream = try await fixture.watch(client)
    func add(_ ids: ClosedRange<Int>) throws {
      for id in ids {
        let name = try fixture.name(ResourcePath(["c", "d\(id)"]))
        stream.addTarget(WatchTarget(id: Int32(id), .documents([name]), bytes: 100))
      }
    }
    // Fewer at a time than may wait.
    for start in stride(from: 1, through: most, by: 1_000) {
      try add(start...start + 999)
      try await eventually("they are current") { client.current == start + 999 }
    }
    try add(most + 1...most + 1)
    let refusal = FirestoreError.resourceExhausted("A stream may have \(most) targets.")
    try await eventually("one more is refused") { client.refusals == [refusal] }
    // A change reaches its target among all of them, and one that goes makes room.
    let seen = client.changes
    try await fixture.set("c/d7", ["n": 1])
    try await eventually("the change is there") { client.changes == seen + 1 }
    stream.removeTarget(7)
    try add(most + 1...most + 1)
    try await eventually("there is room again") { client.current == most + 1 }
    #expect(client.refusals == [refusal])
    stream.close()
  }

  @Test(
    "a database has at most 10,000 open transactions, or as many as it was told to",
    arguments: [nil, 100_000])
  func transactions(raised: Int?) async throws {
    var limits = EngineLimits.standard
    if let raised { limits.openTransactions = raised }
    let most = raised ?? 10_000
    let fixture = try EngineFixture(limits: limits)
    let first = try await fixture.begin()
    let table = try await fixture.engine.database(fixture.database).transactions
    for _ in 1..<most { _ = try table.begin(.readOnly(), snapshot: nil, as: .administrator) }
    #expect(
      await failure { try await fixture.begin() }
        == .resourceExhausted("Too many transactions are open: a database may have \(most)."))
    // One that ends makes room, and so do all once their time is up.
    try await fixture.commit([], transaction: first)
    _ = try await fixture.begin()
    #expect(await failure { try await fixture.begin() }?.code == .resourceExhausted)
    fixture.clock.advance(by: limits.transactionIdle + 1)
    try await eventually("all have ended") { table.openCount == 0 }
    _ = try await fixture.begin()
  }
}

/// A client that keeps nothing but numbers, so that a stream may have very many targets.
private final class TargetCounter: WatchOutput {
  private struct Seen {
    var current = 0
    var changes = 0
    var refusals: [FirestoreError] = []
  }

  private let seen = Guarded(Seen())

  /// How many targets have become current.
  var current: Int { seen.withLock { $0.current } }
  /// How many documents were sent.
  var changes: Int { seen.withLock { $0.changes } }
  var refusals: [FirestoreError] { seen.withLock { $0.refusals } }

  func send(_ responses: [WatchResponse]) async throws {
    seen.withLock { seen in
      for response in responses {
        switch response {
        case .targetChange(let change) where change.kind == .current: seen.current += change.targetIDs.count
        case .targetChange(let change): if let cause = change.cause { seen.refusals.append(cause) }
        case .documentChange: seen.changes += 1
        default: break
        }
      }
    }
  }

  func fail(_ error: FirestoreError) async { seen.withLock { $0.refusals.append(error) } }
}
