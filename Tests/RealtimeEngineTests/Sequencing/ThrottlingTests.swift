// Tests throttled operations, mainly reads. Each batch, a group of operations that share a commit, has a time limit for
// throttled operations. After this time the batch still executes its writes, and its remaining throttled operations wait
// for the next batch.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Throttled operations", .timeLimit(.minutes(10)))
struct ThrottlingTests {
  /// Runs a batch with a time limit for throttled operations. Returns its executed and deferred operations.
  private func run(_ batch: [RealtimeOperation], batchQuantum: Duration) async throws
    -> BatchResult
  {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.batchQuantum = batchQuantum
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    return try await rows.execute(validating: nil) { writer in
      try executor.run(batch, in: writer, SessionJournal(), mayDefer: true)
    }.result
  }

  @Test(
    "After a batch's time limit for reads its writes execute, and the remaining reads wait for the next batch"
  )
  func timeLimit() async throws {
    let result = try await run(manyListens(), batchQuantum: .zero)
    #expect(result.executed.count == 1 + 40)
    #expect(result.deferred.count == 39 + 1)
    let skipped = result.deferred.filter { if case .nextBatch? = $0.deferral { true } else { false } }
    #expect(skipped.count == 39)
    // With enough time every operation executes.
    let all = try await run(manyListens(), batchQuantum: .seconds(600))
    #expect(all.deferred.isEmpty && all.executed.count == 40 + 40 + 1)
  }

  /// Listens of 40 connections with a write after each, and a second request of the last connection.
  private func manyListens() -> [RealtimeOperation] {
    let connections = (0..<40).map { i in
      ConnectionState(name: "c\(i)", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    }
    var batch: [RealtimeOperation] = []
    for (i, connection) in connections.enumerated() {
      let query = QuerySpec(ordering: .key, limit: .first(10))
      let listen = RealtimeOperation.Listen(path: "l", query: query, tag: 1, hash: "", compoundHash: nil)
      batch.append(RealtimeOperation(.listen(listen), from: .connection(connection, request: 1)))
      let write = RealtimeOperation.Action.write(.set(Path("l/k\(i)"), .leaf(.int(1))), hash: nil)
      batch.append(RealtimeOperation(write, from: .call(.nobody) { _ in }))
    }
    // A later request of a deferred connection is blocked.
    let behind = RealtimeOperation.Action.write(.set("behind", .leaf(.int(1))), hash: nil)
    batch.append(RealtimeOperation(behind, from: .connection(connections[39], request: 2)))
    return batch
  }

  @Test(
    "A read of a wide window is deferred, a read of a narrow window executes, and other connections continue")
  func wideWindows() async throws {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    (staging.readRows, staging.batchQuantum) = (8, .seconds(600))
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 0, staging: staging)
    let connections = (0..<4).map { i in
      ConnectionState(name: "c\(i)", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    }
    let list = Node.object((0..<20).map { (ChildKey("k\($0)"), ["v": 1]) })
    let large = Node.object((0..<9).map { (ChildKey("k\($0)"), 1) })
    func get(_ path: Path, _ limit: Int, _ connection: Int) -> RealtimeOperation {
      let query = QuerySpec(ordering: .key, limit: .first(limit))
      return RealtimeOperation(.get(path, query), from: .connection(connections[connection], request: 1))
    }
    func write(_ path: Path, _ node: Node, _ origin: RealtimeOperation.Origin) -> RealtimeOperation {
      RealtimeOperation(.write(.set(path, node), hash: nil), from: origin)
    }
    let batch = [
      write("l", list, .call(.nobody) { _ in }), write("m/x", large, .call(.nobody) { _ in }),
      get("l", 9, 0), write("behind", 1, .connection(connections[0], request: 2)), get("l", 8, 1),
      // This window has few children, but one of them has many rows.
      get("m", 2, 2), write("l/k1", 2, .connection(connections[3], request: 1)),
    ]
    var result = try await rows.execute(validating: nil) { writer in
      try executor.run(batch, in: writer, SessionJournal(), mayDefer: true)
    }.result
    let waiting = result.deferred.map { operation in
      switch operation.stage {
      case .deferred(.window(let read)): "\(read.path) \(read.query.limit?.count ?? 0)"
      case .blocked: "blocked"
      default: "other"
      }
    }
    #expect(waiting == ["l 9", "blocked", "m 2"])
    #expect(result.executed.count == 4)
    // The deferred operation returns to a batch with the window that was read in the background.
    var ready = result.deferred[0].requeued
    ready.results.window = .success(7)
    #expect(!ready.isThrottled)
    result = try await rows.execute(validating: nil) { [ready] writer in
      try executor.run([ready], in: writer, SessionJournal(), mayDefer: true)
    }.result
    guard case .answer(_, .value(let node))? = result.steps.first else {
      return #expect(Bool(false), "no answer")
    }
    #expect(node == 7)
  }

  @Test("Clearing index rows stops at the time limit of its batch, and continues in the next batch")
  func indexClearing() async throws {
    let rows = try await MemoryStore().database(named: "clearing", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.batchQuantum = .zero
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 0, staging: staging)
    func run(_ action: RealtimeOperation.Action) async throws {
      let operation = RealtimeOperation(action, from: .call(.administrator) { _ in })
      _ = try await rows.execute(validating: nil) { writer in
        try executor.run([operation], in: writer, SessionJournal(), mayDefer: true)
      }
    }
    func count() async throws -> Int {
      try await rows.read(at: nil) { view in
        var count = 0
        try view.scan(KeyRange(prefix: [IndexRows.tree]), reverse: false) { _, _, _ in
          count += 1
          return true
        }
        return count
      }
    }
    let rules = #"{"rules":{"notes":{".indexOn":["due","a/b",".value"]}}}"#
    try await run(.setRules(StoredRules(file: try RulesFile(Array(rules.utf8)), policy: nil)))
    for _ in 0..<2 { try await run(.buildIndexes) }
    let notes = Node.object((0..<100).map { (ChildKey("n\($0)"), .leaf(.int(Int64($0)))) })
    try await run(.write(.set("notes", notes), hash: nil))
    #expect(try await count() == 300)
    try await run(.setRules(StoredRules(file: try RulesFile(Array(#"{"rules":{}}"#.utf8)), policy: nil)))
    try await run(.buildIndexes)
    #expect(try await count() == 300 - 32)
    try await run(.buildIndexes)
    #expect(try await count() == 300 - 64)
    for _ in 0..<8 { try await run(.buildIndexes) }
    #expect(try await count() == 0)
  }

  @Test("Cancelling onDisconnect writes is throttled")
  func cancellation() {
    #expect(RealtimeOperation(.cancelOnDisconnect("a"), from: .call(.nobody) { _ in }).isThrottled)
  }

  @Test("An operation that a batch skipped executes later, even if new operations arrive for every batch")
  func starvation() async throws {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.batchQuantum = .zero
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    let queue = OperationQueue()
    func read(_ number: Int) -> RealtimeOperation {
      let connection = ConnectionState(
        name: "c\(number)", caller: .nobody, sink: RecordingSink(RecordingGroup()))
      return RealtimeOperation(.get("x", .default), from: .connection(connection, request: Int64(number)))
    }
    let first = 5
    for number in 0..<first { #expect(queue.append(read(number))) }
    var answered: [Int64] = []
    for round in 0..<40 {
      // Two new operations arrive for each batch, which executes one operation.
      for i in 0..<2 { #expect(queue.append(read(first + 2 * round + i))) }
      let batch = try #require(await queue.next())
      let result = try await rows.execute(validating: nil) { writer in
        try executor.run(batch, in: writer, SessionJournal(), mayDefer: true)
      }.result
      for operation in result.executed {
        if case .connection(_, let request?) = operation.origin { answered.append(request) }
      }
      queue.hold(result.deferred)
      queue.resumeSkipped(result.deferred)
    }
    #expect(answered == Array(0..<40))
  }
}
