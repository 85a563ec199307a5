// Tests the engine on disk. Every acknowledged write survives a restart, and the next start ends the sessions of a
// crashed server. The stored rows are the only state that a start needs.

import Access
import EmbeddedStore
import Foundation
import OrderedStore
import RandomModels
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("The Realtime Database on disk", .timeLimit(.minutes(10)))
struct RealtimeRestartTests {
  private func directory() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)").path
  }

  private func open(_ path: String) async throws -> EmbeddedStore {
    try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
  }

  @Test("Random programs leave the same tree after every restart", arguments: 0..<3)
  func restart(seed: Int) async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    var generator = RandomNodes(seed: UInt64(500 + seed))
    var model = Node.empty
    for _ in 0..<4 {
      let store = try await open(path)
      let engine = RealtimeEngine(
        store: store, policy: OpenPolicy(), cacheBytes: seed == 0 ? 2_000 : 1 << 20)
      let database = try await engine.database("disk")
      #expect(try await database.get("/", as: .nobody) == model)
      for _ in 0..<60 {
        let at = generator.below(5) == 0 ? generator.path().child(.priority) : generator.path()
        let node = at.isPriority ? Node.leaf(.int(Int64(generator.below(3)))) : generator.node()
        _ = try await database.set(at, to: node, as: .nobody)
        model = model.setting(at, to: node)
      }
      await engine.shutdown()
      try await store.close()
    }
  }

  @Test("onDisconnect operations of a crashed server run once, at the next start, with their callers' rights")
  func presence() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    var store = try await open(path)
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("presence")
    let phone = Client(database)
    await phone.call { $0.onDisconnectSet("on", to: false, request: $1) }
    await phone.call {
      $0.onDisconnectUpdate("/", [("n", .leaf(.deferred(.increment(.int(1)))))], request: $1)
    }
    _ = await phone.set("on", true)
    // The connection is never closed: the process has crashed.
    try await store.close()
    for _ in 0..<2 {
      store = try await open(path)
      let engine = RealtimeEngine(store: store, policy: OpenPolicy())
      #expect(try await engine.database("presence").get("/", as: .nobody) == ["on": false, "n": 1])
      #expect(try await engine.namespaces() == ["presence"])
      await engine.shutdown()
      try await store.close()
    }
  }

  @Test("After the store stops writing, writes fail as unavailable and reads continue")
  func closedStore() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try await open(path)
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("gone")
    let client = Client(database)
    _ = await client.set("a", 1)
    try await store.close()
    #expect(await client.set("a", 2).text == "unavailable")
    await #expect(throws: RealtimeError.self) { _ = try await database.get("a", as: .nobody) }
  }

  @Test("Concurrent writes are all acknowledged and stored", arguments: [8])
  func concurrent(clients: Int) async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try await open(path)
    let engine = RealtimeEngine(store: store, policy: OpenPolicy())
    let database = try await engine.database("many")
    await withTaskGroup(of: Void.self) { group in
      for c in 0..<clients {
        group.addTask {
          let client = Client(database)
          for i in 0..<25 {
            await client.call { $0.set(Path("c\(c)/\(i)"), to: .leaf(.int(Int64(i))), request: $1) }
            await client.call { $0.set("sum", to: .leaf(.deferred(.increment(.int(1)))), request: $1) }
          }
        }
      }
    }
    let root = try await database.get("/", as: .nobody)
    #expect(root.child("sum") == .leaf(.int(Int64(clients * 25))))
    for c in 0..<clients { #expect(root.child(ChildKey("c\(c)")).childCount == 25) }
    await engine.shutdown()
    try await store.close()
  }
}
