// Random programs of writes, listens and queries by several clients. After every step each client's values, rebuilt from
// what it was told, must equal the model: the same writes applied to one node, the same queries asked of it.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Replaying pushes rebuilds the state", .timeLimit(.minutes(1)))
struct ReplayTests {
  @Test("Every listen of every client shows its location after every write", arguments: 0..<24)
  func replay(seed: Int) async throws {
    let store = try MemoryStore()
    // Every third program runs with next to no cache, so that every operation reads and mends rows.
    let engine = RealtimeEngine(
      store: store, policy: EmulatorPolicy(), cacheBytes: seed % 3 == 0 ? 2_000 : 1 << 20)
    let database = try await engine.database("replay")
    var program = Program(seed: UInt64(seed), database: database)
    for step in 0..<120 {
      await program.step()
      await program.check("seed \(seed), step \(step)")
    }
    try await program.checkStored()
    // What the rows alone say, without any cache.
    let reopened = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("replay")
    #expect(try await reopened.get("/", as: .anonymous) == program.model)
  }
}

/// A random program and the model it is compared with.
private struct Program {
  var values: RandomValues
  var model = Node.empty
  let database: RealtimeDatabase
  var clients: [(client: Client, replica: Replica)] = []
  var nextTag: Int64 = 1

  init(seed: UInt64, database: RealtimeDatabase) {
    values = RandomValues(seed: seed)
    self.database = database
    for _ in 0..<3 { clients.append((Client(database), Replica())) }
  }

  mutating func step() async {
    let which = values.below(clients.count)
    switch values.below(10) {
    case 0, 1: await listen(which)
    case 2: await unlisten(which)
    case 3: await transact(which)
    case 4: await update(which)
    case 5: await setPriority(which)
    default: await set(which)
    }
  }

  private mutating func set(_ which: Int) async {
    let path = values.path()
    let node = values.below(4) == 0 ? Node.empty : values.node()
    await clients[which].client.ask { $0.set(path, to: node, request: $1) }
    model = model.setting(path, to: node)
  }

  private mutating func setPriority(_ which: Int) async {
    let path = values.path().child(.priority)
    let node = values.below(3) == 0 ? Node.empty : Node.leaf(.int(Int64(values.below(3))))
    await clients[which].client.ask { $0.set(path, to: node, request: $1) }
    model = model.setting(path, to: node)
  }

  private mutating func update(_ which: Int) async {
    var folded = FoldedChanges()
    for _ in 0..<(1 + values.below(4)) { folded.add(values.path(), values.node()) }
    let changes = folded.changes.map { ($0.path, $0.value) }
    let answer = await clients[which].client.ask { $0.update("/", changes, request: $1) }
    #expect(answer.text == "ok")
    model = model.merging(changes.sorted { $0.0 < $1.0 })
  }

  private mutating func transact(_ which: Int) async {
    let path = values.path()
    let node = values.node()
    let isStale = values.below(3) == 0
    let hash = isStale ? "stale" : model.descendant(path).hash
    let answer = await clients[which].client.ask { $0.set(path, to: node, ifHash: hash, request: $1) }
    #expect(answer.text == (isStale ? "datastale" : "ok"))
    if !isStale { model = model.setting(path, to: node) }
  }

  private mutating func listen(_ which: Int) async {
    let path = values.path()
    var query = QuerySpec.default
    var tag: Int64?
    if values.below(3) > 0 {
      query = values.query()
      if query.showsAll { query.limit = .last(2) }
      tag = nextTag
      nextTag += 1
    }
    let name = ListenName(path: path, tag: tag)
    // As in the protocol, one default listen a path: a second one is ended first.
    clients[which].replica.start(name, query)
    let answer = await clients[which].client.ask {
      $0.listen(path, query: query, tag: tag, hash: "", request: $1)
    }
    #expect(answer.text == "ok")
  }

  private mutating func unlisten(_ which: Int) async {
    guard let name = clients[which].replica.queries.keys.sorted(by: { "\($0)" < "\($1)" }).first else {
      return
    }
    clients[which].replica.stop(name)
    await clients[which].client.ask { $0.unlisten(name.path, tag: name.tag, request: $1) }
  }

  /// Compares every listen of every client with the model.
  mutating func check(_ place: String) async {
    for i in clients.indices {
      await clients[i].client.ask { $0.get("none", request: $1) }
      for case .push(let push) in await clients[i].client.takeTold() { clients[i].replica.apply(push) }
      for (name, query) in clients[i].replica.queries {
        let expected = model.descendant(name.path).window(query)
        let known = clients[i].replica.values[name] ?? .empty
        // A client prunes as the server does, so that even priorities must agree.
        #expect(
          known == expected, "\(place): \(name.path) \(query) knows \(known.text), not \(expected.text)")
      }
    }
  }

  func checkStored() async throws {
    #expect(try await database.get("/", as: .anonymous) == model)
    for path in (0..<20).map({ _ in
      var copy = values; return copy.path()
    }) {
      #expect(try await database.get(path, as: .anonymous) == model.descendant(path))
      #expect(try await database.getShallow(path, as: .anonymous) == ShallowNode(model.descendant(path)))
    }
  }
}
