// Tests batches whose commit the store rejects because one operation is too large. A batch is a group of operations that
// share a commit. After the rejection the engine rolls back the changes to sessions, and runs the operations again.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Rejected batches", .timeLimit(.minutes(10)))
struct FailedBatchTests {
  private let user = Principal.user("u1")

  private func open(_ store: any OrderedStore) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: OwnPathPolicy(), staging: .none).database("passes")
  }

  /// Submits operations so that they share a batch with an operation that is too large for a commit.
  private func withTooLargeNeighbour(_ database: RealtimeDatabase, _ submit: () async -> Void) async throws {
    try await HugeSubtree.fill(database)
    let administrator = Client(database, as: .administrator)
    // This large write syncs slowly, so the operations after it gather in one batch.
    let slow = Node.leaf(.string(String(repeating: "x", count: 9 << 20)))
    _ = await administrator.send { $0.set("slow", to: slow, request: $1) }
    await submit()
    #expect(await administrator.set("huge", .empty).text == "write_too_big")
  }

  @Test("When a rejected batch runs again, its change of a caller still ends the denied listens")
  func authenticate() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database, as: user)
    #expect(await phone.call { $0.listen("u1", hash: "", request: $1) }.text == "ok")
    _ = await phone.drain()
    var request: Int64 = 0
    try await withTooLargeNeighbour(database) {
      request = await phone.send { $0.authenticate(.nobody, request: $1) }
    }
    #expect(await phone.response(to: request).text == "ok")
    _ = try await database.set("u1/secret", to: 1, as: .administrator)
    #expect(await phone.call { $0.get("u1", request: $1) }.text == "permission_denied")
    #expect(await phone.drain() == ["c u1 permission_denied", "2 ok", "3 permission_denied"])
  }

  @Test(
    "A session that is taken over in a rejected batch is notified once of its end, and receives nothing more")
  func takeOver() async throws {
    let database = try await open(MemoryStore())
    let old = Client(database, as: .administrator)
    await old.call { $0.onDisconnectSet("state", to: "gone", request: $1) }
    await old.call { $0.listen("news", hash: "", request: $1) }
    _ = await old.drain()
    try await withTooLargeNeighbour(database) {
      database.takeOver(session: old.connection.session)
    }
    let other = Client(database, as: .administrator)
    _ = await other.set("news", 1)
    #expect(await other.call { $0.get("state", request: $1) }.text == "ok 'gone'")
    // Gives the old connection's inbox time to receive further outputs.
    for _ in 0..<1_000 { await Task.yield() }
    #expect(await old.drain() == ["ended"])
  }

  @Test(
    "After a restart an onDisconnect write from a rejected batch is performed with the rights of its caller")
  func onDisconnect() async throws {
    let store = try MemoryStore()
    let database = try await open(store)
    let phone = Client(database, as: user)
    var request: Int64 = 0
    try await withTooLargeNeighbour(database) {
      request = await phone.send { $0.onDisconnectSet("u1/x", to: 1, request: $1) }
    }
    #expect(await phone.response(to: request).text == "ok")
    let second = try await open(store)
    #expect(try await second.get("u1/x", as: .administrator) == 1)
  }
}
