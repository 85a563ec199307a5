// Tests that acknowledged onDisconnect operations always run: a session registers no more than a commit can
// write, and may replace values of any size.

import Access
import EmbeddedStore
import Foundation
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Bounds of onDisconnect", .timeLimit(.minutes(10)))
struct DisconnectBoundTests {
  private func open(_ store: any OrderedStore, _ limits: RealtimeLimits = .standard) async throws
    -> RealtimeDatabase
  {
    try await RealtimeEngine(store: store, policy: OpenPolicy(), limits: limits).database("bounds")
  }

  @Test(
    "All acknowledged onDisconnect operations run, even after a later operation was rejected, and after a crash",
    arguments: [false, true])
  func bytes(closes: Bool) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)"
    )
    .path
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var store = try await EmbeddedStore.open(directory: directory, EmbeddedOptions(blockCacheBytes: 1 << 20))
    var database = try await open(store)
    let phone = Client(database)
    var acknowledged: [Path] = []
    var refusal = "none"
    for i in 0..<8 {
      let path = HugeSubtree.path.child(ChildKey("s\(i)"))
      let answer = await phone.call { $0.onDisconnectSet(path, to: HugeSubtree.leaves(400), request: $1) }
      if answer.text == "ok" { acknowledged.append(path) } else { refusal = answer.text }
    }
    #expect(refusal == "write_too_big")
    #expect(!acknowledged.isEmpty)
    if closes {
      phone.connection.close()
      #expect(await Client(database).call { $0.get("none", request: $1) }.text == "ok null")
    }
    // Closing only the store simulates a crash: the stored session has not ended.
    try await store.close()
    store = try await EmbeddedStore.open(directory: directory, EmbeddedOptions(blockCacheBytes: 1 << 20))
    database = try await open(store)
    for path in acknowledged {
      let node = try await database.get(path, as: .nobody)
      #expect(node.childCount == 400, "\(path.last?.text ?? "") was acknowledged and not performed")
    }
    try await store.close()
  }

  @Test(
    "An onDisconnect operation can replace a subtree too large for one commit to remove",
    arguments: [false, true])
  func hugeRemoval(closes: Bool) async throws {
    let store = try MemoryStore()
    var database = try await open(store)
    try await HugeSubtree.fill(database)
    _ = try await database.set("n", to: 1, as: .nobody)
    let phone = Client(database)
    await phone.call { $0.onDisconnectSet("huge", to: "gone", request: $1) }
    await phone.call {
      $0.onDisconnectSet("n", to: .leaf(.deferred(.increment(.int(1)))), request: $1)
    }
    if closes { phone.connection.close() } else { database = try await open(store) }
    let reader = Client(database)
    #expect(await reader.call { $0.get("/", request: $1) }.text == "ok {huge:'gone',n:2}")
  }
}
