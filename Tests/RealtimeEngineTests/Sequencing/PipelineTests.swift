// Batches overtake the disk, but never one another: what is sequenced while earlier commits are being synced is told in
// order and after them, and fails with them.

import Locking
import OrderedStore
import RealtimeModel
import StoreFixture
import Testing

@testable import RealtimeEngine

@Suite("Batches in flight", .timeLimit(.minutes(10)))
struct PipelineTests {
  /// Everything is allowed but what lies below `private` to callers who are not signed in; tells what it was asked.
  private final class WatchedPolicy: AccessPolicy {
    let asked = Guarded<Set<String>>([])

    func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) -> RealtimeError? {
      let paths =
        switch operation {
        case .read(let path, _): [path]
        case .write(let changes): changes.map(\.path)
        }
      asked.withLock { asked in for path in paths { asked.insert(path.description) } }
      let isPrivate = paths.contains { $0.first?.text == "private" }
      return isPrivate && caller.identity == .anonymous ? .permissionDenied : nil
    }

    /// Waits until access to a path was decided: until an operation on it is being sequenced.
    func decided(_ path: String) async -> Bool {
      for _ in 0..<3_000 {
        if asked.withLock({ $0.contains(path) }) { return true }
        try? await Task.sleep(for: .milliseconds(10))
      }
      return false
    }
  }

  private let engine = GatedEngine()
  private let policy = WatchedPolicy()

  private func open() async throws -> RealtimeDatabase {
    let store = try EngineStore(engine, StoreOptions())
    let database = try await RealtimeEngine(store: store, policy: policy).database("flights")
    // Brings it into being: the first write of all waits for that.
    _ = try await database.set("born", to: 1, as: .administrator)
    _ = try await database.set("born", to: .empty, as: .administrator)
    return database
  }

  @Test(
    "A batch is sequenced while the one before is on its way to the disk; both are told in order, durable")
  func order() async throws {
    let database = try await open()
    let (a, b) = (Client(database), Client(database))
    await b.ask { $0.listen("n", hash: "", request: $1) }
    _ = await b.drain()
    engine.blockCommits()
    let first = await a.send { $0.set("n/a", to: 1, request: $1) }
    await engine.waitUntilBlocked()
    let second = await b.send { $0.set("n/b", to: 2, request: $1) }
    #expect(await policy.decided("n/b"), "the second waits for the first one's sync")
    let third = await b.send { $0.get("n", request: $1) }
    for _ in 0..<1_000 { await Task.yield() }
    #expect(await a.drain() == [])
    #expect(await b.drain() == [])
    #expect(try await database.get("n", as: .administrator).isEmpty, "not durable, and shown")
    engine.unblock()
    _ = await (a.answer(to: first), b.answer(to: second), b.answer(to: third))
    #expect(await b.drain() == ["d n/a 1", "d n/b 2", "2 ok", "3 ok {a:1,b:2}"])
  }

  @Test(
    "A failed sync fails everything behind it; sessions are as if it had never been sequenced, and reads go on"
  )
  func failedSync() async throws {
    let database = try await open()
    let user = Caller(.user(id: "u1", claims: .empty))
    let (a, b, c) = (Client(database), Client(database, as: user), Client(database))
    _ = await b.set("private", 1)
    #expect(await b.ask { $0.listen("private", hash: "", request: $1) }.text == "ok")
    _ = await b.drain()
    engine.blockCommits()
    let first = await a.send { $0.set("x", to: 1, request: $1) }
    await engine.waitUntilBlocked()
    let second = await b.send { $0.authenticate(.anonymous, request: $1) }
    let third = await b.send { $0.set("y", to: 1, request: $1) }
    let fourth = await c.send { $0.listen("y", hash: "", request: $1) }
    #expect(await policy.decided("y"))
    let fifth = await a.send { $0.set("z", to: 1, request: $1) }
    let sixth = await c.send { $0.get("x", request: $1) }
    engine.unblock(failing: StoreError(.unavailable, "the disk is gone"))
    #expect(await a.answer(to: first).text == "unavailable")
    #expect(await b.answer(to: second).text == "ok")
    #expect(await b.answer(to: third).text == "unavailable")
    #expect(await c.answer(to: fourth).text == "ok")
    #expect(await a.answer(to: fifth).text == "unavailable")
    #expect(await c.answer(to: sixth).text == "ok null")
    #expect(await b.drain() == ["c private permission_denied", "3 ok", "4 unavailable"])
    #expect(await c.drain() == ["1 ok", "2 ok null"])
    #expect(await a.set("x", 2).text == "unavailable")
    #expect(await b.ask { $0.get("private", request: $1) }.text == "permission_denied")
    #expect(await Client(database, as: user).ask { $0.get("private", request: $1) }.text == "ok 1")
  }

  @Test("A commit that the store refuses after its body ended is taken back before the next one is sequenced")
  func refusedLate() async throws {
    let database = try await open()
    let client = Client(database)
    var wasRefused = false
    for _ in 0..<100 where !wasRefused {
      #expect(await client.set("n", 41).text == "ok")
      #expect(await client.ask { $0.get("n", request: $1) }.text == "ok 41")
      _ = await client.drain()
      // Removing a row has the store read it, once the body has ended.
      engine.state.withLock { $0.unreadable = RowKeys.row(of: "n") }
      let first = await client.send { $0.set("n", to: .empty, request: $1) }
      let second = await client.send {
        $0.set("n", to: .leaf(.deferred(.increment(.int(1)))), request: $1)
      }
      let removal = await client.answer(to: first).text
      let increment = await client.answer(to: second).text
      engine.state.withLock { $0.unreadable = nil }
      // If the two shared a batch whose outcome is a row, nothing was removed, and nothing refused.
      if removal == "ok" { continue }
      #expect(removal == "unavailable")
      #expect(await client.drain().contains("\(first) unavailable"))
      // It went with the removal if they shared a batch; it never counted from what was not removed.
      let expected = increment == "ok" ? "ok 42" : "ok 41"
      #expect(await client.ask { $0.get("n", request: $1) }.text == expected)
      wasRefused = true
    }
    #expect(wasRefused)
    #expect(await client.set("n", .empty).text == "ok")
    #expect(await client.ask { $0.get("n", request: $1) }.text == "ok null")
  }
}
