// Tests onDisconnect operations: when they run, which operations replace earlier operations, and that each runs exactly
// once.

import Access
import JSON
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("onDisconnect", .timeLimit(.minutes(10)))
struct OnDisconnectTests {
  private func open(_ store: any OrderedStore, _ policy: any AccessPolicy<RealtimeAccess> = OpenPolicy())
    async throws
    -> RealtimeDatabase
  {
    try await RealtimeEngine(store: store, policy: policy).database("presence")
  }

  /// Returns the value at a path after all earlier operations.
  private func value(_ database: RealtimeDatabase, _ path: Path = "/") async throws -> String {
    try await node(database, path).text
  }

  /// Reads the value after all operations that were submitted before, like a read on a connection.
  private func node(_ database: RealtimeDatabase, _ path: Path) async throws -> Node {
    let client = Client(database, as: .administrator)
    guard case .value(let node) = await client.call({ $0.get(path, request: $1) }) else {
      throw RealtimeError(.failure, "no value")
    }
    return node
  }

  @Test("Operations run when the connection closes, and other clients receive their changes")
  func close() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    let watcher = Client(database)
    await phone.call { $0.onDisconnectSet("state/u1/on", to: false, request: $1) }
    _ = await phone.set("state/u1", ["on": true])
    await watcher.call { $0.listen("state", hash: "", request: $1) }
    _ = await watcher.drain()
    phone.connection.close()
    phone.connection.close()
    await watcher.call { $0.get("none", request: $1) }
    #expect(await watcher.drain() == ["d state/u1/on false", "2 ok null"])
  }

  @Test("All operations of a session are performed as one write")
  func atomic() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    let watcher = Client(database)
    _ = await phone.set("a", ["x": 1, "y": 1, "z": 1])
    await phone.call { $0.onDisconnectUpdate("a", [("x", 2), ("y", nil)], request: $1) }
    await phone.call { $0.onDisconnectSet("b", to: 5, request: $1) }
    await watcher.call { $0.listen("/", hash: "", request: $1) }
    _ = await watcher.drain()
    phone.connection.close()
    await watcher.call { $0.get("none", request: $1) }
    #expect(await watcher.drain() == ["m  {a/x:2,a/y:null,b:5}", "2 ok null"])
  }

  @Test("Timestamps have the time of the disconnect, not of the registration")
  func timestamp() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    await phone.call { $0.onDisconnectSet("at", to: .leaf(.deferred(.timestamp)), request: $1) }
    await phone.call { $0.onDisconnectSet("n", to: .leaf(.deferred(.increment(.int(1)))), request: $1) }
    _ = await phone.set("n", 41)
    let before = SystemTime.milliseconds()
    phone.connection.close()
    guard case .int(let at)? = try await node(database, "at").leafValue else {
      return #expect(Bool(false), "no timestamp")
    }
    #expect(at >= before)
    #expect(try await value(database, "n") == "42")
  }

  @Test(
    "A set replaces the operations at and below its path; a cancel removes the operations at and below its path"
  )
  func supersede() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    await phone.call { $0.onDisconnectSet("a/b/c", to: 1, request: $1) }
    await phone.call { $0.onDisconnectSet("a/b", to: ["d": 2], request: $1) }
    await phone.call { $0.onDisconnectSet("a/b/e", to: 3, request: $1) }
    await phone.call { $0.onDisconnectSet("k/x", to: 1, request: $1) }
    await phone.call { $0.onDisconnectSet("k/y", to: 1, request: $1) }
    await phone.call { $0.onDisconnectSet("kk", to: 1, request: $1) }
    await phone.call { $0.onDisconnectCancel("k", request: $1) }
    phone.connection.close()
    #expect(try await value(database) == "{a:{b:{d:2,e:3}},kk:1}")
  }

  @Test("Operations below a registered value are applied to the value in key order, not in byte order")
  func folding() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    let ranked: Node = ["1": true]
    for (path, rest) in [("a", "-b"), ("b", "2")] as [(Path, RealtimeModel.ChildKey)] {
      let value = ranked.setting(Path(keys: [.priority]), to: 1)
      await phone.call { $0.onDisconnectSet(path, to: value, request: $1) }
      await phone.call { $0.onDisconnectSet(path.child(rest), to: 2, request: $1) }
      await phone.call { $0.onDisconnectSet(path.child("1"), to: nil, request: $1) }
    }
    phone.connection.close()
    // The key "1" precedes "-b" and "2" in key order, but follows "-b" in byte order. Removing "1" first
    // makes the value empty, which drops its priority.
    #expect(try await value(database) == "{a:{-b:2},b:{2:2}}")
  }

  @Test("Cancelling a path inside a registered value keeps all other parts of the value registered")
  func cancelBelow() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    _ = await phone.set("st", ["on": true, "at": 0, "other": 1])
    _ = await phone.set("deep", ["a": ["b": ["x": 1, "y": 1], "c": 1], "d": 1])
    _ = await phone.set("gone", ["a": 1, "b": 2])
    await phone.call { $0.onDisconnectSet("st", to: ["on": false, "at": 1], request: $1) }
    await phone.call { $0.onDisconnectCancel("st/on", request: $1) }
    await phone.call { $0.onDisconnectSet("deep", to: ["a": ["b": ["x": 2], "c": 2]], request: $1) }
    await phone.call { $0.onDisconnectSet("deep/a/b/y", to: 2, request: $1) }
    await phone.call { $0.onDisconnectSet("deep/e", to: 2, request: $1) }
    await phone.call { $0.onDisconnectCancel("deep/a/b/x", request: $1) }
    // The cancelled path is below a registered removal. The complete removal is cancelled, as clients do,
    // because they do not know the location's children.
    await phone.call { $0.onDisconnectSet("gone", to: .empty, request: $1) }
    await phone.call { $0.onDisconnectCancel("gone/a", request: $1) }
    // The cancelled path is below a registered leaf. The leaf remains registered, because it has no
    // descendants.
    await phone.call { $0.onDisconnectSet("leaf", to: 5, request: $1) }
    await phone.call { $0.onDisconnectCancel("leaf/a", request: $1) }
    phone.connection.close()
    #expect(
      try await value(database)
        == "{deep:{a:{b:{x:1,y:2},c:2},d:1,e:2},gone:{a:1,b:2},leaf:5,st:{at:1,on:true,other:1}}")
  }

  @Test(
    "After a cancel inside a registered value, each part that remains registered counts towards the limit")
  func cancelBelowCounts() async throws {
    var limits = RealtimeLimits.standard
    limits.onDisconnectsPerConnection = 3
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy(), limits: limits)
      .database("presence")
    let phone = Client(database)
    await phone.call { $0.onDisconnectSet("a", to: ["v": 1, "w": 1, "x": 1, "y": 1, "z": 1], request: $1) }
    #expect(await phone.call { $0.onDisconnectCancel("a/z", request: $1) }.text == "failure")
    await phone.call { $0.onDisconnectSet("a", to: ["x": 1, "y": 1, "z": 1], request: $1) }
    #expect(await phone.call { $0.onDisconnectCancel("a/z", request: $1) }.text == "ok")
    #expect(await phone.call { $0.onDisconnectSet("b", to: 1, request: $1) }.text == "ok")
    #expect(await phone.call { $0.onDisconnectSet("c", to: 1, request: $1) }.text == "failure")
    await phone.call { $0.onDisconnectCancel("/", request: $1) }
    #expect(await phone.call { $0.onDisconnectSet("c", to: 1, request: $1) }.text == "ok")
    phone.connection.close()
    #expect(try await value(database) == "{c:1}")
  }

  @Test(
    "A cancel splits the part that a later operation has registered, not the part that this operation replaced"
  )
  func cancelBelowOthers() async throws {
    var limits = RealtimeLimits.standard
    limits.onDisconnectsPerConnection = 3
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy(), limits: limits)
      .database("presence")
    let phone = Client(database)
    let wide = Node.object((0..<20).map { (ChildKey("k\($0)"), 1) })
    await phone.call { $0.onDisconnectSet("a", to: ["b": wide, "c": 1], request: $1) }
    #expect(await phone.call { $0.onDisconnectCancel("a/b/k1", request: $1) }.text == "failure")
    await phone.call { $0.onDisconnectSet("a/b", to: ["x": 1, "y": 2], request: $1) }
    #expect(await phone.call { $0.onDisconnectCancel("a/b/x", request: $1) }.text == "ok")
    phone.connection.close()
    #expect(try await value(database) == "{a:{b:{y:2},c:1}}")
  }

  @Test("A session that is taken over before its first request ends, and its later requests are ignored")
  func takeOverUnused() async throws {
    let database = try await open(MemoryStore())
    let (old, new) = (Client(database), Client(database))
    database.takeOver(session: old.connection.session)
    _ = await new.set("on", true)
    _ = await old.send { $0.onDisconnectSet("on", to: false, request: $1) }
    _ = await old.send { $0.set("lost", to: 1, request: $1) }
    old.connection.close()
    #expect(try await value(database) == "{on:true}")
    #expect(await old.drain() == ["ended"])
  }

  @Test("The onDisconnect writes of a session that is taken over precede all later operations")
  func takeOver() async throws {
    let database = try await open(MemoryStore())
    let old = Client(database)
    await old.call { $0.onDisconnectSet("state/u1/on", to: false, request: $1) }
    _ = await old.set("state/u1/on", true)
    let new = Client(database)
    database.takeOver(session: old.connection.session)
    await new.call { $0.listen("state", hash: "", request: $1) }
    _ = await new.set("state/u1/on", true)
    old.connection.close()
    #expect(try await value(database) == "{state:{u1:{on:true}}}")
    #expect(await new.drain() == ["d state {u1:{on:false}}", "1 ok", "d state/u1/on true", "2 ok"])
    #expect(await old.drain().last == "ended")
  }

  @Test("Operations of a crashed server run once, at its next start")
  func crash() async throws {
    let store = try MemoryStore()
    let first = try await open(store)
    let phone = Client(first)
    await phone.call { $0.onDisconnectSet("on", to: false, request: $1) }
    await phone.call {
      $0.onDisconnectSet("count", to: .leaf(.deferred(.increment(.int(1)))), request: $1)
    }
    _ = await phone.set("on", true)
    let second = try await open(store)
    #expect(try await value(second) == "{count:1,on:false}")
    _ = try await second.set("on", to: "later", as: .administrator)
    let third = try await open(store)
    #expect(try await value(third) == "{count:1,on:'later'}")
  }

  @Test("Hundreds of sessions of a crashed server end at its next start")
  func manySessions() async throws {
    let store = try MemoryStore()
    let first = try await open(store)
    for i in 0..<300 {
      let phone = Client(first)
      await phone.call { $0.onDisconnectSet(Path("s/\(i)"), to: false, request: $1) }
      await phone.call {
        $0.onDisconnectSet("sum", to: .leaf(.deferred(.increment(.int(1)))), request: $1)
      }
    }
    let second = try await open(store)
    #expect(try await second.get("s", as: .administrator).childCount == 300)
    #expect(try await second.get("sum", as: .administrator) == 300)
  }

  @Test("An operation that the policy denies at the disconnect is dropped, and the other operations run")
  func policyAtDisconnect() async throws {
    let database = try await open(MemoryStore(), OwnPathPolicy())
    let phone = Client(database, as: .user("u1"))
    #expect(await phone.call { $0.onDisconnectSet("u2/x", to: 1, request: $1) }.text == "permission_denied")
    #expect(await phone.call { $0.onDisconnectSet("u1/x", to: 1, request: $1) }.text == "ok")
    await phone.call { $0.authenticate(.user("u2"), request: $1) }
    #expect(await phone.call { $0.onDisconnectSet("u2/y", to: 2, request: $1) }.text == "ok")
    phone.connection.close()
    #expect(try await value(database) == "{u2:{y:2}}")
  }

  /// Ends a session by closing its connection, or by a crash of the server; returns the database afterwards.
  private func end(
    _ client: Client, _ database: RealtimeDatabase, _ store: any OrderedStore, crashes: Bool
  ) async throws -> RealtimeDatabase {
    if crashes { return try await open(store, SharedFactsPolicy()) }
    client.connection.close()
    return database
  }

  @Test(
    "A registered update with a denied value is dropped completely, and other operations are performed",
    arguments: [false, true])
  func deniedUpdate(crashes: Bool) async throws {
    let store = try MemoryStore()
    var database = try await open(store, SharedFactsPolicy())
    let phone = Client(database, as: .user("u1"))
    await phone.call { $0.onDisconnectSet("first", to: 1, request: $1) }
    await phone.call { $0.onDisconnectUpdate("/", [("guarded", 2), ("free", 2)], request: $1) }
    await phone.call { $0.onDisconnectSet("last", to: 3, request: $1) }
    _ = try await database.set("closed", to: true, as: .administrator)
    database = try await end(phone, database, store, crashes: crashes)
    #expect(try await value(database) == "{closed:true,first:1,last:3}")
  }

  @Test(
    "At the disconnect the policy decides the values of a registered update together, as at its registration",
    arguments: [false, true])
  func updateDecidedTogether(crashes: Bool) async throws {
    let store = try MemoryStore()
    var database = try await open(store, SharedFactsPolicy())
    let phone = Client(database, as: .user("u1"))
    #expect(await phone.call { $0.onDisconnectSet("pair/a", to: 1, request: $1) }.text == "permission_denied")
    #expect(
      await phone.call { $0.onDisconnectUpdate("pair", [("a", 1), ("b", 2)], request: $1) }.text == "ok")
    database = try await end(phone, database, store, crashes: crashes)
    #expect(try await value(database) == "{pair:{a:1,b:2}}")
  }

  @Test(
    "Operations that together break a rule are performed in the order of registration, as far as the rule permits",
    arguments: [false, true])
  func deniedTogether(crashes: Bool) async throws {
    let store = try MemoryStore()
    var database = try await open(store, SharedFactsPolicy())
    let phone = Client(database, as: .user("u1"))
    for seat in ["seats/y", "seats/x", "free"] as [Path] {
      #expect(await phone.call { $0.onDisconnectSet(seat, to: 1, request: $1) }.text == "ok")
    }
    database = try await end(phone, database, store, crashes: crashes)
    #expect(try await value(database) == "{free:1,seats:{y:1}}")
  }

  @Test("The policy decides the parts of a value that remain after a cancel as one operation")
  func cancelledPart() async throws {
    let database = try await open(MemoryStore(), SharedFactsPolicy())
    let phone = Client(database, as: .user("u1"))
    await phone.call { $0.onDisconnectSet("m", to: ["a": 1, "b": 2, "guarded": 3], request: $1) }
    await phone.call { $0.onDisconnectCancel("m/a", request: $1) }
    _ = try await database.set("closed", to: true, as: .administrator)
    phone.connection.close()
    #expect(try await value(database) == "{closed:true}")
  }

  @Test(
    "Later operations inside a registered value stay separate decisions after a cancel elsewhere in the value"
  )
  func cancelBesideOthers() async throws {
    let database = try await open(MemoryStore(), SharedFactsPolicy())
    let phone = Client(database, as: .user("u1"))
    _ = try await database.set("m/e/old", to: 1, as: .administrator)
    await phone.call { $0.onDisconnectSet("m", to: ["c": 1, "d": 2, "e": ["x": 1]], request: $1) }
    await phone.call { $0.onDisconnectSet("m/guarded", to: 5, request: $1) }
    await phone.call { $0.onDisconnectSet("m/e/guarded", to: 5, request: $1) }
    await phone.call { $0.onDisconnectSet("m/e/y", to: 6, request: $1) }
    await phone.call { $0.onDisconnectCancel("m/c", request: $1) }
    _ = try await database.set("closed", to: true, as: .administrator)
    phone.connection.close()
    #expect(try await value(database) == "{closed:true,m:{d:2,e:{x:1,y:6}}}")
  }

  @Test("After a crash onDisconnect operations run with the rights of the caller who registered them")
  func callerInRows() async throws {
    let store = try MemoryStore()
    let first = try await open(store, OwnPathPolicy())
    let phone = Client(first, as: .user("u1", claims: ["x": .int(1)]))
    await phone.call { $0.onDisconnectSet("u1/x", to: 1, request: $1) }
    let second = try await open(store, OwnPathPolicy())
    #expect(try await value(second) == "{u1:{x:1}}")
  }
}

/// Users have access below their own id, administrators everywhere.
struct OwnPathPolicy: AccessPolicy {
  typealias Product = RealtimeAccess
  func decide(
    _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) -> RealtimeDecision {
    let isOwn = caller.user.map { user in operation.paths.allSatisfy { $0.first?.text == user.id } } ?? false
    return isOwn ? .allowed : .deny(reason: "not the caller's path")
  }
}

/// Denies writes after which only one of `pair/a` and `pair/b` exists, and writes after which both seats exist. Once
/// `closed` exists, it also denies writes of the key `guarded`.
private struct SharedFactsPolicy: AccessPolicy {
  typealias Product = RealtimeAccess
  func decide(
    _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision {
    guard operation.changesData else { return .allowed }
    func exists(_ path: Path) throws -> Bool { try view.exists(at: path, .after) }
    let isPair = try exists("pair/a") == exists("pair/b")
    let areSeatsTaken = try exists("seats/x") && exists("seats/y")
    let isGuarded = operation.paths.contains { $0.last?.text == "guarded" }
    let isOpen = try !isGuarded || !view.exists(at: "closed", .before)
    return isPair && !areSeatsTaken && isOpen ? .allowed : .deny(reason: "the facts do not agree")
  }
}
