// A commit that is refused leaves no trace: what its operations had done to sessions is taken back before they run again.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Batches that fail and run again", .timeLimit(.minutes(10)))
struct FailedPassTests {
  private let user = Caller(.user(id: "u1", claims: .empty))

  private func open(_ store: any OrderedStore) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: OwnPathPolicy(), staging: .none).database("passes")
  }

  /// Submits operations so that they share a batch with one that is too large for a commit.
  private func withTooLargeNeighbour(_ database: RealtimeDatabase, _ submit: () async -> Void) async throws {
    try await HugeSubtree.fill(database)
    let administrator = Client(database, as: .administrator)
    // While this is on its way to the disk, what follows gathers.
    let slow = Node.leaf(.string(String(repeating: "x", count: 9 << 20)))
    _ = await administrator.send { $0.set("slow", to: slow, request: $1) }
    await submit()
    #expect(await administrator.set("huge", .empty).text == "write_too_big")
  }

  @Test("A change of caller still ends the listens it must")
  func authenticate() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database, as: user)
    #expect(await phone.ask { $0.listen("u1", hash: "", request: $1) }.text == "ok")
    _ = await phone.drain()
    var request: Int64 = 0
    try await withTooLargeNeighbour(database) {
      request = await phone.send { $0.authenticate(.anonymous, request: $1) }
    }
    #expect(await phone.answer(to: request).text == "ok")
    _ = try await database.set("u1/secret", to: 1, as: .administrator)
    #expect(await phone.ask { $0.get("u1", request: $1) }.text == "permission_denied")
    #expect(await phone.drain() == ["c u1 permission_denied", "2 ok", "3 permission_denied"])
  }

  @Test("A session that was taken over is told that it has ended, and nothing more")
  func takeOver() async throws {
    let database = try await open(MemoryStore())
    let old = Client(database, as: .administrator)
    await old.ask { $0.onDisconnectSet("state", to: "gone", request: $1) }
    await old.ask { $0.listen("news", hash: "", request: $1) }
    _ = await old.drain()
    try await withTooLargeNeighbour(database) {
      database.takeOver(session: old.connection.session)
    }
    let other = Client(database, as: .administrator)
    _ = await other.set("news", 1)
    #expect(await other.ask { $0.get("state", request: $1) }.text == "ok 'gone'")
    // Whatever the old connection is told now would have come before this turn of its inbox.
    for _ in 0..<1_000 { await Task.yield() }
    #expect(await old.drain() == ["ended"])
  }

  @Test("What was registered for a session's end keeps its caller's rights in a later process")
  func onDisconnect() async throws {
    let store = try MemoryStore()
    let database = try await open(store)
    let phone = Client(database, as: user)
    var request: Int64 = 0
    try await withTooLargeNeighbour(database) {
      request = await phone.send { $0.onDisconnectSet("u1/x", to: 1, request: $1) }
    }
    #expect(await phone.answer(to: request).text == "ok")
    let second = try await open(store)
    #expect(try await second.get("u1/x", as: .administrator) == 1)
  }
}
