// Tests the cost of computing notifications, in rows read.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Cost of notifications", .timeLimit(.minutes(10)))
struct NotificationCostTests {
  /// Returns the rows that a write reads in a database with a given value and an empty cache.
  private func cost(
    of changes: [(Path, Node)], on before: Node
  ) async throws -> (rows: Int, after: Node) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let filling = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("cost")
    _ = try await filling.set("/", to: before, as: .nobody)
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("cost")
    #expect(try await eventually { database.builder.completedRuns > 0 })
    await database.cleaner.stop()
    let rows = try await engine.count { _ = try await database.update("/", changes, as: .nobody) }
    return (rows, try await database.get("/", as: .nobody))
  }

  @Test("Pushing a complete location needs few row reads: the write already contains its value")
  func completeLocation() async throws {
    let wide = Node.object((0..<2_000).map { (ChildKey("k\($0)"), .leaf(.int(Int64($0)))) })
    let update = RealtimeWrite.update("/", [("c/a", .empty), ("c/b", wide), ("d", 1)])
    var visited: [Int] = []
    var last: [(Path, Node)] = []
    for priority in [nil, Priority.number(3)] {
      let rows = try await MemoryStore().database(named: "cost", history: .activeReadersOnly)
      // Runs without a cache, so that every read of a row is counted.
      let executor = OperationExecutor(policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 0)
      let before = Node.object([("c", .object([("a", 1)], priority: priority)), ("keep", 1)])
      for write in [RealtimeWrite.set("/", before), update] {
        let operation = RealtimeOperation(.write(write, hash: nil), from: .call(.nobody) { _ in })
        let (count, received) = try await rows.execute(validating: nil) {
          writer -> (Int, [(Path, Node)]) in
          let counting = CountingState(base: writer)
          let result = try executor.run([operation], in: counting, SessionJournal(), mayDefer: false)
          guard case .write(let changes, _)? = result.steps.first else { return (counting.rows, []) }
          return (counting.rows, changes.map { ($0.path, $0.value) })
        }.result
        visited.append(count)
        last = received
      }
    }
    #expect(visited[3] - visited[1] < 40, "\(visited)")
    #expect(last.map(\.0) == ["c", "d"] && last.first?.1 == Node.object([(ChildKey("b"), wide)]))
  }

  @Test("A removal reads the same number of rows with and without priorities in the database")
  func removal() async throws {
    let path: Path = "a/b/c/d/e/f/g/h"
    var rows: [Int] = []
    for priority in [nil, Priority.number(3)] {
      let before = Node.empty.setting(path.child("x"), to: 1).setting(path.child("y"), to: 2)
        .setting("other", to: .leaf(.int(1), priority: priority))
      let (cost, after) = try await cost(of: [(path.child("x"), .empty)], on: before)
      #expect(after.descendant(path).childCount == 1)
      rows.append(cost)
    }
    #expect(rows[0] == rows[1], "\(rows)")
  }
}

/// A transaction of the store that counts the rows that it reads, including rows whose commits are not durable yet.
final class CountingState: SequencedTransaction {
  private let base: any SequencedTransaction
  private(set) var rows = 0

  init(base: any SequencedTransaction) { self.base = base }

  var version: Version { base.version }
  var commitVersion: Version { base.commitVersion }

  func get(_ key: [UInt8]) throws -> VersionedValue? {
    rows += 1
    return try base.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try base.scan(range, reverse: reverse) { key, value, version in
      rows += 1
      return try visit(key, value, version)
    }
  }

  func set(_ key: [UInt8], _ value: StoredValue) throws { try base.set(key, value) }
  func insert(_ key: [UInt8], _ value: StoredValue) throws { try base.insert(key, value) }
  func clear(_ key: [UInt8]) throws { try base.clear(key) }
  func clear(_ range: KeyRange) throws { try base.clear(range) }
  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws { try base.log(payload, attachment) }
  func reserveCommitVersion() { base.reserveCommitVersion() }
}
