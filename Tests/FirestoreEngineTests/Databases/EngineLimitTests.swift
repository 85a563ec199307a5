// Tests the limits of the engine, with their default values and with raised values: time, indexes, targets and
// transactions.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Limits of the engine", .timeLimit(.minutes(10)))
struct EngineLimitTests {
  /// Creates a store with a test clock.
  private static func store(_ clock: Guarded<UInt64>) throws -> MemoryStore {
    try MemoryStore(
      StoreOptions(clock: StoreClock { clock.withLock { $0 } }, trimmingIntervalMilliseconds: 1))
  }

  @Test("a listener with a limit and the maximum number of filters gets the next document after a deletion")
  func refillsLimit() async throws {
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
      let snapshot = try await client.snapshot(at: time)
      #expect(snapshot[2]?.keys.contains("c/c") == true, "\(client.view.removed)")
    }
    #expect(client.view.removed.isEmpty && client.view.violations.isEmpty)
    stream.close()
  }

  @Test("a transaction expires after its idle timeout and after its total timeout", arguments: [1, 10])
  func transactionTimeouts(factor: Int) async throws {
    var limits = EngineLimits.standard
    limits.transactionIdleTimeoutSeconds *= factor
    limits.transactionTimeoutSeconds *= factor
    let fixture = try EngineFixture(limits: limits)
    try await fixture.set("c/d", [:])
    let idle = try await fixture.begin()
    fixture.clock.advance(by: UInt64(60 * factor) * 1_000_000 - 1)
    _ = try await fixture.get("c/d", .transaction(idle))
    fixture.clock.advance(by: UInt64(60 * factor) * 1_000_000 + 1)
    #expect(
      await failure { try await fixture.get("c/d", .transaction(idle)) }
        == .aborted(TransactionTable.expiredMessage)
    )
    let busy = try await fixture.begin()
    for _ in 0..<5 {
      fixture.clock.advance(by: UInt64(50 * factor) * 1_000_000)
      _ = try await fixture.get("c/d", .transaction(busy))
    }
    fixture.clock.advance(by: UInt64(20 * factor) * 1_000_000 + 1)
    #expect(
      await failure { try await fixture.get("c/d", .transaction(busy)) }
        == .aborted(TransactionTable.expiredMessage)
    )
  }

  @Test("reads and resume tokens reach back as far as the configured history", arguments: [false, true])
  func history(isRaised: Bool) async throws {
    let now = Guarded<UInt64>(1_800_000_000_000_000)
    var limits = EngineLimits.standard
    if isRaised {
      limits.historySeconds = 3 * 3_600
      limits.maximumResumeTokenAgeSeconds = 3 * 3_600
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
      // Trimming of old versions runs periodically.
      try await eventually("the old version is trimmed") {
        await failure { try await fixture.get("c/a", .readTime(first)) }?.code == .failedPrecondition
      }
    }
    let resumed = WatchClient()
    resumed.setCachedDocuments(client.view.documents)
    let again = try await fixture.watch(resumed)
    again.addTarget(WatchTarget(id: 2, query, start: .resumeToken(token), expectedCount: 1))
    _ = try await resumed.snapshot(at: last)
    #expect(resumed.view.resets == (isRaised ? 0 : 1))
    again.close()
  }

  @Test("composite indexes and field overrides are limited to 1,000 and 200, or to the configured numbers")
  func indexes() async throws {
    func configuration(_ composites: Int, _ overrides: Int) -> DatabaseIndexConfiguration {
      var configuration = DatabaseIndexConfiguration()
      configuration.indexes = (0..<composites).map { number in
        DatabaseIndexConfiguration.Index(
          "c", .collection,
          [
            .init(FieldPath(field: "a\(number)"), .ascending), .init(FieldPath(field: "b"), .ascending),
          ])
      }
      configuration.overrides = (0..<overrides).map {
        DatabaseIndexConfiguration.Override("c", FieldPath(field: "o\($0)"), [])
      }
      return configuration
    }
    let fixture = try EngineFixture()
    func setIndexes(_ engine: FirestoreEngine, _ composites: Int, _ overrides: Int) async -> FirestoreError? {
      await failure {
        try await engine.setIndexes(configuration(composites, overrides), ofDatabase: "(default)")
      }
    }
    #expect(await setIndexes(fixture.engine, 1_000, 200) == nil)
    #expect(
      await setIndexes(fixture.engine, 1_001, 0)
        == .invalidArgument(
          "The database (default) would have 1001 composite indexes; at most 1000 are allowed."))
    #expect(
      await setIndexes(fixture.engine, 0, 201)
        == .invalidArgument("The database (default) would have 201 field overrides; at most 200 are allowed.")
    )
    var limits = EngineLimits.standard
    limits.maximumCompositeIndexes = 1_001
    limits.maximumFieldOverrides = 201
    let raised = try EngineFixture(limits: limits)
    #expect(await setIndexes(raised.engine, 1_001, 201) == nil)
    #expect(await setIndexes(raised.engine, 1_002, 201) != nil)
    #expect(await setIndexes(raised.engine, 1_001, 202) != nil)
  }

  @Test("a stream is limited to 1,000 targets, or to the configured number", arguments: [nil, 100_000])
  func targets(raised: Int?) async throws {
    var limits = EngineLimits.standard
    if let raised { limits.maximumStreamTargets = raised }
    let maximum = raised ?? 1_000
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
    // Adds targets in batches, because pending requests are limited, too.
    for start in stride(from: 1, through: maximum, by: 1_000) {
      try add(start...start + 999)
      try await eventually("the targets are current") { client.current == start + 999 }
    }
    try add(maximum + 1...maximum + 1)
    let rejection = FirestoreError.resourceExhausted("A stream may have \(maximum) targets.")
    try await eventually("one more target is rejected") { client.rejections == [rejection] }
    // Only one of the many targets matches the change, so only that target is notified. After the removal of one target,
    // another target can be added.
    let seen = client.changes
    try await fixture.set("c/d7", ["n": 1])
    try await eventually("the change arrives") { client.changes == seen + 1 }
    stream.removeTarget(7)
    try add(maximum + 1...maximum + 1)
    try await eventually("a slot is free") { client.current == maximum + 1 }
    #expect(client.rejections == [rejection])
    stream.close()
  }

  @Test(
    "a database is limited to 10,000 open transactions, or to the configured number",
    arguments: [nil, 100_000])
  func transactions(raised: Int?) async throws {
    var limits = EngineLimits.standard
    if let raised { limits.maximumOpenTransactions = raised }
    let maximum = raised ?? 10_000
    let fixture = try EngineFixture(limits: limits)
    let first = try await fixture.begin()
    let table = try await fixture.engine.database(fixture.database).transactions
    for _ in 1..<maximum / 2 { _ = try table.begin(.readOnly(), snapshot: nil, as: .nobody) }
    for caller in [Principal.nobody, .user("u")] {
      #expect(throws: FirestoreError.self) { try table.begin(.readOnly(), snapshot: nil, as: caller) }
    }
    for _ in maximum / 2..<maximum { _ = try table.begin(.readOnly(), snapshot: nil, as: .administrator) }
    #expect(
      await failure { try await fixture.begin() }
        == .resourceExhausted("Too many transactions are open: a database may have \(maximum)."))
    // A transaction frees its slot when it ends or expires.
    try await fixture.commit([], transaction: first)
    _ = try await fixture.begin()
    #expect(await failure { try await fixture.begin() }?.code == .resourceExhausted)
    fixture.clock.advance(by: limits.transactionIdleTimeout + 1)
    try await eventually("all transactions have ended") { table.openCount == 0 }
    _ = try await fixture.begin()
  }
}

/// Counts responses without storing documents, so that a stream can have very many targets.
private final class TargetCounter: WatchOutput {
  private struct Seen {
    var current = 0
    var changes = 0
    var rejections: [FirestoreError] = []
  }

  private let seen = Guarded(Seen())

  /// The number of targets that became current.
  var current: Int { seen.withLock { $0.current } }
  /// The number of document changes received.
  var changes: Int { seen.withLock { $0.changes } }
  var rejections: [FirestoreError] { seen.withLock { $0.rejections } }

  func send(_ responses: [WatchResponse]) async throws {
    seen.withLock { seen in
      for response in responses {
        switch response {
        case .targetChange(let change) where change.kind == .current: seen.current += change.targetIDs.count
        case .targetChange(let change): if let cause = change.cause { seen.rejections.append(cause) }
        case .documentChange: seen.changes += 1
        default: break
        }
      }
    }
  }

  func fail(_ error: FirestoreError) async { seen.withLock { $0.rejections.append(error) } }
}
