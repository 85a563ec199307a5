// Tests the view of the tree that policies read: it agrees with values in memory, and reads no subtree.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("The policies' view of the tree", .timeLimit(.minutes(10)))
struct TreeAccessViewTests {
  /// Compares every answer of a view with a value in memory.
  private func compare(
    _ view: TreeAccessView, _ state: TreeState, _ expected: Node, at path: Path, _ context: Comment
  ) throws {
    let node = expected.descendant(path)
    let content = try view.content(at: path, state)
    switch (content, node.content) {
    case (.empty, .empty), (.children, .children): break
    case (.leaf(let found), .leaf(let value)): #expect(found == value, context)
    default: Issue.record("\(context): \(path) has \(content), not \(node.content)")
    }
    #expect(try view.priority(at: path, state) == node.priority, "\(context): priority of \(path)")
    var last: RealtimeModel.ChildKey?
    for limit in 1...3 {
      let keys = try view.childKeys(at: path, after: last, limit: limit, state)
      let rest = node.childKeys.drop { key in last.map { key <= $0 } ?? false }
      #expect(keys == Array(rest.prefix(limit)), "\(context): keys of \(path) after \(last?.text ?? "none")")
      last = keys.last ?? last
    }
  }

  @Test(
    "A view shows the states before and after a random write exactly as values in memory have them",
    arguments: 0..<24)
  func property(seed: Int) async throws {
    var generator = RandomNodes(seed: UInt64(seed))
    let database = try await RealtimeEngine(
      store: MemoryStore(), policy: OpenPolicy(), cacheBytes: seed % 2 == 0 ? 2_000 : 1 << 20,
      staging: seed % 3 == 0 ? .tiny : .standard
    ).database("views")
    var model = Node.empty
    for step in 0..<30 {
      var changes: [(Path, Node)] = []
      for _ in 0...generator.below(4) {
        var path = generator.path()
        if path.isRoot { path = path.child("a") }
        if generator.below(4) == 0 { path = path.child(.priority) }
        changes.removeAll { path.contains($0.0) || $0.0.contains(path) }
        let removes = generator.below(3) == 0
        let priority = Node.leaf(.int(Int64(generator.below(3))))
        changes.append((path, removes ? .empty : path.isPriority ? priority : generator.node()))
      }
      changes.sort { $0.0 < $1.0 }
      let before = model
      let paths =
        changes.flatMap { change in
          (0...change.0.dataPath.count).map { Path(change.0.keys.prefix($0)) }
        } + (0..<5).map { _ in generator.path() }
      let isCached = generator.below(2) == 0
      let executor = database.runner.executor
      // A write sets priorities last.
      let after = before.merging(changes.filter { !$0.0.isPriority })
        .merging(changes.filter(\.0.isPriority))
      if database.exists {
        try await database.runner.store.read(at: nil) { [changes] base in
          let tree = Tree(
            view: try executor.generations.durable.view(base),
            cache: isCached ? TreeCache(budget: 1 << 20) : nil, limits: .standard)
          if isCached { _ = try tree.node(at: "a") }
          let view = TreeAccessView(tree, changes: changes.map { (path: $0.0, value: $0.1) }, now: 0)
          for path in paths {
            try compare(view, .after, after, at: path, "seed \(seed), step \(step): after")
            try compare(view, .before, before, at: path, "seed \(seed), step \(step): before")
          }
        }
      }
      _ = try await database.update("/", changes, as: .administrator)
      model = after
      #expect(try await database.get("/", as: .administrator) == model, "seed \(seed), step \(step)")
    }
    await database.shutdown()
  }

  @Test("A view of a large location reads a few rows, before and after a write inside it")
  func cost() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("views")
    let many = Node.object((0..<20_000).map { (RealtimeModel.ChildKey("k\($0)"), Node.leaf(.int(1))) })
    _ = try await database.set("large", to: many, as: .administrator)
    let executor = database.runner.executor
    let rows = try await database.runner.store.read(at: nil) { base in
      let counting = CountingView(try executor.generations.durable.view(base))
      let tree = Tree(view: counting, cache: nil, limits: .standard)
      let view = TreeAccessView(tree, changes: [("large/k1", .empty), ("large/new", .leaf(.int(1)))], now: 0)
      for state in [TreeState.before, .after] {
        #expect(try view.exists(at: "large", state))
        #expect(try view.exists(at: "/", state))
        #expect(try view.firstKey(at: "large", state) == "k0")
        #expect(try view.leaf(at: "large/k7", state) == .int(1))
        #expect(try view.priority(at: "large", state) == nil)
      }
      #expect(try view.exists(at: "large/k1", .before))
      #expect(try !view.exists(at: "large/k1", .after))
      return counting.rows
    }
    #expect(rows < 60)
    await database.shutdown()
  }

  private func child(_ key: String) -> Path { Path(keys: ["large", RealtimeModel.ChildKey(key)]) }

  /// Reads a view of a location with `count` stored children and a priority. Returns how many rows and calls of the
  /// store this takes.
  private func readCost(
    _ count: Int, _ changes: [(path: Path, value: Node)], steps: Int? = nil,
    _ body: @escaping @Sendable (TreeAccessView) throws -> Void
  ) async throws -> (rows: Int, calls: Int) {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("views")
    let old = Node.object((0..<count).map { (RealtimeModel.ChildKey("k\($0)"), Node.leaf(.int(1))) })
    _ = try await database.set("large", to: old, as: .administrator)
    _ = try await database.set("large/.priority", to: .leaf(.int(1)), as: .administrator)
    let executor = database.runner.executor
    let found = try await database.runner.store.read(at: nil) { base in
      let counting = CountingView(try executor.generations.durable.view(base))
      try body(
        TreeAccessView(
          Tree(view: counting, cache: nil, limits: .standard), changes: changes.sorted { $0.path < $1.path },
          now: 0, work: steps.map { DecisionWork(steps: $0) }))
      return (counting.rows, counting.calls)
    }
    await database.shutdown()
    return found
  }

  /// The result of reads; nil if they were interrupted.
  private static func uninterrupted<Result>(_ body: () throws -> Result) throws -> Result? {
    do { return try body() } catch is DecisionInterrupted { return nil }
  }

  @Test("A small work limit interrupts a decision before the view has scanned rows around every change")
  func work() async throws {
    let changes = (0..<500).map { (path: child("k\($0)"), value: Node.empty) }
    let added = changes + [(path: child("z"), value: .leaf(.int(1)))]
    for (steps, isEnough) in [(100, false), (2_000, false), (100_000, true)] {
      let costs = try await readCost(500, changes, steps: steps) { view in
        let exists = try Self.uninterrupted { try view.exists(at: "large", .after) }
        #expect(exists == (isEnough ? false : nil))
      }
      if !isEnough { #expect(costs.calls < 150) }
      _ = try await readCost(500, added, steps: steps) { view in
        let keys = try Self.uninterrupted {
          let priority = try view.priority(at: "large", .after)
          #expect(priority == nil)
          return try view.childKeys(at: "large", after: nil, limit: 2, .after)
        }
        #expect(keys == (isEnough ? ["z"] : nil))
      }
    }
  }

  @Test("A view derives the priority of a location above many changes only once for each write")
  func priorityCost() async throws {
    let count = 500
    // All old children are removed before the new one is written, so that the priority is lost.
    var changes: [(path: Path, value: Node)] = (0..<count).map { (path: child("k\($0)"), value: .empty) }
    changes.append((path: child("z"), value: .leaf(.int(1))))
    let once = try await readCost(count, changes) { view in
      let priority = try view.priority(at: "large", .after)
      #expect(priority == nil)
    }
    let often = try await readCost(count, changes) { view in
      for _ in 0..<count {
        let priority = try view.priority(at: "large", .after)
        #expect(priority == nil)
      }
    }
    #expect(often == once)
  }

  @Test(
    "When the keys of a location with many changes are read in pages, each stored key is read only a few times"
  )
  func pageCost() async throws {
    let count = 2_000
    let changes = (0..<count).map { index -> (path: Path, value: Node) in
      index % 2 == 0
        ? (path: child("k\(index)"), value: .empty) : (path: child("n\(index)"), value: .leaf(.int(1)))
    }
    let cost = try await readCost(count, changes) { view in
      var keys: [RealtimeModel.ChildKey] = []
      while true {
        let page = try view.childKeys(at: "large", after: keys.last, limit: 16, .after)
        if page.isEmpty { break }
        keys += page
      }
      #expect(keys.count == count)
      #expect(keys == keys.sorted())
    }
    #expect(cost.rows < 10 * count)
  }
}

/// A view that counts its calls and the rows that it returns.
private final class CountingView: ReadView {
  private let base: any ReadView
  private(set) var rows = 0
  private(set) var calls = 0

  init(_ base: any ReadView) { self.base = base }

  var version: Version { base.version }

  func get(_ key: [UInt8]) throws -> VersionedValue? {
    rows += 1
    calls += 1
    return try base.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    calls += 1
    try base.scan(range, reverse: reverse) { key, value, version in
      rows += 1
      return try visit(key, value, version)
    }
  }
}
