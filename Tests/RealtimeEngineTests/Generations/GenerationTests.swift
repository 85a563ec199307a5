// Tests that readers see a large subtree replaced or removed atomically, even if the server crashes during the
// replacement. No garbage rows (rows of replaced or unfinished values) may remain. A large value is staged as a
// generation: rows that stay invisible until one commit installs them. Replaced rows become a pending delete, which the
// cleaner clears in the background.

import Access
import Locking
import EmbeddedStore
import Foundation
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Large subtrees", .timeLimit(.minutes(10)))
struct GenerationTests {
  private func wide(_ count: Int, _ value: Int64 = 0) -> Node {
    .object((0..<count).map { (ChildKey("k\($0)"), Node.object([("v", .leaf(.int(value + Int64($0))))])) })
  }

  private func open(
    _ store: any OrderedStore, _ staging: StagingLimits = .standard,
    _ policy: any AccessPolicy<RealtimeAccess> = OpenPolicy()
  ) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: policy, cacheBytes: 2_000, staging: staging)
      .database("large")
  }

  /// Whether the store has no pending deletes (`x`) and no generations (`g`, `n`).
  private func hasNoGarbage(_ store: any OrderedStore) async throws -> Bool {
    let counts = try await rowCounts(store, "large")
    return counts["x"] == nil && counts["g"] == nil && counts["n"] == nil
  }

  @Test("Removing many rows writes few rows, is visible immediately and leaves no rows")
  func remove() async throws {
    let store = try MemoryStore()
    let database = try await open(store)
    let watcher = Client(database)
    _ = try await database.set("keep", to: 1, as: .nobody)
    for part in 0..<8 { _ = try await database.set(Path("big/\(part)"), to: wide(1_000), as: .nobody) }
    await watcher.call { $0.listen("big/3/k7", hash: "", request: $1) }
    _ = await watcher.drain()
    _ = try await database.set("big", to: .empty, as: .nobody)
    #expect(try await database.get("/", as: .nobody) == ["keep": 1])
    await watcher.call { $0.get("none", request: $1) }
    #expect(await watcher.drain() == ["d big/3/k7 null", "2 ok null"])
    #expect(try await eventually { try await hasNoGarbage(store) })
    #expect(try await rowCounts(store, "large")["t"] == 1)
  }

  @Test("A write to a location persists even if the cleaner still has to clear the location's old rows")
  func writeOverPendingDelete() async throws {
    let store = try MemoryStore()
    let database = try await open(store, .tiny)
    for round in 0..<20 {
      _ = try await database.set("big", to: wide(50, Int64(round)), as: .nobody)
      _ = try await database.set("big/k1", to: .empty, as: .nobody)
      _ = try await database.set("big", to: .empty, as: .nobody)
      _ = try await database.set("big/k3/v", to: .leaf(.int(Int64(round))), as: .nobody)
    }
    let expected: Node = ["big": ["k3": ["v": 19]]]
    #expect(try await database.get("/", as: .nobody) == expected)
    #expect(
      try await eventually {
        let counts = try await rowCounts(store, "large")
        return counts["x"] == nil && (counts["t"] ?? 0) + (counts["n"] ?? 0) == 1
      })
    #expect(try await open(store).get("/", as: .nobody) == expected)
  }

  @Test("A large write is atomic for readers and listeners")
  func atomic() async throws {
    let store = try MemoryStore()
    let database = try await open(store, .tiny)
    let old = wide(100)
    let new = wide(120, 1_000)
    _ = try await database.set("a/big", to: old, as: .nobody)
    let watcher = Client(database)
    await watcher.call { $0.listen("a", hash: "", request: $1) }
    async let written = database.set("a/big", to: new, as: .nobody)
    var seen = 0
    while true {
      let node = try await database.get("a/big", as: .nobody)
      #expect(node == old || node == new)
      seen += 1
      if node == new { break }
    }
    #expect(seen > 1, "the write finished before the first read")
    _ = try await written
    await watcher.call { $0.get("none", request: $1) }
    let pushes = await watcher.drain().filter { $0.hasPrefix("d") }
    #expect(pushes == ["d a {big:\(old.text)}", "d a/big \(new.text)"])
  }

  @Test("Requests of one connection keep their order around a large write; other connections overtake it")
  func order() async throws {
    let database = try await open(MemoryStore(), .tiny)
    let phone = Client(database)
    let other = Client(database)
    let requests = [
      await phone.send { $0.set("big/k1", to: "before", request: $1) },
      await phone.send { $0.set("big", to: wide(300), request: $1) },
      await phone.send { $0.set("big/k2", to: "after", request: $1) },
      await phone.send { $0.get("big/k1", request: $1) },
    ]
    #expect(await other.set("small", 1).text == "ok")
    #expect(try await database.get("big/k2", as: .nobody).isEmpty, "a small write waited for a large one")
    for request in requests.dropLast() { #expect(await phone.response(to: request).text == "ok") }
    #expect(await phone.response(to: requests[3]).text == "ok {v:1}")
    let node = try await database.get("big", as: .nobody)
    #expect(node == wide(300).setting("k2", to: "after"))
  }

  /// Creates `count` subtrees with a generation each, and limits that let a commit replace at most eight of
  /// them.
  private func createGenerations(
    _ count: Int, in store: any OrderedStore
  ) async throws -> (RealtimeDatabase, StagingLimits) {
    var staging = StagingLimits.tinyRemovals
    staging.maximumNumbersPerCommit = 8
    let database = try await open(store, staging)
    for round in 0..<2 {
      for part in 0..<count {
        let value: Node = ["a": .leaf(.int(Int64(round))), "b": 1]
        _ = try await database.set(Path("docs/k\(part)"), to: value, as: .nobody)
      }
    }
    #expect(try await rowCounts(store, "large")["g"] == count)
    return (database, staging)
  }

  @Test("One commit removes or replaces a location that contains many generations")
  func nestedGenerations() async throws {
    for value in [Node.empty, 7, wide(3)] {
      let store = try MemoryStore()
      let (database, _) = try await createGenerations(20, in: store)
      _ = try await database.set("docs", to: value, as: .nobody)
      #expect(try await database.get("docs", as: .nobody) == value)
      _ = try await database.set("docs", to: .empty, as: .nobody)
      #expect(try await eventually { try await hasNoGarbage(store) })
    }
  }

  @Test(
    "onDisconnect writes that replace more generations than one commit allows take several commits",
    arguments: [false, true])
  func largeSessionEnd(closes: Bool) async throws {
    let store = try MemoryStore()
    let (first, staging) = try await createGenerations(20, in: store)
    var database = first
    let phone = Client(database)
    for part in 0..<20 {
      await phone.call {
        $0.onDisconnectSet(Path("docs/k\(part)"), to: .leaf(.int(Int64(part))), request: $1)
      }
    }
    if closes { phone.connection.close() } else { database = try await open(store, staging) }
    let expected = Node.object((0..<20).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    #expect(await Client(database).call { $0.get("docs", request: $1) }.text == "ok \(expected.text)")
  }

  @Test("An onDisconnect value that cannot be written does not keep the database from opening")
  func unwritableOnDisconnect() async throws {
    let store = try MemoryStore()
    var (database, staging) = try await createGenerations(2, in: store)
    let (phone, other) = (Client(database), Client(database))
    await phone.call { $0.onDisconnectSet("docs", to: "gone", request: $1) }
    await other.call { $0.onDisconnectSet("other", to: 1, request: $1) }
    staging.maximumNumbersPerCommit = 0
    let reports = Guarded<[String]>([])
    database = try await RealtimeEngine(
      store: store, policy: OpenPolicy(), cacheBytes: 2_000, staging: staging,
      report: { report in reports.withLock { $0.append(report) } }
    ).database("large")
    let expected: Node = ["docs": ["k0": ["a": 1, "b": 1], "k1": ["a": 1, "b": 1]], "other": 1]
    #expect(try await database.get("/", as: .nobody) == expected)
    #expect(reports.withLock { $0.count } == 1)
    database = try await open(store)
    #expect(try await database.get("/", as: .nobody) == ["docs": "gone", "other": 1])
  }

  @Test("Server values inside a large write are resolved when the write commits")
  func deferred() async throws {
    let database = try await open(MemoryStore(), .tiny)
    _ = try await database.set("big/n", to: 40, as: .nobody)
    let increment = Node.leaf(.deferred(.increment(.int(2))))
    let node = wide(50).setting("n", to: increment).setting("p/q", to: "x")
      .setting("p/.priority", to: .leaf(.deferred(.timestamp)))
    let before = SystemTime.milliseconds()
    guard case .written(let written) = try await database.set("big", to: node, as: .nobody) else {
      return #expect(Bool(false), "not written")
    }
    let read = try await database.get("big", as: .nobody)
    #expect(read == written)
    #expect(read.child("n") == 42)
    #expect(read.child("k7") == ["v": 7])
    guard case .number(let time)? = read.child("p").priority else {
      return #expect(Bool(false), "no priority")
    }
    #expect(Int64(time) >= before)
  }

  @Test("An update with large and small values is applied as one change")
  func update() async throws {
    let store = try MemoryStore()
    let database = try await open(store, .tiny)
    _ = try await database.set("/", to: ["a": wide(60), "b": 1, "c": 2], as: .nobody)
    let watcher = Client(database)
    await watcher.call { $0.listen("/", hash: "", request: $1) }
    _ = await watcher.drain()
    let changes: [(Path, Node)] = [("a", wide(80)), ("b", nil), ("d/e", wide(70)), ("c", 3)]
    _ = try await database.update("/", changes, as: .nobody)
    #expect(
      try await database.get("/", as: .nobody) == ["a": wide(80), "c": 3, "d": ["e": wide(70)]])
    await watcher.call { $0.get("none", request: $1) }
    #expect(await watcher.drain().filter { $0.hasPrefix("m") }.count == 1)
  }

  @Test("Writes that are denied or have a stale hash leave no rows")
  func refused() async throws {
    let store = try MemoryStore()
    let database = try await open(store, .tiny, OwnPathPolicy())
    let user = Principal.user("u1")
    _ = try await database.set("u1", to: 1, as: user)
    await #expect(throws: RealtimeError.permissionDenied) {
      _ = try await database.set("u2", to: wide(50), as: user)
    }
    guard case .stale = try await database.set("u1", to: wide(50), ifHash: "other", as: user) else {
      return #expect(Bool(false), "a stale write was carried out")
    }
    #expect(try await database.get("u1", as: user) == 1)
    guard case .written = try await database.set("u1", to: wide(50), ifHash: Node(1).hash, as: user)
    else { return #expect(Bool(false), "a write with the right hash was refused") }
    #expect(try await database.get("u1", as: user) == wide(50))
    _ = try await database.set("u1", to: .empty, as: user)
    #expect(try await eventually { try await hasNoGarbage(store) })
  }

  @Test(
    "After a crash during a large write, the old or the new value is stored, and no garbage rows remain",
    arguments: 0..<12)
  func crash(seed: Int) async throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let old = wide(60)
    let new = wide(80, 500)
    let isRemoval = seed % 3 == 0
    var store = try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
    let database = try await open(store, .tiny)
    _ = try await database.set("big", to: old, as: .nobody)
    let writing = Task {
      guard let result = try? await database.set("big", to: isRemoval ? .empty : new, as: .nobody),
        case .written = result
      else { return false }
      return true
    }
    // Crashes before, during or after the write, depending on the seed and the machine's speed.
    try await Task.sleep(for: .milliseconds(seed * 4))
    // Closing only the store simulates a crash: the engine gets no chance to clean up.
    try await store.close()
    let isAcknowledged = await writing.value
    store = try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
    let reopened = try await open(store, .tiny)
    let found = try await reopened.get("big", as: .nobody)
    #expect(found == old || found == (isRemoval ? .empty : new))
    if isAcknowledged { #expect(found != old) }
    #expect(
      try await eventually {
        let counts = try await rowCounts(store, "large")
        let rows = (counts["t"] ?? 0) + (counts["n"] ?? 0)
        return counts["x"] == nil && rows == (found == old ? 60 : found.childCount)
      })
    #expect(try await reopened.get("big", as: .nobody) == found)
    try await store.close()
  }
}
