// What operations cost in rows: a write its depth, a listen its value, a removal next to nothing; none the database's size.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Rows that operations read", .timeLimit(.minutes(10)))
struct CostTests {
  /// A database with so many leaves, four levels deep, of which nothing is in memory.
  private func open(_ leaves: Int) async throws -> (CountingEngine, RealtimeDatabase) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let filling = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("cost")
    for part in 0..<(leaves / 100) {
      let node = Node.object(
        (0..<100).map { (ChildKey("k\($0)"), Node.object([("v", .leaf(.int(Int64($0))))])) })
      _ = try await filling.set(Path("a/p\(part)"), to: node, as: .anonymous)
    }
    let database = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("cost")
    // A database that opens looks for what is to be built or cleared, which reads rows too.
    #expect(try await eventually { database.builder.looks > 0 })
    await database.cleaner.stop()
    return (engine, database)
  }

  @Test("A write to a leaf costs its depth, however large the database is, also where subtrees lie elsewhere")
  func leaf() async throws {
    var costs: [[Int]] = []
    for leaves in [300, 30_000] {
      let (engine, database) = try await open(leaves)
      var cost: [Int] = []
      for (path, node) in [
        ("a/p1/k7/v", 1), ("a/p1/k8/new", 2), ("a/p2/k9/v", nil), ("b/c/d/e", 3), ("a/p1/k7/v/below", 4),
      ] as [(Path, Node)] {
        cost.append(
          try await engine.count { _ = try await database.set(path, to: node, as: .anonymous) })
      }
      cost.append(
        try await engine.count {
          _ = try await database.update("a", [("p0/k1/v", 5), ("p2/k2/v", 6)], as: .anonymous)
        })
      let increment = Node.leaf(.deferred(.increment(.int(1))))
      cost.append(
        try await engine.count { _ = try await database.set("a/p0/k5/v", to: increment, as: .anonymous) })
      cost.append(try await engine.count { _ = try await database.get("a/p0/k5/v", as: .anonymous) })
      costs.append(cost)
    }
    #expect(costs[0] == costs[1])
    #expect(costs[0].allSatisfy { $0 <= 24 }, "\(costs[0])")
  }

  @Test("An increment of what has children looks at one row to find that it counts from nothing")
  func increment() async throws {
    let (engine, database) = try await open(4_000)
    let increment = Node.leaf(.deferred(.increment(.int(2))))
    let cost = try await engine.count { _ = try await database.set("a", to: increment, as: .anonymous) }
    #expect(cost < 1_200, "\(cost) rows")
    #expect(try await database.get("a", as: .anonymous) == 2)
  }

  @Test("A listen on a large location reads each row about once, what is written then none again")
  func listen() async throws {
    let (engine, database) = try await open(10_000)
    let client = Client(database)
    let listening = await engine.count { await client.ask { $0.listen("a", hash: "", request: $1) } }
    // That it is large shows after a thousand, and each piece begins with a few rows on another thread.
    #expect(listening >= 10_000 && listening <= 11_800, "\(listening) rows for 10,000 leaves")
    let second = await engine.count {
      await Client(database).ask { $0.listen("a", hash: "", request: $1) }
    }
    #expect(second < 10, "\(second) rows for what is in memory")
    let writing = try await engine.count { _ = try await database.set("a/p3/k4/v", to: 9, as: .anonymous) }
    #expect(writing < 24, "\(writing) rows")
    _ = try await database.getShallow("a", as: .anonymous)
    let shallow = try await engine.count { _ = try await database.getShallow("a", as: .anonymous) }
    #expect(shallow <= 420, "\(shallow) rows for 100 children")
  }

  @Test("An update of many small children costs a few rows for each")
  func manyChildren() async throws {
    let (engine, database) = try await open(3_000)
    let removing = try await engine.count {
      _ = try await database.update("a/p1", (0..<90).map { (Path("k\($0)"), .empty) }, as: .anonymous)
    }
    #expect(removing <= 4 * 90 + 24, "\(removing) rows for 90 children")
    let adding = try await engine.count {
      _ = try await database.update("a/p1", (0..<90).map { (Path("n\($0)"), 1) }, as: .anonymous)
    }
    // One look tells that nothing is there for all of them.
    #expect(adding <= 24, "\(adding) rows for 90 leaves")
    let left = (0..<10).map { "k9\($0):{v:9\($0)}" } + (0..<90).map { "n\($0)" }.sorted().map { "\($0):1" }
    #expect(try await database.get("a/p1", as: .anonymous).text == "{\(left.joined(separator: ","))}")
  }

  @Test(
    "The last of several removed children takes its parents' priorities along, one that comes again does not")
  func priorities() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("p")
    let value = Node.object([
      ("x", .object([("a", 1), ("b", 2)], priority: .number(1))),
      ("y", .object([("a", 1), ("b", 2)], priority: .number(2))), ("z", 3),
    ])
    _ = try await database.set("/", to: value, as: .anonymous)
    _ = try await database.update(
      "/", [("x/a", .empty), ("x/b", .empty), ("x/c", .empty), ("y/a", .empty), ("y/c", .empty)],
      as: .anonymous)
    _ = try await database.set("x/d", to: 4, as: .anonymous)
    #expect(try await database.get("/", as: .anonymous).text == "{x:{d:4},y:{b:2}^2,z:3}")
    // A leaf makes room for children once, and its priority stays with them.
    _ = try await database.set("z", to: .leaf(.int(3), priority: .number(9)), as: .anonymous)
    _ = try await database.update("z", [("m", 1), ("n", 2)], as: .anonymous)
    #expect(try await database.get("z", as: .anonymous).text == "{m:1,n:2}^9")
  }

  @Test("A removal reads and clears a bounded part itself, however much there is")
  func removal() async throws {
    var costs: [Int] = []
    for leaves in [4_000, 40_000] {
      let (engine, database) = try await open(leaves)
      costs.append(try await engine.count { _ = try await database.set("a", to: .empty, as: .anonymous) })
      let writing = try await engine.count { _ = try await database.set("a/p3/k4/v", to: 9, as: .anonymous) }
      #expect(writing < 30, "\(writing) rows where \(leaves) wait to be cleared")
      #expect(try await database.get("/", as: .anonymous).text == "{a:{p3:{k4:{v:9}}}}")
    }
    #expect(costs[0] == costs[1])
    #expect(costs[0] < 1_100, "\(costs)")
  }
}
