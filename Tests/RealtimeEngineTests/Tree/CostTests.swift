// Tests how many rows an operation reads, independently of the database's size. A write reads in proportion
// to its depth, a listen in proportion to its value, and a removal almost nothing.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Row reads per operation", .timeLimit(.minutes(10)))
struct CostTests {
  /// A database with `leaves` leaves, four levels deep, and an empty cache.
  private func open(_ leaves: Int) async throws -> (CountingEngine, RealtimeDatabase) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let filling = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("cost")
    for part in 0..<(leaves / 100) {
      let node = Node.object(
        (0..<100).map { (ChildKey("k\($0)"), Node.object([("v", .leaf(.int(Int64($0))))])) })
      _ = try await filling.set(Path("a/p\(part)"), to: node, as: .nobody)
    }
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("cost")
    // Waits for the background work after opening, because it also reads rows: it builds indexes and clears replaced
    // rows.
    #expect(try await eventually { database.builder.completedRuns > 0 })
    await database.cleaner.stop()
    return (engine, database)
  }

  @Test("A write to a leaf reads the same number of rows in a small and a large database")
  func leaf() async throws {
    var costs: [[Int]] = []
    for leaves in [300, 30_000] {
      let (engine, database) = try await open(leaves)
      var cost: [Int] = []
      for (path, node) in [
        ("a/p1/k7/v", 1), ("a/p1/k8/new", 2), ("a/p2/k9/v", nil), ("b/c/d/e", 3), ("a/p1/k7/v/below", 4),
      ] as [(Path, Node)] {
        cost.append(
          try await engine.count { _ = try await database.set(path, to: node, as: .nobody) })
      }
      cost.append(
        try await engine.count {
          _ = try await database.update("a", [("p0/k1/v", 5), ("p2/k2/v", 6)], as: .nobody)
        })
      let increment = Node.leaf(.deferred(.increment(.int(1))))
      cost.append(
        try await engine.count { _ = try await database.set("a/p0/k5/v", to: increment, as: .nobody) })
      cost.append(try await engine.count { _ = try await database.get("a/p0/k5/v", as: .nobody) })
      costs.append(cost)
    }
    #expect(costs[0] == costs[1])
    #expect(costs[0].allSatisfy { $0 <= 24 }, "\(costs[0])")
  }

  @Test("An increment that replaces a large object (it counts from zero) does not read the object")
  func increment() async throws {
    let (engine, database) = try await open(4_000)
    let increment = Node.leaf(.deferred(.increment(.int(2))))
    let cost = try await engine.count { _ = try await database.set("a", to: increment, as: .nobody) }
    #expect(cost < 1_200, "\(cost) rows")
    #expect(try await database.get("a", as: .nobody) == 2)
  }

  @Test("A listen on a large location reads each row about once; later listens and writes use the cache")
  func listen() async throws {
    let (engine, database) = try await open(10_000)
    let client = Client(database)
    let listening = await engine.count { await client.call { $0.listen("a", hash: "", request: $1) } }
    // The execution of the listen reads up to 1,000 rows before the engine continues it in the background. Each chunk of
    // the background read then adds a few rows.
    #expect(listening >= 10_000 && listening <= 11_800, "\(listening) rows for 10,000 leaves")
    let second = await engine.count {
      await Client(database).call { $0.listen("a", hash: "", request: $1) }
    }
    #expect(second < 10, "\(second) rows for a cached value")
    let writing = try await engine.count { _ = try await database.set("a/p3/k4/v", to: 9, as: .nobody) }
    #expect(writing < 24, "\(writing) rows")
    _ = try await database.getShallow("a", as: .nobody)
    let shallow = try await engine.count { _ = try await database.getShallow("a", as: .nobody) }
    #expect(shallow <= 420, "\(shallow) rows for 100 children")
  }

  @Test("An update of many small children reads at most a few rows for each child")
  func manyChildren() async throws {
    let (engine, database) = try await open(3_000)
    let removing = try await engine.count {
      _ = try await database.update("a/p1", (0..<90).map { (Path("k\($0)"), .empty) }, as: .nobody)
    }
    #expect(removing <= 4 * 90 + 24, "\(removing) rows for 90 children")
    let adding = try await engine.count {
      _ = try await database.update("a/p1", (0..<90).map { (Path("n\($0)"), 1) }, as: .nobody)
    }
    // One scan shows that none of the new children exists.
    #expect(adding <= 24, "\(adding) rows for 90 leaves")
    let remaining =
      (0..<10).map { "k9\($0):{v:9\($0)}" } + (0..<90).map { "n\($0)" }.sorted().map { "\($0):1" }
    #expect(try await database.get("a/p1", as: .nobody).text == "{\(remaining.joined(separator: ","))}")
  }

  @Test(
    "Removing all children of a location in one update also removes its priority")
  func priorities() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("p")
    let value = Node.object([
      ("x", .object([("a", 1), ("b", 2)], priority: .number(1))),
      ("y", .object([("a", 1), ("b", 2)], priority: .number(2))), ("z", 3),
    ])
    _ = try await database.set("/", to: value, as: .nobody)
    _ = try await database.update(
      "/", [("x/a", .empty), ("x/b", .empty), ("x/c", .empty), ("y/a", .empty), ("y/c", .empty)],
      as: .nobody)
    _ = try await database.set("x/d", to: 4, as: .nobody)
    #expect(try await database.get("/", as: .nobody).text == "{x:{d:4},y:{b:2}^2,z:3}")
    // The first child of the update turns the leaf into an object, which keeps the leaf's priority.
    _ = try await database.set("z", to: .leaf(.int(3), priority: .number(9)), as: .nobody)
    _ = try await database.update("z", [("m", 1), ("n", 2)], as: .nobody)
    #expect(try await database.get("z", as: .nobody).text == "{m:1,n:2}^9")
  }

  @Test("A removal reads and clears a bounded number of rows, however large the subtree is")
  func removal() async throws {
    var costs: [Int] = []
    for leaves in [4_000, 40_000] {
      let (engine, database) = try await open(leaves)
      costs.append(try await engine.count { _ = try await database.set("a", to: .empty, as: .nobody) })
      let writing = try await engine.count { _ = try await database.set("a/p3/k4/v", to: 9, as: .nobody) }
      #expect(writing < 30, "\(writing) rows where \(leaves) wait to be cleared")
      #expect(try await database.get("/", as: .nobody).text == "{a:{p3:{k4:{v:9}}}}")
    }
    #expect(costs[0] == costs[1])
    #expect(costs[0] < 1_100, "\(costs)")
  }
}
