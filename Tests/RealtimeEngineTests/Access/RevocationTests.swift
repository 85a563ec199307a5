// Tests that the revocation of credentials ends the authentication of open connections, even if their request to
// authenticate is still in progress.

import Access
import Locking
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Revoked credentials of connections", .timeLimit(.minutes(10)))
struct RevocationTests {
  @Test("A revoked caller is notified and acts as nobody; other connections keep their callers")
  func revocation() async throws {
    let engine = try RealtimeEngine(store: MemoryStore(), policy: OwnPathPolicy())
    let database = try await engine.database("revocations")
    let other = try await engine.database("others")
    _ = try await database.update("/", [("u1/a", 1), ("u2/a", 1)], as: .administrator)
    let (revoked, kept) = (Client(database), Client(database, as: .user("u2")))
    // The database of this connection has no rows.
    let idle = Client(other, as: .user("u1"))
    await revoked.call { $0.authenticate(.user("u1"), request: $1) }
    await revoked.call { $0.listen("u1", hash: "", request: $1) }
    await revoked.call { $0.onDisconnectSet("u1/gone", to: true, request: $1) }
    await kept.call { $0.listen("u2", hash: "", request: $1) }
    await idle.call { $0.listen("u1", hash: "", request: $1) }
    for client in [revoked, kept, idle] { _ = await client.drain() }

    engine.revoke { $0.user?.id == "u1" }
    while await revoked.received.count < 2 { await Task.yield() }
    while await idle.received.count < 2 { await Task.yield() }
    _ = try await database.update("/", [("u1/a", 2), ("u2/a", 2)], as: .administrator)
    #expect(await revoked.set("u1/a", 3).text == "permission_denied")
    #expect(
      await revoked.drain() == ["ac expired_token", "c u1 permission_denied", "4 permission_denied"])
    #expect(await idle.drain() == ["ac expired_token", "c u1 permission_denied"])
    await kept.call { $0.get("none", request: $1) }
    #expect(await kept.drain().first == "d u2/a 2")
    // Further revocations do not notify a connection again.
    engine.revoke { $0.user?.id == "u1" }
    await revoked.call { $0.get("u1", request: $1) }
    #expect(await revoked.drain() == ["5 permission_denied"])
    // The caller was valid at the registration of the write, but is revoked when the policy decides the performed
    // write.
    revoked.connection.close()
    let reader = Client(database, as: .administrator)
    #expect(await reader.call { $0.get("u1", request: $1) }.text == "ok {a:2}")
    await engine.shutdown()
  }

  @Test(
    "The policy decides a revoked caller's onDisconnect writes as writes of nobody; other callers keep their rights"
  )
  func onDisconnect() async throws {
    let engine = try RealtimeEngine(store: MemoryStore(), policy: OwnPathPolicy())
    let database = try await engine.database("presence")
    let (revoked, kept) = (Client(database), Client(database))
    for (client, id) in [(revoked, "u1"), (kept, "u2")] {
      await client.call { $0.authenticate(.user(id), request: $1) }
      await client.call { $0.onDisconnectSet(Path(keys: [ChildKey(id)]), to: true, request: $1) }
    }
    // The end of the session may be executed before or after the end of its authentication.
    engine.revoke { $0.user?.id == "u1" }
    for client in [revoked, kept] { client.connection.close() }
    let reader = Client(database, as: .administrator)
    #expect(await reader.call { $0.get("/", request: $1) }.text == "ok {u2:true}")
    await engine.shutdown()
  }

  @Test(
    "A session of an earlier process whose caller is revoked ends with the permissions of nobody",
    arguments: [false, true])
  func leftoverSession(isStored: Bool) async throws {
    let store = try MemoryStore()
    let first = RealtimeEngine(store: store, policy: OwnPathPolicy())
    let database = try await first.database("leftover")
    for id in ["u1", "u2"] {
      let client = Client(database)
      await client.call { $0.authenticate(.user(id), request: $1) }
      await client.call { $0.onDisconnectSet(Path(keys: [ChildKey(id)]), to: true, request: $1) }
    }
    await first.shutdown()
    let second = RealtimeEngine(store: store, policy: OwnPathPolicy())
    if isStored {
      second.revokeStored { $0.user?.id == "u1" }
    } else {
      second.revoke { $0.user?.id == "u1" }
    }
    let reader = Client(try await second.database("leftover"), as: .administrator)
    #expect(await reader.call { $0.get("/", request: $1) }.text == "ok {u2:true}")
    await second.shutdown()
  }

  @Test(
    "Credentials that are revoked between their verification and the execution of the request are not accepted"
  )
  func race() async throws {
    let engine = try RealtimeEngine(store: MemoryStore(), policy: OwnPathPolicy())
    let database = try await engine.database("races")
    engine.revoke { $0.user?.id == "u1" }
    let connected = Client(database, as: .user("u1"))
    #expect(await connected.call { $0.listen("u1", hash: "", request: $1) }.text == "permission_denied")
    #expect(await connected.drain() == ["ac expired_token", "1 permission_denied"])
    let client = Client(database)
    #expect(await client.call { $0.authenticate(.user("u1"), request: $1) }.text == "expired_token")
    #expect(await client.call { $0.get("u1", request: $1) }.text == "permission_denied")
    // Databases that are opened later have the same revocations.
    let later = Client(try await engine.database("later"), as: .user("u1"))
    #expect(await later.call { $0.get("u1", request: $1) }.text == "permission_denied")
    await engine.shutdown()
  }

  @Test("After a failed commit a revocation can be repeated")
  func failedCommit() async throws {
    let revocations = RevocationCheck()
    let executor = OperationExecutor(
      policies: PolicySlot(OwnPathPolicy()), revocations: revocations, limits: .standard,
      cacheBytes: 1 << 20)
    let rows = try await MemoryStore().database(named: "x", history: .activeReadersOnly)
    let group = RecordingGroup()
    let connection = ConnectionState(name: "c", caller: .user("u1"), sink: RecordingSink(group))
    revocations.set { $0.user?.id == "u1" }
    for fails in [true, false] {
      let journal = SessionJournal()
      let operation = RealtimeOperation(.revoke([connection]), from: .call(.administrator) { _ in })
      _ = try await rows.execute(validating: nil) { writer in
        let result = try executor.run([operation], in: writer, journal, mayDefer: false)
        #expect(connection.session.caller == .nobody)
        let notified = result.steps.filter { if case .authRevoked = $0 { true } else { false } }
        #expect(notified.count == 1)
        if fails { executor.rollBack([journal]) }
      }
      #expect(connection.session.caller == (fails ? .user("u1") : .nobody))
    }
  }
}
