// Tests reads of large values and of wide windows (results of queries), which a background job performs instead of a
// batch. A request still gets the value as of its position in the order of operations, and no other connection waits
// for it.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import StoreFixture
import Testing

@testable import RealtimeEngine

@Suite("Large reads", .timeLimit(.minutes(2)))
struct LargeReadTests {
  private func wide(_ count: Int, _ value: Int64 = 0) -> Node {
    .object((0..<count).map { (ChildKey("k\($0)"), Node.object([("v", .leaf(.int(value + Int64($0))))])) })
  }

  private func open(
    _ store: any OrderedStore, _ staging: StagingLimits = .tinyReads, cacheBytes: Int = 2_000
  ) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: OpenPolicy(), cacheBytes: cacheBytes, staging: staging)
      .database("large")
  }

  @Test("Other clients write while a large listen is being read, and the listen shows their writes")
  func concurrentWrites() async throws {
    let database = try await open(MemoryStore())
    let count = 10_000
    _ = try await database.set("big", to: wide(count), as: .nobody)
    let slow = Client(database)
    let other = Client(database)
    let listen = await slow.send { $0.listen("big", hash: "", request: $1) }
    let behind = await slow.send { $0.get("none", request: $1) }
    var expected = wide(count)
    for round in 0..<5 {
      let value = Node.leaf(.int(Int64(-1 - round)))
      #expect(await other.set(Path("big/k\(round)/v"), value).text == "ok")
      #expect(await other.call { $0.get(Path("big/k\(round)"), request: $1) }.text == "ok {v:\(-1 - round)}")
      expected = expected.setting(Path("k\(round)/v"), to: value)
    }
    #expect(await slow.drain().isEmpty, "a small write waited for a large listen")
    #expect(await slow.response(to: listen).text == "ok")
    #expect(await slow.response(to: behind).text == "ok null")
    _ = try await database.set("big/last", to: 1, as: .nobody)
    await slow.call { $0.get("none", request: $1) }
    var replica = Replica()
    replica.start(ListenName(path: "big", tag: nil), .default)
    for case .push(let push) in await slow.takeOutputs() { replica.apply(push) }
    let clientValue = replica.values[ListenName(path: "big", tag: nil)]
    #expect(clientValue == expected.setting("last", to: 1))
  }

  @Test("Requests of the connection keep their order around a large read")
  func order() async throws {
    let database = try await open(MemoryStore())
    let phone = Client(database)
    let requests = [
      await phone.send { $0.set("big", to: wide(50), request: $1) },
      await phone.send { $0.get("big", request: $1) },
      await phone.send { $0.set("big/k1", to: nil, request: $1) },
      await phone.send { $0.listen("big", hash: "", request: $1) },
      await phone.send { $0.set("big/k2", to: "mine", request: $1) },
    ]
    for request in requests where request != requests[1] {
      #expect(await phone.response(to: request).text == "ok")
    }
    let before = wide(50)
    #expect(await phone.response(to: requests[1]).text == "ok \(before.text)")
    let pushes = await phone.drain().filter { $0.hasPrefix("d") }
    #expect(pushes == ["d big \(before.setting("k1", to: nil).text)", "d big/k2 'mine'"])
  }

  @Test("Requests of the connection keep their order around a read of a wide window")
  func window() async throws {
    let database = try await open(MemoryStore())
    _ = try await database.set("big", to: wide(200), as: .nobody)
    let phone = Client(database)
    let query = QuerySpec(ordering: .key, limit: .last(100))
    let requests = [
      await phone.send { $0.set("big/k99", to: "before", request: $1) },
      await phone.send { $0.get("big", query: query, request: $1) },
      await phone.send { $0.set("big/k99", to: "after", request: $1) },
      await phone.send { $0.get("big", query: QuerySpec(ordering: .key, limit: .last(1)), request: $1) },
    ]
    #expect(await Client(database).set("small", 1).text == "ok")
    let before = wide(200).setting("k99", to: "before").window(query)
    #expect(await phone.response(to: requests[0]).text == "ok")
    #expect(await phone.response(to: requests[1]).text == "ok \(before.text)")
    #expect(await phone.response(to: requests[2]).text == "ok")
    #expect(await phone.response(to: requests[3]).text == "ok {k99:'after'}")
    let order = await phone.takeOutputs().compactMap { outputs -> Int64? in
      if case .response(let request, _) = outputs { request } else { nil }
    }
    #expect(order == requests)
  }

  @Test(
    "Listens that start during other clients' writes show the correct state in the end", arguments: 0..<12)
  func concurrent(seed: Int) async throws {
    let database = try await open(
      MemoryStore(), seed % 2 == 0 ? .tinyReads : .tiny, cacheBytes: seed % 3 == 0 ? 1 << 20 : 2_000)
    var generator = RandomNodes(seed: UInt64(4_000 + seed))
    _ = try await database.set("/", to: ["a": generator.node(), "b": wide(40)], as: .nobody)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<3 {
        group.addTask {
          var generator = RandomNodes(seed: UInt64(100 * seed + writer))
          let client = Client(database)
          for round in 0..<120 {
            let path =
              generator.below(3) == 0
              ? Path("b/k\(generator.below(40))/\(generator.key())") : generator.path()
            let isPriority = generator.below(8) == 0
            let node: Node = isPriority ? .leaf(.int(Int64(generator.below(3)))) : generator.node()
            let target = isPriority ? path.child(.priority) : path
            if round % 7 == 0, !target.isRoot {
              await client.call { $0.update("/", [(target, node)], request: $1) }
            } else {
              await client.call { $0.set(target, to: node, request: $1) }
            }
          }
        }
      }
      for listener in 0..<3 {
        group.addTask { try await checkListens(database, UInt64(seed * 10 + listener)) }
      }
      try await group.waitForAll()
    }
  }

  /// Starts and ends listens, and compares the value rebuilt from their pushes with a read of the location.
  private func checkListens(_ database: RealtimeDatabase, _ seed: UInt64) async throws {
    var generator = RandomNodes(seed: 7_000 + seed)
    let client = Client(database)
    for round in 0..<25 {
      let path: Path = generator.below(2) == 0 ? "b" : generator.below(2) == 0 ? "/" : generator.path()
      var query = QuerySpec.default
      var tag: Int64?
      if generator.below(2) == 0 {
        query = generator.query()
        if query.showsAll { query.limit = .last(2) }
        tag = Int64(round)
      }
      let name = ListenName(path: path, tag: tag)
      var replica = Replica()
      replica.start(name, query)
      await client.call { $0.listen(path, query: query, tag: tag, hash: "", request: $1) }
      var outputs: [Client.Output] = []
      for _ in 0..<3 {
        let request = await client.send { $0.get(path, request: $1) }
        guard case .value(let now) = await client.response(to: request) else {
          return #expect(Bool(false), "no value")
        }
        outputs += await client.takeOutputs()
        // The pushes before the read's response contain all changes before the read.
        while !outputs.isEmpty {
          let next = outputs.removeFirst()
          if case .response(request, _) = next { break }
          if case .push(let push) = next { replica.apply(push) }
        }
        let clientValue = replica.values[name] ?? .empty
        let expected = now.window(query)
        #expect(
          clientValue == expected,
          "seed \(seed), round \(round): \(path) \(query): \(clientValue.text), not \(expected.text)")
      }
      await client.call { $0.unlisten(path, tag: tag, request: $1) }
      _ = await client.takeOutputs()
    }
  }

  @Test("A client with an outdated large value receives the changed ranges", arguments: [0, 1])
  func hashes(isChanged: Int) async throws {
    let database = try await open(MemoryStore())
    let held = wide(200)
    _ = try await database.set("big", to: held.setting("k7", to: "new"), as: .nobody)
    let client = Client(database)
    let value = isChanged == 0 ? held.setting("k7", to: "new") : held
    await client.call { $0.listen("big", hash: value.hash, request: $1) }
    let outputs = await client.drain()
    #expect(outputs.count == 1 + isChanged)
    let query = QuerySpec(ordering: .key, limit: .last(120))
    await client.call {
      $0.listen("big", query: query, tag: 1, hash: value.window(query).hash, request: $1)
    }
    #expect(await client.drain().count == 1 + isChanged)
  }

  @Test("A filtered listen with a hash is deferred if its window takes long to hash")
  func hashedWindows() async throws {
    let rows = try await MemoryStore().database(named: "large", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.preparedBytes = 200
    let executor = OperationExecutor(
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    let connection = ConnectionState(
      name: "large", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    func isDeferred(_ action: RealtimeOperation.Action) async throws -> Bool {
      let operation = RealtimeOperation(action, from: .connection(connection, request: 1))
      return try await rows.execute(validating: nil) { writer in
        try !executor.run([operation], in: writer, SessionJournal(), mayDefer: true).deferred.isEmpty
      }.result
    }
    func listen(_ ordering: Ordering, _ limit: Int, _ hash: String, tag: Int64) -> RealtimeOperation.Action {
      let query = QuerySpec(ordering: ordering, limit: .first(limit))
      return .listen(.init(path: "big", query: query, tag: tag, hash: hash, compoundHash: nil))
    }
    #expect(try await !isDeferred(.write(.set("big", wide(100)), hash: nil)))
    #expect(try await isDeferred(listen(.key, 50, "other", tag: 1)))
    #expect(try await !isDeferred(listen(.key, 50, "", tag: 1)))
    #expect(try await !isDeferred(listen(.key, 3, "other", tag: 2)))
    // The same rule applies to a sort order that the fan-out stage, which delivers pushes, already maintains.
    #expect(try await !isDeferred(listen(.priority, 3, "", tag: 3)))
    #expect(try await isDeferred(listen(.priority, 50, "other", tag: 4)))
    #expect(try await !isDeferred(listen(.priority, 3, "other", tag: 4)))
  }

  @Test(
    "The hash of a large filtered value is compared only if the hash is cached or a background read has computed it"
  )
  func comparedInBackground() {
    let text = String(repeating: "x", count: 8_000)
    let held = Node.object((0..<300).map { (ChildKey("k\(1_000 + $0)"), Node.leaf(.string("\($0)" + text))) })
    let query = QuerySpec(ordering: .key, limit: .first(200))
    let window = held.window(query)
    func listen(_ node: Node, isPrepared: Bool, on fanOut: FanOut = FanOut()) -> [String] {
      let group = RecordingGroup()
      let connection = ConnectionState(name: "phone", caller: .nobody, sink: RecordingSink(group))
      let listen = RealtimeOperation.Listen(
        path: "big", query: query, tag: 1, hash: window.hash, compoundHash: CompoundHash(of: window))
      var prepared = PreparedListen()
      if isPrepared {
        let read = BackgroundRead("big", node)
        let operation = RealtimeOperation(.listen(listen), from: .connection(connection, request: 1))
          .prepared(by: read)
        prepared = PreparedListen(location: read.current(for: query), firstPush: operation.results.firstPush)
      }
      fanOut.run([.listen(connection, listen, node, prepared, warnings: [], request: 1)])
      return group.take().flatMap { $0 }.flatMap(\.outputs).compactMap { output in
        guard case .push(let push) = output else { return nil }
        if case .rangeMerge(let ranges) = push.body { return "\(ranges.count) range" }
        return "all"
      }
    }
    let changed = held.setting("k1007", to: "new")
    #expect(listen(held, isPrepared: false) == ["all"], "the fan-out stage hashed 2 MB")
    #expect(listen(changed, isPrepared: false) == ["all"])
    #expect(listen(changed, isPrepared: true) == ["1 range"])
    let fanOut = FanOut()
    #expect(listen(held, isPrepared: true, on: fanOut) == [])
    // The fan-out stage cached the hash for other listens on the same value, so this listen needs no
    // preparation.
    #expect(listen(held, isPrepared: false, on: fanOut) == [])
  }

  @Test("A transaction compares the large value as of its position in the order of operations")
  func transaction() async throws {
    let database = try await open(MemoryStore())
    _ = try await database.set("big", to: wide(60), as: .nobody)
    let client = Client(database)
    let stale = await client.send { $0.set("big", to: 1, ifHash: "other", request: $1) }
    let right = await client.send { $0.set("big", to: 1, ifHash: wide(60).hash, request: $1) }
    #expect(await client.response(to: stale).text == "datastale")
    #expect(await client.response(to: right).text == "ok")
  }

  @Test("Many filtered listens on one location share its sort orders, and show the latest value")
  func shared() async throws {
    let database = try await open(MemoryStore(), cacheBytes: 64 << 20)
    var expected = Node.object(
      (0..<400).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64(($0 * 7_919) % 1_009)))) })
    _ = try await database.set("big", to: expected, as: .nobody)
    // This listen brings the value into memory.
    let first = Client(database)
    await first.call { $0.listen("big", hash: "", request: $1) }
    let clients = (0..<12).map { _ in Client(database) }
    var queries: [(client: Client, name: ListenName, query: QuerySpec)] = []
    var requests: [(Client, Int64)] = []
    for (position, client) in clients.enumerated() {
      for number in 0..<10 {
        let limit = 1 + (position * 10 + number) % 37
        var query = QuerySpec(ordering: .value, limit: number % 2 == 0 ? .first(limit) : .last(limit))
        if number % 3 == 0 { query.start = .init(.int(Int64(position * 20 + number))) }
        if number == 9 { query.limit = nil }
        let name = ListenName(path: "big", tag: Int64(number))
        queries.append((client, name, query))
        requests.append(
          (client, await client.send { $0.listen("big", query: query, tag: name.tag, hash: "", request: $1) })
        )
      }
    }
    for round in 0..<200 {
      let key = ChildKey("k\((round * 31) % 500)")
      let value: Node = round % 5 == 0 ? .empty : .leaf(.int(Int64((round * 613) % 1_009)))
      #expect(await first.set(Path(keys: ["big", key]), value).text == "ok")
      expected = expected.settingChild(key, to: value)
    }
    for (client, request) in requests { #expect(await client.response(to: request).text == "ok no_index") }
    _ = await first.set("big/last", 1)
    expected = expected.settingChild("last", to: 1)
    for client in clients {
      await client.call { $0.get("none", request: $1) }
      var replica = Replica()
      for (other, name, query) in queries where other === client { replica.start(name, query) }
      for case .push(let push) in await client.takeOutputs() { replica.apply(push) }
      for (other, name, query) in queries where other === client {
        let clientValue = replica.values[name] ?? .empty
        #expect(clientValue == expected.window(query), "\(query): \(clientValue.text)")
      }
    }
    // Sorting runs once if all listens wait together. A listen that arrives when the first listens resume causes
    // another run, and late listens with wide windows cause up to two more.
    #expect(database.deferrals.sortedOrderCount <= 4, "\(database.deferrals.sortedOrderCount) times")
  }

  @Test("A background read contains no changes of a failed commit")
  func failedCommit() async throws {
    let gated = GatedEngine()
    let database = try await open(try EngineStore(gated, StoreOptions()))
    _ = try await database.set("big", to: wide(300), as: .nobody)
    let reader = Client(database)
    let writer = Client(database)
    gated.blockCommits()
    let write = await writer.send { $0.set("big/k1", to: "lost", request: $1) }
    await gated.waitUntilBlocked()
    let listen = await reader.send { $0.listen("big", hash: "", request: $1) }
    let later = await writer.send { $0.set("big/k2", to: "lost too", request: $1) }
    gated.unblock(failing: .unavailable("the disk is full"))
    #expect(await writer.response(to: write).text != "ok")
    #expect(await writer.response(to: later).text != "ok")
    #expect(await reader.response(to: listen).text == "ok")
    #expect(await reader.drain().first == "d big \(wide(300).text)")
  }

  @Test("A background read stops when its connection closes or the server shuts down")
  func abandoned() async throws {
    let store = try MemoryStore()
    let database = try await open(store)
    _ = try await database.set("big", to: wide(20_000), as: .nobody)
    let closing = Client(database)
    _ = await closing.send { $0.listen("big", hash: "", request: $1) }
    closing.connection.close()
    let stays = Client(database)
    #expect(await stays.set("small", 1).text == "ok")
    _ = await stays.send { $0.listen("big", hash: "", request: $1) }
    await database.shutdown()
  }

  @Test("Reads without a connection show one state, and respect windows and deadlines")
  func outsideConnections() async throws {
    let database = try await open(MemoryStore())
    _ = try await database.set("big", to: wide(500), as: .nobody)
    #expect(try await database.get("big", as: .nobody) == wide(500))
    let query = QuerySpec(ordering: .key, start: nil, end: nil, limit: .last(3))
    #expect(try await database.get("big", query: query, as: .nobody) == wide(500).window(query))
    await #expect(throws: RealtimeError.timedOut) {
      _ = try await database.get("big", as: .nobody, until: .now)
    }
  }
}
