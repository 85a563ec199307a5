// Tests transactions (writes that are conditional on a hash) on nodes with many children, whose hash is
// computed in the background.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Transactions on wide nodes", .timeLimit(.minutes(10)))
struct WideTransactionTests {
  @Test("A transaction on a node of 120,000 children accepts only the current hash")
  func wide() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("wide")
    let wide = Node.object((0..<120_000).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    _ = try await database.set("wide", to: wide, as: .nobody)
    let client = Client(database)
    #expect(
      await client.call { $0.set("wide", to: 1, ifHash: "stale", request: $1) }.text == "datastale")
    let next = wide.settingChild("new", to: 1)
    #expect(
      await client.call { $0.set("wide", to: next, ifHash: wide.hash, request: $1) }.text == "ok")
    #expect(
      await client.call { $0.set("wide", to: 2, ifHash: wide.hash, request: $1) }.text == "datastale")
    #expect(try await database.get("wide", as: .nobody) == next)
    guard case .stale = try await database.set("wide", to: 3, ifHash: wide.hash, as: .nobody) else {
      return #expect(Bool(false), "a stale hash was accepted")
    }
    _ = try await database.set("wide", to: 4, ifHash: next.hash, as: .nobody)
    #expect(try await database.get("wide", as: .nobody) == 4)
  }

  @Test("Requests that a connection sends after a transaction on a wide node execute after the transaction")
  func order() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("wide")
    let wide = Node.object((0..<30_000).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    _ = try await database.set("wide", to: wide, as: .nobody)
    let client = Client(database)
    let other = Client(database)
    let first = await client.send { $0.set("wide", to: ["n": 1], ifHash: wide.hash, request: $1) }
    let second = await client.send {
      $0.set("wide/n", to: .leaf(.deferred(.increment(.int(1)))), request: $1)
    }
    let third = await client.send { $0.get("wide", request: $1) }
    #expect(await other.set("aside", 1).text == "ok")
    #expect(await client.response(to: first).text == "ok")
    #expect(await client.response(to: second).text == "ok")
    #expect(await client.response(to: third).text == "ok {n:2}")
    #expect(await other.call { $0.get("wide", request: $1) }.text == "ok {n:2}")
  }

  @Test(
    "Operations submitted before a connection closes execute before its onDisconnect writes and the shutdown")
  func end() async throws {
    let store = try MemoryStore()
    let engine = RealtimeEngine(store: store, policy: OpenPolicy())
    let database = try await engine.database("wide")
    let wide = Node.object((0..<30_000).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    _ = try await database.set("wide", to: wide, as: .nobody)
    let client = Client(database)
    await client.call { $0.onDisconnectSet("end", to: 1, request: $1) }
    _ = await client.send { $0.set("wide", to: ["n": 1], ifHash: wide.hash, request: $1) }
    client.connection.close()
    _ = await client.send { $0.set("wide", to: "after the end", request: $1) }
    await engine.shutdown()
    let reopened = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("wide")
    #expect(try await reopened.get("/", as: .nobody) == ["wide": ["n": 1], "end": 1])
  }
}
