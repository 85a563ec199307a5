// Tests a new policy under 10,000 open listens. The listens that it denies receive no later write. A write does not wait
// for the decisions about listens at other locations. A batch is the group of operations that one commit executes.

import Access
import Locking
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("A new policy under many listens", .timeLimit(.minutes(10)))
struct PolicySwapTests {
  private static let listenCount = 10_000
  private static let connectionCount = 100

  /// Allows all writes, and reads of locations with even numbers.
  private let evenNumberPolicy = ClosurePolicy.when { _, operation, _ in
    guard !operation.changesData, let key = operation.paths.first?.last else { return true }
    return key.integerValue.map { $0.isMultiple(of: 2) } ?? true
  }

  /// Collects the pushes of all connections.
  private final class Collector: RealtimeSink, RealtimeSinkGroup {
    /// For each listened location, the last value, and whether the listen was cancelled.
    let received = Guarded<[Path: (last: Int64, isCancelled: Bool)]>([:])
    let responses = Guarded(0)

    var group: any RealtimeSinkGroup { self }

    var cancelledCount: Int { received.withLock { $0.values.count(where: \.isCancelled) } }

    func deliver(_ deliveries: [RealtimeDelivery]) {
      for output in deliveries.flatMap(\.outputs) {
        switch output {
        case .push(let push):
          received.withLock { received in
            if case .cancel = push.body { received[push.path, default: (0, false)].isCancelled = true }
            if case .set(let node) = push.body, case .int(let value)? = node.leafValue {
              received[push.path, default: (0, false)].last = value
            }
          }
        case .response: responses.withLock { $0 += 1 }
        case .authRevoked, .ended: break
        }
      }
    }
  }

  @Test("Under continuous writes no denied listen receives a value written after the new policy")
  func swap() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("swap")
    let collector = Collector()
    let connections = (0..<Self.connectionCount).map { _ in database.connect(as: .nobody, to: collector) }
    for number in 0..<Self.listenCount {
      connections[number % Self.connectionCount].listen(
        Path("l/\(number)"), hash: "", request: Int64(number))
    }
    while collector.responses.withLock({ $0 }) < Self.listenCount { await Task.yield() }
    let lastBefore = Guarded<Int64>(.max)
    // All writers take their values from one counter. So a value above the counter's state at the time of the new
    // policy was written after it.
    let counter = Guarded<Int64>(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for round in 0..<250 {
            let value = counter.withLock { counter in
              counter += 1
              return counter
            }
            let number = (round * 4 + writer) * 37 % Self.listenCount
            let odd = number | 1
            _ = try await database.update(
              "l", [(Path("\(odd)"), .leaf(.int(value))), (Path("\(odd - 1)"), .leaf(.int(value)))],
              as: .administrator)
          }
        }
      }
      group.addTask {
        while counter.withLock({ $0 }) < 200 { await Task.yield() }
        database.policies.publish(evenNumberPolicy)
        lastBefore.withLock { $0 = counter.withLock { $0 } }
      }
      try await group.waitForAll()
    }
    while collector.cancelledCount < Self.listenCount / 2 { try await database.queueBarrier() }
    let received = collector.received.withLock { $0 }
    let limit = lastBefore.withLock { $0 }
    var cancelled = 0
    for (path, state) in received {
      let isDenied = (path.last?.integerValue ?? 0) % 2 == 1
      #expect(state.isCancelled == isDenied, "\(path)")
      if isDenied { #expect(state.last <= limit, "\(path) received \(state.last), later than \(limit)") }
      cancelled += state.isCancelled ? 1 : 0
    }
    #expect(cancelled == Self.listenCount / 2)
    await database.shutdown()
  }

  @Test(
    "A write waits only for decisions about listens that it matches; each batch makes a bounded number of decisions"
  )
  func bounded() async throws {
    let slot = PolicySlot<RealtimeAccess>(OpenPolicy())
    var staging = StagingLimits()
    staging.batchQuantum = .seconds(600)
    let executor = OperationExecutor(policies: slot, limits: .standard, cacheBytes: 1 << 20, staging: staging)
    let rows = try await MemoryStore().database(named: "x", history: .activeReadersOnly)
    let connections = (0..<2).map { number in
      ConnectionState(name: "c\(number)", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    }
    func run(_ actions: [RealtimeOperation.Action], on connection: Int? = nil) async throws -> BatchResult {
      let operations = actions.map { action in
        RealtimeOperation(
          action,
          from: connection.map { .connection(connections[$0], request: 1) } ?? .call(.administrator) { _ in })
      }
      return try await rows.execute(validating: nil) { writer in
        try executor.run(operations, in: writer, SessionJournal(), mayDefer: true)
      }.result
    }
    func listen(_ path: Path, _ tag: Int64?) -> RealtimeOperation.Action {
      .listen(.init(path: path, query: .default, tag: tag, hash: "", compoundHash: nil))
    }
    // Half of the listens are on one location.
    for part in 0..<10 {
      _ = try await run((0..<250).map { listen(Path("l/\(part * 250 + $0)"), nil) }, on: 0)
      _ = try await run((0..<250).map { listen("hot", Int64(part * 250 + $0)) }, on: 1)
    }
    #expect(executor.openListens.count == 5_000)
    slot.publish(evenNumberPolicy)
    // The write to one location runs. The write that matches half of the listens waits for some batches.
    let set = RealtimeOperation.Action.write(.set("l/3", 1), hash: nil)
    let hot = RealtimeOperation.Action.write(.set("hot", 1), hash: nil)
    var result = try await run([hot, set])
    #expect(result.executed.count == 1 && result.deferred.count == 1)
    #expect(evenNumberPolicy.count == 1 + AuthorizationHandler.maximumDecisions)
    #expect(executor.openListens.count == 4_999)
    var batches = 1
    while !result.deferred.isEmpty {
      result = try await run([hot])
      batches += 1
    }
    #expect(batches == 2_500 / AuthorizationHandler.maximumDecisions + 1)
    #expect(evenNumberPolicy.count == 1 + 2_500)
    while executor.openListens.undecidedCount > 0 {
      let before = evenNumberPolicy.count
      _ = try await run([.decideListens])
      #expect(evenNumberPolicy.count <= before + AuthorizationHandler.maximumDecisions)
    }
    #expect(evenNumberPolicy.count == 5_000)
    #expect(executor.openListens.count == 2_500 + 1_250)
  }
}

extension RealtimeDatabase {
  /// Returns when all earlier operations are durable and delivered.
  fileprivate func queueBarrier() async throws { _ = try await call(.barrier, as: .administrator) }
}
