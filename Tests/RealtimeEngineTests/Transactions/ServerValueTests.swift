// Tests server values in every position: in transactions, in writes outside connections, as priorities, in
// updates and in onDisconnect operations.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Server values", .timeLimit(.minutes(10)))
struct ServerValueTests {
  private let timestamp = LeafValue.deferred(.timestamp)

  private func open() async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("values")
  }

  /// Whether a leaf is a timestamp between `start` and the current time.
  private func isInstant(_ node: Node, after start: Int64) -> Bool {
    guard case .int(let at)? = node.leafValue else { return false }
    return at >= start && at <= SystemTime.milliseconds()
  }

  @Test("A transaction compares the hash of the stored value, then resolves its server values")
  func transaction() async throws {
    let database = try await open()
    let client = Client(database)
    let start = SystemTime.milliseconds()
    _ = await client.set("n", ["count": 41])
    let node = Node.object(
      [("count", .leaf(.deferred(.increment(.int(1))))), ("at", .leaf(timestamp))],
      priority: .deferred(.timestamp))
    let hash = Node.object([("count", 41)]).hash
    #expect(await client.call { $0.set("n", to: node, ifHash: "stale", request: $1) }.text == "datastale")
    #expect(await client.call { $0.set("n", to: node, ifHash: hash, request: $1) }.text == "ok")
    let written = try await database.get("n", as: .nobody)
    #expect(written.child("count") == 42)
    #expect(isInstant(written.child("at"), after: start))
    // All timestamps of one write are equal, in values and in priorities.
    #expect(written.priority.map { Node.leaf($0.leafValue) } == written.child("at"))
    #expect(await client.call { $0.set("n", to: node, ifHash: hash, request: $1) }.text == "datastale")
    #expect(await client.call { $0.set("n", to: node, ifHash: written.hash, request: $1) }.text == "ok")
    #expect(try await database.get("n/count", as: .nobody) == 43)
  }

  @Test(
    "Writes outside connections and multi-path updates resolve server values; a set returns the resolved value"
  )
  func outside() async throws {
    let database = try await open()
    let start = SystemTime.milliseconds()
    let set = try await database.set("at", to: .leaf(timestamp), as: .nobody)
    guard case .written(let value?) = set else { return #expect(Bool(false), "not written") }
    #expect(isInstant(value, after: start))
    #expect(try await database.get("at", as: .nobody) == value)
    for expected: Node in [2, 4] {
      _ = try await database.update(
        "/", [("a/n", .leaf(.deferred(.increment(.int(2))))), ("b/at", .leaf(timestamp))], as: .nobody)
      #expect(try await database.get("a/n", as: .nobody) == expected)
    }
    #expect(isInstant(try await database.get("b/at", as: .nobody), after: start))
    _ = try await database.set("a/.priority", to: .leaf(timestamp), as: .nobody)
    #expect(isInstant(try await database.get("a/.priority", as: .nobody), after: start))
  }
}
