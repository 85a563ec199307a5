// Tests pipelined batches. A batch is a group of operations that share a commit, and executes while earlier batches sync.
// Its results are published after all earlier commits are durable. If an earlier commit fails, the later batches fail too.

import Access
import Locking
import OrderedStore
import RealtimeModel
import StoreFixture
import Testing

@testable import RealtimeEngine

@Suite("Batches in flight", .timeLimit(.minutes(10)))
struct PipelineTests {
  /// Denies anonymous callers access to `private`, and records the paths that it has decided.
  private final class RecordingPolicy: AccessPolicy {
    typealias Product = RealtimeAccess
    let decided = Guarded<Set<String>>([])

    func decide(
      _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
    ) -> RealtimeDecision {
      let paths = operation.paths
      decided.withLock { decided in for path in paths { decided.insert(path.description) } }
      let isPrivate = paths.contains { $0.first?.text == "private" }
      return isPrivate && caller.identity == .nobody ? .deny(reason: "private") : .allowed
    }

    /// Waits until access to a path was decided, which means that an operation on it executes.
    func hasDecided(_ path: String) async throws -> Bool {
      try await eventually { decided.withLock { $0.contains(path) } }
    }
  }

  private let engine = GatedEngine()
  private let policy = RecordingPolicy()

  private func open() async throws -> RealtimeDatabase {
    let store = try EngineStore(engine, StoreOptions())
    let database = try await RealtimeEngine(store: store, policy: policy).database("flights")
    // The first write waits until the database is created.
    _ = try await database.set("born", to: 1, as: .administrator)
    _ = try await database.set("born", to: .empty, as: .administrator)
    return database
  }

  @Test(
    "A batch executes while the previous batch syncs; their results are published in order once durable")
  func order() async throws {
    let database = try await open()
    let (a, b) = (Client(database), Client(database))
    await b.call { $0.listen("n", hash: "", request: $1) }
    _ = await b.drain()
    engine.blockCommits()
    let first = await a.send { $0.set("n/a", to: 1, request: $1) }
    await engine.waitUntilBlocked()
    let second = await b.send { $0.set("n/b", to: 2, request: $1) }
    #expect(try await policy.hasDecided("n/b"), "the second batch waits for the first sync")
    let third = await b.send { $0.get("n", request: $1) }
    for _ in 0..<1_000 { await Task.yield() }
    #expect(await a.drain() == [])
    #expect(await b.drain() == [])
    #expect(
      try await database.get("n", as: .administrator).isEmpty, "a read shows a write that is not durable")
    engine.unblock()
    _ = await (a.response(to: first), b.response(to: second), b.response(to: third))
    #expect(await b.drain() == ["d n/a 1", "d n/b 2", "2 ok", "3 ok {a:1,b:2}"])
  }

  @Test(
    "A failed sync fails the later writes and rolls back changes to sessions; reads continue"
  )
  func failedSync() async throws {
    let database = try await open()
    let user = Principal.user("u1")
    let (a, b, c) = (Client(database), Client(database, as: user), Client(database))
    _ = await b.set("private", 1)
    #expect(await b.call { $0.listen("private", hash: "", request: $1) }.text == "ok")
    _ = await b.drain()
    engine.blockCommits()
    let first = await a.send { $0.set("x", to: 1, request: $1) }
    await engine.waitUntilBlocked()
    let second = await b.send { $0.authenticate(.nobody, request: $1) }
    let third = await b.send { $0.set("y", to: 1, request: $1) }
    let fourth = await c.send { $0.listen("y", hash: "", request: $1) }
    #expect(try await policy.hasDecided("y"))
    let fifth = await a.send { $0.set("z", to: 1, request: $1) }
    let sixth = await c.send { $0.get("x", request: $1) }
    engine.unblock(failing: StoreError(.unavailable, "the disk is gone"))
    #expect(await a.response(to: first).text == "unavailable")
    #expect(await b.response(to: second).text == "ok")
    #expect(await b.response(to: third).text == "unavailable")
    #expect(await c.response(to: fourth).text == "ok")
    #expect(await a.response(to: fifth).text == "unavailable")
    #expect(await c.response(to: sixth).text == "ok null")
    #expect(await b.drain() == ["c private permission_denied", "3 ok", "4 unavailable"])
    #expect(await c.drain() == ["1 ok", "2 ok null"])
    #expect(await a.set("x", 2).text == "unavailable")
    #expect(await b.call { $0.get("private", request: $1) }.text == "permission_denied")
    #expect(await Client(database, as: user).call { $0.get("private", request: $1) }.text == "ok 1")
  }

  @Test("A commit that the store rejects after its execution is rolled back before the next batch executes")
  func rejectedAfterExecution() async throws {
    let store = try EngineStore(engine, StoreOptions())
    let rows = try await DatabaseRows(named: "realtime/late", in: store, now: SystemTime.milliseconds)
    let executor = OperationExecutor(policies: PolicySlot(policy), limits: .standard, cacheBytes: 1 << 20)
    let runner = BatchRunner(
      rows: rows, executor: executor, threads: ThreadPool(threads: 1), created: {}, report: { _ in })
    _ = try await runner.create()
    var number = 0
    /// Starts a batch, and waits until the next one may execute.
    func start(_ actions: RealtimeOperation.Action...) async -> BatchInFlight {
      number += 1
      let operations = actions.map { RealtimeOperation($0, from: .call(.administrator) { _ in }) }
      let batch = runner.start(number, operations) { _ in }
      _ = await batch.sequenced.value()
      return batch
    }
    func results(_ batch: BatchInFlight) async -> [String] {
      await batch.steps.value().compactMap { step in
        guard case .answer(_, let result) = step else { return nil }
        return switch result {
        case .written: "written"
        case .value(let node): node.text
        case .failure(let error): error.status.rawValue
        default: "other"
        }
      }
    }
    let increment = RealtimeOperation.Action.write(
      .set("n", .leaf(.deferred(.increment(.int(1))))), hash: nil)
    // The batch also reads the value, which brings it into the cache.
    let first = await start(.write(.set("n", 41), hash: nil), .get("n", .default))
    #expect(await results(first) == ["written", "41"])
    // The store reads the rows that a batch clears after the batch has executed. This row is unreadable, so
    // the store rejects the removal.
    engine.state.withLock { $0.unreadableKeySuffix = RowKeys.row(of: "n") }
    let removal = await start(.write(.set("n", .empty), hash: nil))
    let next = await start(increment)
    let outcomes = await (removal.outcome.value(), next.outcome.value())
    engine.state.withLock { $0.unreadableKeySuffix = nil }
    #expect(throws: StoreError.self) { try outcomes.0.get() }
    await runner.recover([removal, next])
    #expect(await results(removal) == ["unavailable"])
    #expect(await results(next) == ["written"])
    #expect(await results(await start(.get("n", .default))) == ["42"])
    // In one batch the increment writes the row again. The batch clears no row, so the store accepts it.
    engine.state.withLock { $0.unreadableKeySuffix = RowKeys.row(of: "n") }
    let both = await start(.write(.set("n", .empty), hash: nil), increment)
    #expect(await results(both) == ["written", "written"])
    engine.state.withLock { $0.unreadableKeySuffix = nil }
    #expect(await results(await start(.get("n", .default))) == ["1"])
  }
}
