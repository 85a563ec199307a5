// Tests that an open listen ends with its permission. A permission ends by a new policy, a change of data that the
// decision has read, the passing of time, or the expiry of the caller. No later write is delivered to the listen.

import Access
import Locking
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Permission of open listens", .timeLimit(.minutes(10)))
struct OpenListenTests {
  private let clock = Guarded<Int64>(1_700_000_000_000)

  private func open(_ policy: any AccessPolicy<RealtimeAccess>) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: policy, now: { [clock] in clock.withLock { $0 } })
      .database("listens")
  }

  private func user(_ id: String, expiring seconds: Int64) -> Principal {
    Principal(.user(User(id: id, claims: .none)), expiry: seconds)
  }

  /// Denies reads of a location by everybody.
  private func denying(_ denied: Path) -> ClosurePolicy {
    .when { _, operation, _ in operation.changesData || operation.paths.allSatisfy { !denied.contains($0) } }
  }

  @Test("A new policy ends the listens that it denies before a later write is delivered")
  func policySwap() async throws {
    let database = try await open(OpenPolicy())
    let client = Client(database)
    for path in ["a", "b"] as [Path] { await client.call { $0.listen(path, hash: "", request: $1) } }
    await client.call { $0.listen("a", query: QuerySpec(limit: .first(1)), tag: 7, hash: "", request: $1) }
    _ = await client.drain()
    database.policies.publish(denying("a"))
    _ = try await database.set("a/x", to: 1, as: .nobody)
    _ = try await database.set("b/x", to: 1, as: .nobody)
    await client.call { $0.get("b", request: $1) }
    let received = await client.drain()
    #expect(Set(received.prefix(2)) == ["c a permission_denied", "c a permission_denied #7"])
    #expect(received.dropFirst(2) == ["d b/x 1", "4 ok {x:1}"])
    database.policies.publish(OpenPolicy())
    await client.call { $0.listen("a", hash: "", request: $1) }
    #expect(await client.drain() == ["d a {x:1}", "5 ok"])
    await database.shutdown()
  }

  @Test(
    "A new policy ends the listens that it denies even if no write follows, also in a database without rows")
  func idle() async throws {
    let database = try await open(OpenPolicy())
    let client = Client(database)
    await client.call { $0.listen("a", hash: "", request: $1) }
    _ = await client.drain()
    database.policies.publish(LockedPolicy())
    while await client.received.isEmpty { await Task.yield() }
    #expect(await client.drain() == ["c a permission_denied"])
    #expect(!database.exists)
    await database.shutdown()
  }

  @Test("A write to data that a decision has read ends the listens that depended on it")
  func dependency() async throws {
    let policy = ClosurePolicy.when { principal, operation, view in
      guard case .listen(let path, _) = operation, let user = principal.user else { return true }
      if path == "open" { return try view.leaf(at: "settings/open", .before) == .bool(true) }
      return try view.exists(at: Path("members/\(user.id)"), .before)
    }
    let database = try await open(policy)
    _ = try await database.update(
      "/", [("members/u1", true), ("members/u2", true), ("settings/open", true)], as: .administrator)
    let (first, second) = (Client(database, as: .user("u1")), Client(database, as: .user("u2")))
    for client in [first, second] {
      for path in ["room", "open"] as [Path] { await client.call { $0.listen(path, hash: "", request: $1) } }
      _ = await client.drain()
    }
    // One write ends the membership and changes the room. The former member does not receive the change.
    _ = try await database.update("/", [("members/u1", .empty), ("room/x", 1)], as: .administrator)
    await first.call { $0.get("none", request: $1) }
    await second.call { $0.get("none", request: $1) }
    #expect(await first.drain() == ["c room permission_denied", "3 ok null"])
    #expect(await second.drain() == ["d room/x 1", "3 ok null"])
    // A write causes a new decision only if it changes a fact that a decision has read.
    let count = policy.count
    _ = try await database.set("settings/other", to: 1, as: .administrator)
    _ = try await database.set("members/u3", to: 1, as: .administrator)
    _ = try await database.set("settings", to: ["open": true], as: .administrator)
    #expect(policy.count == count)
    _ = try await database.set("settings", to: .empty, as: .administrator)
    for client in [first, second] {
      await client.call { $0.get("none", request: $1) }
      #expect(await client.drain() == ["c open permission_denied", "4 ok null"])
    }
    await database.shutdown()
  }

  @Test(
    "If a decision about a listen has read the time, the policy decides about the listen again before each push"
  )
  func time() async throws {
    let clock = clock
    let policy = ClosurePolicy { _, operation, view in
      guard case .listen = operation else { return .allowed }
      // The view gives the time of the batch, which is the store's time. So the policy reads the test's clock instead.
      return clock.withLock { $0 } < 1_700_000_000_500
        ? .allow(time: true) : .deny(reason: "too late", time: true)
    }
    let database = try await open(policy)
    let client = Client(database)
    await client.call { $0.listen("a", hash: "", request: $1) }
    _ = await client.set("a", 1)
    clock.withLock { $0 += 1_000 }
    _ = await client.set("a", 2)
    #expect(await client.drain() == ["1 ok", "d a 1", "2 ok", "c a permission_denied", "3 ok"])
    await database.shutdown()
  }

  @Test("An expired caller is notified and acts as nobody; its listens end before a later write is delivered")
  func expiry() async throws {
    let database = try await open(OwnPathPolicy())
    let client = Client(database)
    await client.call { $0.authenticate(user("u1", expiring: 1_700_000_010), request: $1) }
    await client.call { $0.listen("u1", hash: "", request: $1) }
    await client.call { $0.onDisconnectSet("u1/gone", to: true, request: $1) }
    // The client authenticates again with credentials that expire later, so the earlier expiry no longer applies.
    await client.call { $0.authenticate(user("u1", expiring: 1_700_000_020), request: $1) }
    clock.withLock { $0 = 1_700_000_015_000 }
    _ = try await database.set("u1/a", to: 1, as: .administrator)
    _ = await client.call { $0.get("u1", request: $1) }
    _ = await client.drain()
    clock.withLock { $0 = 1_700_000_020_000 }
    _ = try await database.set("u1/a", to: 2, as: .administrator)
    #expect(await client.call { $0.get("u1", request: $1) }.text == "permission_denied")
    #expect(await client.set("u1/a", 3).text == "permission_denied")
    #expect(
      await client.drain() == [
        "ac expired_token", "c u1 permission_denied", "6 permission_denied", "7 permission_denied",
      ])
    await #expect(throws: RealtimeError.expiredToken) {
      try await database.get("u1", as: user("u1", expiring: 1_700_000_020))
    }
    // The onDisconnect write was registered with valid credentials. The server performs it with the rights of the caller
    // who registered it.
    client.connection.close()
    let reader = Client(database, as: .administrator)
    #expect(await reader.call { $0.get("u1", request: $1) }.text == "ok {a:2,gone:true}")
    await database.shutdown()
  }

  @Test("The expiry of credentials takes effect without any request")
  func idleExpiry() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OwnPathPolicy()).database("expiry")
    let client = Client(database)
    let expiry = SystemTime.milliseconds() / 1_000 + 2
    await client.call { $0.authenticate(user("u1", expiring: expiry), request: $1) }
    await client.call { $0.listen("u1", hash: "", request: $1) }
    var events: [String] = []
    while !events.contains("c u1 permission_denied") {
      events += await client.drain()
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(events.suffix(2) == ["ac expired_token", "c u1 permission_denied"])
    await database.shutdown()
  }

  @Test("After a failed commit the policy decides open listens again")
  func failedCommit() async throws {
    let policy = ClosurePolicy.when { _, operation, view in
      guard case .listen = operation else { return true }
      return try view.exists(at: "open", .before)
    }
    let executor = OperationExecutor(policies: PolicySlot(policy), limits: .standard, cacheBytes: 1 << 20)
    let rows = try await MemoryStore().database(named: "x", history: .activeReadersOnly)
    let group = RecordingGroup()
    let connection = ConnectionState(name: "c", caller: .nobody, sink: RecordingSink(group))
    func run(_ action: RealtimeOperation.Action, fromConnection isConnection: Bool, fails: Bool = false)
      async throws
      -> [FanOutStep]
    {
      let operation = RealtimeOperation(
        action, from: isConnection ? .connection(connection, request: 1) : .call(.administrator) { _ in })
      let journal = SessionJournal()
      return try await rows.execute(validating: nil) { writer in
        let steps = try executor.run([operation], in: writer, journal, mayDefer: false).steps
        if fails {
          executor.rollBack([journal])
          throw StoreError.unavailable("test")
        }
        return steps
      }.result
    }
    _ = try await run(.write(.set("open", 1), hash: nil), fromConnection: false)
    let listen = RealtimeOperation.Listen(path: "a", query: .default, tag: nil, hash: "", compoundHash: nil)
    _ = try await run(.listen(listen), fromConnection: true)
    #expect(executor.openListens.undecidedCount == 0)
    await #expect(throws: StoreError.self) {
      _ = try await run(.write(.set("open", .empty), hash: nil), fromConnection: false, fails: true)
    }
    #expect(executor.openListens.undecidedCount == 1)
    #expect(connection.session.listens.count == 1)
    _ = try await run(.decideListens, fromConnection: false)
    #expect(executor.openListens.undecidedCount == 0)
    #expect(connection.session.listens.count == 1)
    _ = try await run(.write(.set("open", .empty), hash: nil), fromConnection: false)
    _ = try await run(.decideListens, fromConnection: false)
    #expect(connection.session.listens.isEmpty)
    #expect(executor.openListens.count == 0)
  }

  @Test("A session ends even if its credentials expire in the same batch")
  func closeAfterExpiry() async throws {
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 1 << 20)
    let rows = try await MemoryStore().database(named: "x", history: .activeReadersOnly)
    let connection = ConnectionState(name: "c", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    let listen = RealtimeOperation.Listen(path: "a", query: .default, tag: nil, hash: "", compoundHash: nil)
    for actions in [[.listen(listen)], [.authenticate(user("u", expiring: 1)), .close]]
      as [[RealtimeOperation.Action]]
    {
      let operations = actions.enumerated().map {
        RealtimeOperation($0.element, from: .connection(connection, request: Int64($0.offset)))
      }
      _ = try await rows.execute(validating: nil) { writer in
        try executor.run(operations, in: writer, SessionJournal(), mayDefer: false).steps
      }
    }
    #expect(connection.session.listens.isEmpty)
    #expect(executor.openListens.count == 0)
  }
}
