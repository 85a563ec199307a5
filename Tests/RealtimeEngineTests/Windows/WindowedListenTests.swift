// Tests filtered listens on locations that are too large for a response or for a batch to read. The engine
// then follows only the rows of each query's window (its result). After every write clients must know their
// windows, and a write near a window reads only a few rows.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Windows on large locations", .timeLimit(.minutes(10)))
struct WindowedListenTests {
  private static let index = #"{"rules":{"list":{".indexOn":["n","at/x",".value"]}}}"#

  private func open(
    _ store: any OrderedStore, limits: RealtimeLimits = .standard, _ staging: StagingLimits = .standard
  ) async throws -> RealtimeDatabase {
    try await RealtimeEngine(
      store: store, policy: OpenPolicy(), limits: limits, cacheBytes: 2_000, staging: staging
    ).database("windows")
  }

  private func child(_ number: Int) -> Node { ["n": .leaf(.int(Int64(number))), "t": "text"] }

  private func fill(_ database: RealtimeDatabase, _ count: Int) async throws {
    try await database.setRules(RulesFile(Array(Self.index.utf8)), as: .administrator)
    for start in stride(from: 0, to: count, by: 1_000) {
      let changes = (start..<min(start + 1_000, count)).map { number in
        (Path("k\(1_000_000 + number)"), child(number))
      }
      _ = try await database.update("list", changes, as: .administrator)
    }
    #expect(try await eventually { await database.indexesAreBuilt() })
  }

  @Test("Filtered listens work on a location that exceeds the limit of a response")
  func largerThanResponse() async throws {
    var limits = RealtimeLimits.standard
    limits.responseBytes = 40_000
    let database = try await open(MemoryStore(), limits: limits)
    try await fill(database, 3_000)
    let client = Client(database)
    let queries = [
      QuerySpec(ordering: .key, limit: .last(2)), QuerySpec(limit: .first(2)),
      QuerySpec(ordering: .child("n"), start: .init(.int(10)), end: .init(.int(12))),
      QuerySpec(ordering: .child("n"), limit: .last(1)),
    ]
    for (tag, query) in queries.enumerated() {
      let answer = await client.call {
        $0.listen("list", query: query, tag: Int64(tag), hash: "", request: $1)
      }
      #expect(answer.text == "ok")
    }
    func shown(_ numbers: [Int]) -> String {
      "{" + numbers.map { "k\(1_000_000 + $0):{n:\($0),t:'text'}" }.joined(separator: ",") + "}"
    }
    #expect(
      await client.drain().filter { $0.hasPrefix("d") } == [
        "d list \(shown([2_998, 2_999])) #0", "d list \(shown([0, 1])) #1",
        "d list \(shown([10, 11, 12])) #2",
        "d list \(shown([2_999])) #3",
      ])
    // The next child replaces a removed one in its window. A change outside all windows reaches no client.
    await client.call { $0.set("list/k1002999", to: nil, request: $1) }
    await client.call { $0.set("list/k1001500/t", to: "other", request: $1) }
    await client.call { $0.set("list/k1000011/n", to: 5_000, request: $1) }
    await client.call { $0.set("list/k1000010/t", to: "new", request: $1) }
    #expect(
      Set(await client.drain().filter { !$0.hasSuffix("ok") }) == [
        "m list {k1002999:null,k1002997:{n:2997,t:'text'}} #0",
        "m list {k1002999:null,k1002998:{n:2998,t:'text'}} #3",
        "d list/k1000011 null #2",
        "m list {k1002998:null,k1000011:{n:5000,t:'text'}} #3",
        "d list/k1000010/t 'new' #2",
      ])
    let refused = await client.call {
      $0.listen(
        "list", query: QuerySpec(ordering: .child("t"), limit: .last(1)), tag: 9, hash: "", request: $1)
    }
    #expect(refused.text == "too_big", "an order without rows needs the complete location")
  }

  @Test(
    "A write near a window reads few rows, however large the location is", arguments: [2_000, 20_000])
  func cost(count: Int) async throws {
    let database = try await open(MemoryStore())
    try await fill(database, count)
    let client = Client(database)
    let query = QuerySpec(ordering: .child("n"), limit: .last(20))
    await client.call { $0.listen("list", query: query, tag: 1, hash: "", request: $1) }
    let executor = database.runner.executor
    guard let store = database.rows.current else { return }
    func rows(_ path: Path, _ value: Node) async throws -> Int {
      let operation = RealtimeOperation(
        .write(.set(path, value), hash: nil), from: .call(.administrator) { _ in })
      return try await store.execute(validating: nil) { writer in
        let counting = CountingState(base: writer)
        _ = try executor.run([operation], in: counting, SessionJournal(), mayDefer: false)
        return counting.rows
      }.result
    }
    #expect(try await rows("list/k1000000/t", "beside") < 30)
    #expect(try await rows(Path("list/k\(1_000_000 + count - 1)"), .empty) < 150, "a shown child leaves")
  }

  @Test("A filtered listen on a location larger than a response waits for an index that is being built")
  func indexBeingBuilt() async throws {
    var limits = RealtimeLimits.standard
    limits.responseBytes = 40_000
    var staging = StagingLimits.standard
    staging.batchQuantum = .zero
    let database = try await open(MemoryStore(), limits: limits, staging)
    try await fill(database, 3_000)
    try await database.setRules(RulesFile(Array(#"{"rules":{}}"#.utf8)), as: .administrator)
    #expect(try await eventually { await database.indexesAreBuilt() })
    try await database.setRules(RulesFile(Array(Self.index.utf8)), as: .administrator)
    #expect(await !database.indexesAreBuilt())
    let client = Client(database)
    let query = QuerySpec(ordering: .child("n"), limit: .last(1))
    let answer = await client.call { $0.listen("list", query: query, tag: 1, hash: "", request: $1) }
    #expect(answer.text == "ok")
    #expect(await client.drain().first == "d list {k1002999:{n:2999,t:'text'}} #1")
    await database.shutdown()
  }

  @Test("A filtered listen whose index is removed is updated from the complete location")
  func removedIndex() async throws {
    let database = try await open(MemoryStore())
    try await fill(database, 2_000)
    let client = Client(database)
    let query = QuerySpec(ordering: .child("n"), limit: .first(2))
    let byPriority = QuerySpec(limit: .last(1))
    await client.call { $0.listen("list", query: query, tag: 1, hash: "", request: $1) }
    await client.call { $0.listen("list", query: byPriority, tag: 2, hash: "", request: $1) }
    var replica = Replica()
    replica.start(ListenName(path: "list", tag: 1), query)
    replica.start(ListenName(path: "list", tag: 2), byPriority)
    #expect(!database.runner.executor.windows.isEmpty)
    try await database.setRules(RulesFile(Array(#"{"rules":{}}"#.utf8)), as: .administrator)
    var model = Node.object((0..<2_000).map { (ChildKey("k\(1_000_000 + $0)"), child($0)) })
    for (path, value) in [("k1000001", Node.empty), ("k1000700/.priority", 1), ("k1000700", .empty)] {
      await client.call { $0.set(Path("list").appending(Path(path)), to: value, request: $1) }
      model = model.setting(Path(path), to: value)
    }
    #expect(
      try await eventually {
        for case .push(let push) in await client.takeOutputs() { replica.apply(push) }
        return replica.values[ListenName(path: "list", tag: 1)] == model.window(query)
          && replica.values[ListenName(path: "list", tag: 2)] == model.window(byPriority)
      })
    await client.call { $0.set("list/k1001999", to: nil, request: $1) }
    #expect(database.runner.executor.windows.isEmpty)
    #expect(await client.drain().first == "m list {k1001999:null,k1001998:{n:1998,t:'text'}} #2")
  }

  @Test("A listen that must follow its complete location ends with too_big if the location is too large")
  func revoked() async throws {
    var limits = RealtimeLimits.standard
    limits.responseBytes = 40_000
    let database = try await open(MemoryStore(), limits: limits)
    try await fill(database, 3_000)
    let client = Client(database)
    await client.call {
      $0.listen("list", query: QuerySpec(limit: .last(1)), tag: 1, hash: "", request: $1)
    }
    _ = await client.drain()
    await client.call { $0.set("list/k1000000/.priority", to: 1, request: $1) }
    await client.call { $0.set("list/k1000000", to: nil, request: $1) }
    var outputs: [String] = []
    #expect(
      try await eventually {
        outputs += await client.drain()
        return outputs.contains("c list too_big #1")
      }, "\(outputs)")
    #expect(database.runner.executor.windows.isEmpty)
  }

  @Test(
    "A window that lacks children after its index was removed receives them, even if another listen starts")
  func missingChildren() async throws {
    let database = try await open(MemoryStore())
    try await fill(database, 2_000)
    let (client, other) = (Client(database), Client(database))
    let query = QuerySpec(ordering: .child("n"), limit: .first(2))
    await client.call { $0.listen("list", query: query, tag: 1, hash: "", request: $1) }
    var replica = Replica()
    replica.start(ListenName(path: "list", tag: 1), query)
    try await database.setRules(RulesFile(Array(#"{"rules":{}}"#.utf8)), as: .administrator)
    let byKey = QuerySpec(ordering: .key, limit: .first(5))
    let requests = [
      await client.send { $0.set("list/k1000000", to: nil, request: $1) },
      await other.send { $0.listen("list", query: byKey, tag: 1, hash: "", request: $1) },
    ]
    #expect(await client.response(to: requests[0]).text == "ok")
    #expect(await other.response(to: requests[1]).text == "ok")
    let model = Node.object((1..<2_000).map { (ChildKey("k\(1_000_000 + $0)"), child($0)) })
    #expect(
      try await eventually {
        for case .push(let push) in await client.takeOutputs() { replica.apply(push) }
        return replica.values[ListenName(path: "list", tag: 1)] == model.window(query)
      })
  }

  @Test("A location's windows remain valid while an index below one of its children is built")
  func builtBelow() async throws {
    var limits = RealtimeLimits.standard
    limits.responseBytes = 40_000
    let database = try await open(MemoryStore(), limits: limits)
    try await fill(database, 3_000)
    let rules = #"{"rules":{"list":{".indexOn":"n","$k":{".indexOn":[".value","a"]}}}}"#
    try await database.setRules(RulesFile(Array(rules.utf8)), as: .administrator)
    let wide = Node.object((0..<600).map { (ChildKey("m\($0)"), 1) } + [("n", 9_999)])
    _ = try await database.set("list/wide", to: wide, as: .administrator)
    #expect(try await eventually { await database.indexesAreBuilt() })
    let client = Client(database)
    let query = QuerySpec(ordering: .child("n"), limit: .last(1))
    await client.call { $0.listen("list", query: query, tag: 1, hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.set("list/wide", to: nil, request: $1) }
    #expect(await client.drain().first == "m list {wide:null,k1002999:{n:2999,t:'text'}} #1")
    #expect(database.runner.executor.windows["list"]?.isReadingFullValue == false)
  }

  @Test("An unlisten that arrives after its connection closed still removes the listener")
  func closedConnection() throws {
    let fanOut = FanOut()
    let connection = ConnectionState(
      name: "closed", caller: .nobody, sink: RecordingSink(RecordingGroup()))
    let query = QuerySpec(limit: .last(1))
    let listen = RealtimeOperation.Listen(path: "list", query: query, tag: 1, hash: "", compoundHash: nil)
    let part = Node.object([("k", 1)])
    fanOut.run([
      .listen(connection, listen, part, PreparedListen(isPartial: true), warnings: [], request: nil)
    ])
    #expect(fanOut.root.existing(at: "list") != nil)
    _ = connection.markClosed()
    fanOut.run([.unlisten(connection, ListenName(path: "list", tag: 1), revoked: nil)])
    #expect(fanOut.root.existing(at: "list") == nil)
  }

  @Test("Rolling back a listen removes its window and ends the read of the complete value")
  func rolledBackListen() {
    let windows = WindowedLocations()
    let (kept, failed) = (SessionJournal(), SessionJournal())
    let (one, two) = (QuerySpec(limit: .last(1)), QuerySpec(limit: .last(2)))
    windows.addListen("list", one, RowWindow(one, []), kept)
    windows.addListen("list", two, RowWindow(two, []), failed)
    #expect(windows.beginReadingFullValue("list", failed))
    failed.rollBack()
    #expect(windows["list"]?.windows.count == 1)
    #expect(windows["list"]?.isReadingFullValue == false)
    windows.removeListen("list", one, kept)
    #expect(windows.isEmpty && windows.inside(.root).isEmpty)
    kept.rollBack()
    #expect(windows.isEmpty)
  }

  @Test("Clients see their windows after every write", arguments: ReplayTests.seeds(ofPrograms: 12))
  func property(seed: Int) async throws {
    var staging = seed % 3 == 0 ? StagingLimits.tiny : StagingLimits.tinyReads
    staging.readRows = 4
    if seed % 4 == 0 { staging.maximumWindowChildren = 6 }
    let database = try await open(MemoryStore(), staging)
    var program = WindowProgram(seed: UInt64(seed), database)
    try await program.begin()
    var windowed = 0
    for _ in 0..<100 {
      try await program.step()
      if !database.runner.executor.windows.isEmpty { windowed += 1 }
    }
    // Checks that the program really used windows. A long run skips this, because some programs hardly use any windows.
    if seed < 100, seed % 4 != 3 { #expect(windowed > 4, "seed \(seed): \(windowed)") }
    await program.end()
    #expect(database.runner.executor.windows.isEmpty, "seed \(seed)")
    #expect(!database.runner.executor.orders.hasListen(at: "list"), "seed \(seed)")
  }
}

extension RealtimeDatabase {
  /// Whether no index build is pending.
  fileprivate func indexesAreBuilt() async -> Bool {
    guard let store = rows.current else { return true }
    return (try? await store.read(at: nil) { try IndexBuilds(in: $0).all.isEmpty }) ?? false
  }
}

/// A random program on one list: it adds, changes, moves and removes children, while clients listen to
/// windows.
private struct WindowProgram {
  private let seed: UInt64
  /// Whether priorities, queries without indexes and replacements of the list are rare. After each of these
  /// the engine follows the complete list instead of windows.
  private let avoidsFullValues: Bool
  private let database: RealtimeDatabase
  private var generator: RandomNodes
  private var model = Node.empty
  private var clients: [Client]
  private var replicas: [Replica]
  private var listens: [(client: Int, name: ListenName)] = []
  private var indexes: [String] = []
  private var nextTag: Int64 = 1
  private var steps = 0

  init(seed: UInt64, _ database: RealtimeDatabase) {
    self.seed = seed
    avoidsFullValues = seed % 4 != 3
    self.database = database
    generator = RandomNodes(seed: 60_000 + seed)
    clients = (0..<3).map { _ in Client(database) }
    replicas = (0..<3).map { _ in Replica() }
  }

  mutating func begin() async throws {
    try await publish()
    for number in 0..<12 { try await set(Path("\(number % 3 == 0 ? "" : "k")\(number)"), child()) }
  }

  mutating func step() async throws {
    steps += 1
    switch generator.below(24) {
    case 0, 1, 2: await listen()
    case 3: await unlisten()
    case 4 where generator.below(3) == 0:
      if avoidsFullValues { while !listens.isEmpty { await unlisten() } }
      try await publish()
    case 5 where permitsFullValue():
      try await set(Path(keys: [key(), ".priority"]), generator.below(2) == 0 ? .empty : 1)
    case 6, 7: try await update()
    case 8 where generator.below(4) == 0 && permitsFullValue():
      try await set(.root, .object((0..<8).map { _ in (key(), child()) }))
    case 9, 10, 11: try await set(Path(keys: [key(), "n"]), .leaf(generator.leaf()))
    case 12, 13, 14: try await set(Path(keys: [key()]), .empty)
    default: try await set(Path(keys: [key()]), child())
    }
    try await check()
  }

  mutating func end() async {
    for (client, name) in listens {
      await clients[client].call { $0.unlisten(name.path, tag: name.tag, request: $1) }
    }
  }

  private mutating func permitsFullValue() -> Bool { !avoidsFullValues || generator.below(20) == 0 }

  private mutating func key() -> RealtimeModel.ChildKey {
    let number = generator.below(40)
    return ChildKey(number % 3 == 0 ? "\(number)" : "k\(number)")
  }

  private mutating func child() -> Node {
    switch generator.below(8) {
    case 0: .leaf(generator.leaf())
    case 1: .object([("n", .leaf(generator.leaf())), ("at", ["x": .leaf(generator.leaf())])])
    // This child has too many rows for a batch to read.
    case 2 where generator.below(4) == 0 && permitsFullValue():
      .object((0..<8).map { (ChildKey("f\($0)"), 1) })
    default:
      .object(
        [("n", .leaf(generator.leaf()))],
        priority: generator.below(12) == 0 && permitsFullValue() ? generator.priority() : nil)
    }
  }

  private mutating func set(_ path: Path, _ node: Node) async throws {
    let answer = await clients[generator.below(3)].set(Path("list").appending(path), node)
    #expect(answer.text == "ok", "seed \(seed), step \(steps)")
    model = model.setting(path, to: node)
  }

  private mutating func update() async throws {
    var changes: [(Path, Node)] = []
    for _ in 0..<(1 + generator.below(6)) {
      let path = generator.below(3) == 0 ? Path(keys: [key(), "n"]) : Path(keys: [key()])
      changes.removeAll { path.contains($0.0) || $0.0.contains(path) }
      changes.append(
        (path, generator.below(3) == 0 ? .empty : path.count == 2 ? .leaf(generator.leaf()) : child()))
    }
    let sent = changes
    let answer = await clients[generator.below(3)].call { $0.update("list", sent, request: $1) }
    #expect(answer.text == "ok", "seed \(seed), step \(steps)")
    model = model.merging(changes)
  }

  private mutating func publish() async throws {
    indexes = ["n", "at/x", ".value"].filter { _ in avoidsFullValues || generator.below(4) > 0 }
    let list = indexes.map { "\"\($0)\"" }.joined(separator: ",")
    let text = #"{"rules":{"list":{".indexOn":["# + list + "]}}}"
    try await database.setRules(RulesFile(Array(text.utf8)), as: .administrator)
    let database = database
    if generator.below(3) > 0 { #expect(try await eventually { await database.indexesAreBuilt() }) }
  }

  private mutating func query() -> QuerySpec {
    let orderings: [Ordering] = [.key, .priority, .child("n"), .child("n"), .child("at/x"), .value]
    var query = QuerySpec(ordering: orderings[generator.below(6)])
    if generator.below(3) == 0 { query.start = bound(query.ordering) }
    if generator.below(3) == 0 { query.end = bound(query.ordering) }
    switch generator.below(5) {
    case 0, 1: query.limit = .first(1 + generator.below(5))
    case 2, 3: query.limit = .last(1 + generator.below(5))
    default: break
    }
    if query.showsAll { query.limit = .last(2) }
    return query
  }

  private mutating func bound(_ ordering: Ordering) -> QuerySpec.Bound {
    if ordering == .key { return .init(.string(key().text), isInclusive: generator.below(2) == 0) }
    return .init(
      generator.leaf(), key: generator.below(2) == 0 ? key() : nil, isInclusive: generator.below(2) == 0)
  }

  private mutating func listen() async {
    let client = generator.below(3)
    await applyPushes(client)
    let query = query()
    let name = ListenName(path: "list", tag: nextTag)
    nextTag += 1
    let window = model.window(query)
    let sendsHash = generator.below(4) == 0
    replicas[client].start(name, query, sendsHash ? window : .empty)
    let hash = sendsHash ? window.hash : ""
    let answer = await clients[client].call {
      $0.listen("list", query: query, tag: name.tag, hash: hash, request: $1)
    }
    let isIndexed = [.key, .priority].contains(query.ordering) || indexes.contains(query.ordering.wireText)
    #expect(answer.text == (isIndexed ? "ok" : "ok no_index"), "seed \(seed), step \(steps)")
    listens.append((client, name))
  }

  private mutating func unlisten() async {
    guard !listens.isEmpty else { return }
    let (client, name) = listens.remove(at: generator.below(listens.count))
    await applyPushes(client)
    replicas[client].stop(name)
    await clients[client].call { $0.unlisten("list", tag: name.tag, request: $1) }
  }

  /// Applies the pushes that a client has received.
  private mutating func applyPushes(_ client: Int) async {
    await clients[client].call { $0.get("none", request: $1) }
    for case .push(let push) in await clients[client].takeOutputs() { replicas[client].apply(push) }
  }

  private mutating func check() async throws {
    // Retries, because a window may lack children while the complete value is being read.
    var wrong = ""
    for attempt in 0..<400 {
      wrong = ""
      for client in 0..<3 { await applyPushes(client) }
      for (client, name) in listens {
        guard let query = replicas[client].queries[name] else { continue }
        let clientValue = replicas[client].values[name] ?? .empty
        let expected = model.window(query)
        if clientValue != expected { wrong = "\(query) knows \(clientValue.text), not \(expected.text)" }
      }
      if wrong.isEmpty { return }
      let isReadingFullValue = database.runner.executor.windows["list"]?.isReadingFullValue
      if attempt > 3, isReadingFullValue != true { break }
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(wrong.isEmpty, "seed \(seed), step \(steps): \(wrong)")
  }
}
