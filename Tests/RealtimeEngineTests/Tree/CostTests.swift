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
    let store = try EngineStore(engine, StoreOptions(trimmingInterval: 0))
    let filling = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("cost")
    for part in 0..<(leaves / 100) {
      let node = Node.object((0..<100).map { (Key("k\($0)"), Node.object([("v", .leaf(.int(Int64($0))))])) })
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
