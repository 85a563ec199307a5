// Tests index rows. Their keys sort in the protocol's order, and they always match the values. A query reads only the
// rows of its window, the children that it selects.

import Access
import EmbeddedStore
import Foundation
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Indexes of the Realtime Database", .timeLimit(.minutes(10)))
struct IndexTests {
  private static let rules = #"{"rules":{"notes":{".indexOn":["due","a/b",".value"]}}}"#

  private func publish(_ text: String, in database: RealtimeDatabase) async throws {
    try await database.setRules(try RulesFile(Array(text.utf8)), as: .administrator)
  }

  @Test("Index rows sort like the children that they stand for", arguments: 0..<20)
  func order(seed: Int) {
    var generator = RandomNodes(seed: UInt64(seed) &+ 7_000)
    func value() -> OrderingValue {
      switch generator.below(8) {
      case 0: return .null
      case 1: return .object
      case 2: return .leaf(.int(Int64.random(in: .min ... .max, using: &generator.random)))
      case 3: return .leaf(.int((1 << 53) + Int64(generator.below(5))))
      case 4: return .leaf(.double(Double.random(in: -1e9...1e9, using: &generator.random)))
      case 5: return .leaf(.string((0..<generator.below(4)).map { _ in generator.key() + "\0" }.joined()))
      default: return .leaf(generator.leaf())
      }
    }
    let sortKeys = (0..<200).map { _ in SortKey(value: value(), key: ChildKey(generator.key())) }
    for a in sortKeys {
      for b in sortKeys {
        let (x, y) = (IndexRows.row(a).key, IndexRows.row(b).key)
        #expect(x.lexicographicallyPrecedes(y) == (a < b), "\(a) \(b)")
      }
    }
  }

  @Test("A query with an index reads its window, also in a location larger than a response")
  func window() async throws {
    var limits = RealtimeLimits.standard
    limits.responseBytes = 20_000
    let store = try MemoryStore()
    let engine = RealtimeEngine(store: store, policy: OpenPolicy(), limits: limits)
    let database = try await engine.database("indexes")
    for part in 0..<10 {
      let notes = (0..<200).map { n -> (Path, Node) in
        (
          Path(keys: [ChildKey("n\(part * 200 + n)")]),
          ["due": .leaf(.int(Int64((part * 200 + n) * 7 % 2_000))), "text": "what is to be done"]
        )
      }
      _ = try await database.update("notes", notes, as: .administrator)
    }
    await #expect(throws: RealtimeError.tooBig) { try await database.get("notes", as: .nobody) }
    try await publish(Self.rules, in: database)
    try await waitUntilBuilt(store, "indexes")
    func keys(_ query: QuerySpec) async throws -> [String] {
      let found = try await database.get("notes", query: query, as: .nobody)
      return found.sortedChildren(by: query.ordering).compactMap { $0.node.child("due").leafValue?.number }
        .map {
          "\(Int($0.doubleValue))"
        }
    }
    let due = Ordering.child("due")
    #expect(try await keys(QuerySpec(ordering: due, limit: .first(3))) == ["0", "1", "2"])
    #expect(try await keys(QuerySpec(ordering: due, limit: .last(2))) == ["1998", "1999"])
    #expect(
      try await keys(QuerySpec(ordering: due, start: .init(.int(500)), end: .init(.int(502)))) == [
        "500", "501", "502",
      ])
    #expect(
      try await keys(
        QuerySpec(ordering: due, start: .after(.int(500)), limit: .first(1))) == ["501"])
    #expect(try await keys(QuerySpec(ordering: due, start: .init(.int(5_000)))).isEmpty)
    #expect(
      try await keys(QuerySpec(ordering: due, start: .init(.int(9)), end: .init(.int(3)))).isEmpty)
    // A write moves a child in the index, and a client's read shows the new order.
    _ = try await database.set("notes/n0/due", to: 7_000, as: .administrator)
    #expect(try await keys(QuerySpec(ordering: due, limit: .last(1))) == ["7000"])
    let client = Client(database)
    let answer = await client.call {
      $0.get("notes", query: QuerySpec(ordering: due, limit: .last(1)), request: $1)
    }
    #expect(answer.text == "ok {n0:{due:7000,text:'what is to be done'}}")
    // This window has more keys than the execution of an operation reads itself, so a background job reads the window.
    let wide = await client.call {
      $0.get("notes", query: QuerySpec(ordering: due, limit: .first(1_500)), request: $1)
    }
    #expect(wide.text == "too_big")
    await #expect(throws: RealtimeError.tooBig) {
      try await database.get("notes", query: QuerySpec(ordering: due, start: .init(.int(3))), as: .nobody)
    }
    await engine.shutdown()
  }

  @Test(
    "A removal clears the index rows of ancestors that it empties, even if these ancestors have priorities")
  func priorities() async throws {
    let store = try MemoryStore()
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy(), cacheBytes: 0)
      .database("gone")
    try await publish(Self.rules, in: database)
    try await waitUntilBuilt(store, "gone")
    var model = Node.object([
      ("n1", .object([("due", 5)], priority: .number(1))), ("n2", ["due": 7]),
      ("n3", .object([("a", .object([("b", 1)], priority: .number(2)))], priority: .number(3))),
      ("n4", .object([("due", 1), ("x", 2)], priority: .number(4))),
    ])
    _ = try await database.set("notes", to: model, as: .administrator)
    let query = QuerySpec(ordering: .child("due"), start: .init(.int(1)), limit: .first(1))
    for (path, shown) in [
      ("n4/due", "{n1:{due:5}^1}"), ("n1/due", "{n2:{due:7}}"), ("n3/a/b", "{n2:{due:7}}"),
      ("n4/x", "{n2:{due:7}}"),
    ] as [(Path, String)] {
      _ = try await database.set(Path("notes").appending(path), to: .empty, as: .administrator)
      model = model.setting(path, to: .empty)
      #expect(try await database.get("notes", query: query, as: .nobody).text == shown)
      let first = QuerySpec(ordering: .child("due"), limit: .first(1))
      #expect(try await database.get("notes", query: first, as: .nobody) == model.window(first))
      let root = try RulesFile(Array(Self.rules.utf8)).root
      #expect(try await rows(store, "gone") == expectedRows(["notes": model], root), "\(path)")
    }
  }

  @Test("Long strings, which index rows truncate, are ordered by their complete values")
  func longStrings() async throws {
    let store = try MemoryStore()
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("long")
    try await publish(Self.rules, in: database)
    let stem = String(repeating: "x", count: 2_000)
    let model: Node = ["c": .leaf(.string(stem + "1")), "b": .leaf(.string(stem + "2")), "a": "y", "d": "x"]
    _ = try await database.set("notes", to: model, as: .administrator)
    for query in [
      QuerySpec(ordering: .value, limit: .first(2)), QuerySpec(ordering: .value, limit: .last(1)),
      QuerySpec(ordering: .value, start: .after(.string(stem + "1"))),
      QuerySpec(ordering: .value, end: .init(.string("x"))),
      QuerySpec(ordering: .value, start: .init(.string("xx")), limit: .first(1)),
    ] {
      #expect(
        try await database.get("notes", query: query, as: .nobody) == model.window(query), "\(query)")
    }
  }

  @Test(
    "An interrupted index build continues at the next start, during concurrent writes", arguments: [1, 4])
  func resume(kills: Int) async throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var model = Node.empty
    for round in 0...(kills + 1) {
      let store = try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
      let engine = RealtimeEngine(store: store, policy: OpenPolicy())
      let database = try await engine.database("resume")
      if round == 0 {
        let notes = Node.object(
          (0..<6_000).map { (ChildKey("n\($0)"), ["due": .leaf(.int(Int64($0 * 31 % 6_000)))]) })
        model = model.setting("notes", to: notes)
        _ = try await database.set("notes", to: notes, as: .administrator)
        try await publish(Self.rules, in: database)
      }
      for n in 0..<20 {
        let location = Path(keys: ["notes", ChildKey("n\((round * 997 + n * 313) % 6_500)")])
        let value: Node = n % 3 == 0 ? .empty : ["due": .leaf(.int(Int64(n))), "a": ["b": true]]
        _ = try await database.set(location, to: value, as: .administrator)
        model = model.setting(location, to: value)
      }
      if round == kills + 1 {
        try await waitUntilBuilt(store, "resume")
        #expect(
          try await rows(store, "resume") == expectedRows(model, try RulesFile(Array(Self.rules.utf8)).root))
        let query = QuerySpec(ordering: .child("due"), limit: .first(40))
        #expect(
          try await database.get("notes", query: query, as: .nobody) == model.child("notes").window(query))
        await engine.shutdown()
      }
      // Closes the store beneath the engine, so that the index build is interrupted like in a crash.
      try await store.close()
    }
  }

  @Test(
    "After random writes, imports and rule changes the index rows equal the rows computed from the model",
    arguments: 0..<12)
  func property(seed: Int) async throws {
    let store = try MemoryStore()
    let engine = RealtimeEngine(
      store: store, policy: OpenPolicy(), cacheBytes: seed % 2 == 0 ? 2_000 : 1 << 20)
    var program = RandomProgram(seed: UInt64(7_000 + seed), database: try await engine.database("rows"))
    for _ in 0..<6 {
      await program.publish()
      for _ in 0..<40 { await program.step() }
      try await program.check()
      try await program.checkReads(10)
      try await waitUntilBuilt(store, "rows")
      try await program.checkReads(10)
      let rules = try #require(program.rules)
      #expect(try await rows(store, "rows") == expectedRows(program.model, rules.root), program.context)
    }
    await engine.shutdown()
  }

  @Test("The index rows of a large value are written, and cleared after its removal, in the background")
  func large() async throws {
    let store = try MemoryStore()
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("large")
    try await publish(Self.rules, in: database)
    var model = Node.empty
    // The value exceeds the bytes and rows that a write indexes itself, and the rows that one background step
    // reads.
    let text = Node.leaf(.string(String(repeating: "x", count: 80)))
    let wide = Node.object(
      (0..<4_000).map { (ChildKey("n\($0)"), ["due": .leaf(.int(Int64($0 % 777))), "text": text]) })
    let query = QuerySpec(ordering: .child("due"), start: .init(.int(5)), end: .init(.int(6)))
    for value in [wide, wide.settingChild("n3", to: 4), ["x": ["due": 5]], .empty] {
      _ = try await database.set("notes", to: value, as: .administrator)
      model = model.setting("notes", to: value)
      #expect(try await database.get("notes", query: query, as: .nobody) == value.window(query))
      try await waitUntilBuilt(store, "large")
      #expect(try await database.get("notes", query: query, as: .nobody) == value.window(query))
      #expect(
        try await rows(store, "large") == expectedRows(model, try RulesFile(Array(Self.rules.utf8)).root))
    }
  }

  // MARK: Expected rows

  private func expectedRows(_ model: Node, _ root: RuleNode) -> [[UInt8]: [UInt8]] {
    var expected: [[UInt8]: [UInt8]] = [:]
    func visit(_ node: Node, _ path: Path, _ rules: RuleNode) {
      node.forEachChild { key, child in
        for ordering in rules.indexes {
          let row = IndexRows.row(SortKey(of: key, child, in: ordering))
          expected[IndexRows.prefix(of: path, by: ordering) + row.key] = row.value
        }
        if let inner = rules.child(key) { visit(child, path.child(key), inner) }
        return true
      }
    }
    visit(model, .root, root)
    return expected
  }

  private func rows(_ store: any OrderedStore, _ name: String) async throws -> [[UInt8]: [UInt8]] {
    try await store.database(named: "realtime/\(name)", history: .activeReadersOnly).read(at: nil) { view in
      var rows: [[UInt8]: [UInt8]] = [:]
      try view.scan(KeyRange(prefix: [IndexRows.tree]), reverse: false) { key, value, _ in
        rows[Array(key)] = Array(value)
        return true
      }
      return rows
    }
  }

  /// Waits until no build is pending.
  private func waitUntilBuilt(_ store: any OrderedStore, _ name: String) async throws {
    let database = try await store.database(named: "realtime/\(name)", history: .activeReadersOnly)
    let deadline = ContinuousClock.now + .seconds(60)
    while try await database.read(at: nil, { try !IndexBuilds(in: $0).all.isEmpty }) {
      try #require(ContinuousClock.now < deadline, "the index is not built")
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
