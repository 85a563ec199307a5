// Tests windows (results of queries) in key order that are read from rows. Such a window must equal the window of the
// complete location, but the server must read only the rows of the window's children.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Windows in key order", .timeLimit(.minutes(2)))
struct KeyOrderTests {
  /// A database with an empty cache on an engine that counts row reads.
  private func open(_ name: String) async throws -> (CountingEngine, EngineStore, RealtimeDatabase) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    return (engine, store, try await reopen(store, name))
  }

  private func reopen(_ store: any OrderedStore, _ name: String) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: OpenPolicy(), cacheBytes: 0).database(name)
  }

  /// Returns a random key of one of many kinds: integers with and without leading zeros, push IDs, similar strings, and,
  /// unless `isSimple`, strings whose UTF-16 order differs from their byte order.
  private static func key(_ generator: inout RandomNodes, isSimple: Bool) -> String {
    switch generator.below(isSimple ? 6 : 8) {
    case 0: "\(generator.below(120) - 20)"
    case 1:
      ["007", "00", "-0", "-01", "2147483647", "2147483648", "-2147483648", "-2147483649"][generator.below(8)]
    case 2: "-N\(["a", "b", "_", "Z"][generator.below(4)])\(generator.below(30))"
    case 3: "\(generator.below(20))\(["a", "-", " ", "é"][generator.below(4)])"
    case 4: ["-", "--", "a", "aa", "ab", "b", "~", " ", "-a", ":", "-:"][generator.below(11)]
    case 5: "k\(generator.below(40))"
    case 6: "k\(["\u{E000}", "\u{FFFD}", "😀", "𐀀", "z"][generator.below(5)])\(generator.below(3))"
    default: ["\u{FF5E}", "😀"][generator.below(2)]
    }
  }

  @Test(
    "A window read from rows, in key or priority order, equals the window computed from the complete location",
    arguments: 0..<40)
  func property(seed: Int) async throws {
    var generator = RandomNodes(seed: UInt64(seed) &+ 11_000)
    let (_, store, filling) = try await open("keys")
    let isSimple = seed % 2 == 0
    let hasPriorities = seed % 5 == 4
    var model = Node.empty
    for _ in 0..<generator.below(60) {
      var child = generator.below(3) == 0 ? generator.node() : Node.leaf(.int(Int64(generator.below(9))))
      if !hasPriorities { child = child.withoutPriorities }
      model = model.settingChild(ChildKey(Self.key(&generator, isSimple: isSimple)), to: child)
    }
    _ = try await filling.set("list", to: model, as: .nobody)
    for other in ["lis", "list!", "lisu"] {
      _ = try await filling.set(Path([ChildKey(other)]), to: ["1": 2], as: .nobody)
    }
    let database = try await reopen(store, "keys")
    for _ in 0..<60 {
      var query = QuerySpec(ordering: generator.below(2) == 0 ? .key : .priority)
      func bound() -> QuerySpec.Bound {
        let key = Self.key(&generator, isSimple: isSimple)
        let isInclusive = generator.below(3) > 0
        if query.ordering == .key {
          let text = [key, "[MIN_NAME]", "[MAX_NAME]"][max(0, generator.below(12) - 9)]
          return .init(.string(text), isInclusive: isInclusive)
        }
        let value: LeafValue? = generator.below(4) == 0 ? .int(Int64(generator.below(3))) : nil
        return .init(
          value, key: generator.below(3) == 0 ? nil : ChildKey(bound: key), isInclusive: isInclusive)
      }
      if generator.below(2) == 0 { query.start = bound() }
      if generator.below(2) == 0 { query.end = bound() }
      switch generator.below(4) {
      case 0: query.limit = .first(1 + generator.below(8))
      case 1, 2: query.limit = .last(1 + generator.below(8))
      default: break
      }
      let found = try await database.get("list", query: query, as: .nobody)
      #expect(
        found == (query.showsAll ? model : model.window(query)), "seed \(seed): \(query) of \(model.text)")
      if query.ordering == .key, !query.showsAll {
        let shallow = try await database.getShallow("list", query: query, as: .nobody)
        #expect(
          shallow == ShallowNode(model.window(query)), "seed \(seed): shallow \(query) of \(model.text)")
      }
    }
  }

  @Test("A window in key order reads only its children's rows, however many other children exist")
  func cost() async throws {
    var costs: [[Int]] = []
    for count in [300, 6_000] {
      let (engine, store, filling) = try await open("wide")
      for part in 0..<(count / 100) {
        let changes = (0..<100).map { n -> (Path, Node) in
          (
            Path(keys: [ChildKey("-N\(10_000 + part * 100 + n)")]),
            ["text": "what was said", "at": .leaf(.int(Int64(n)))]
          )
        }
        _ = try await filling.update("list", changes, as: .nobody)
      }
      let database = try await reopen(store, "wide")
      // Waits for the background work after opening, because it also reads rows: it builds indexes and clears replaced
      // rows.
      #expect(try await eventually { database.builder.completedRuns > 0 })
      await database.cleaner.stop()
      var cost: [Int] = []
      for query in [
        QuerySpec(limit: .last(10)), QuerySpec(ordering: .key, limit: .first(10)),
        QuerySpec(ordering: .key, start: .init(.string("-N10100")), end: .init(.string("-N10109"))),
        QuerySpec(ordering: .key, end: .init(.string("-N10100"), isInclusive: false), limit: .last(10)),
      ] {
        cost.append(
          try await engine.count {
            let found = try await database.get("list", query: query, as: .nobody)
            #expect(found.childCount == 10, "\(query)")
          })
        #expect(cost.last ?? 0 < 120, "\(query)")
      }
      let shallow = try await engine.count {
        let query = QuerySpec(ordering: .key, limit: .first(1))
        let found = try await database.getShallow("list", query: query, as: .nobody)
        #expect(found == .children(["-N10000"]))
      }
      cost.append(shallow)
      costs.append(cost)
    }
    #expect(zip(costs[0], costs[1]).allSatisfy { $1 <= $0 + 2 }, "\(costs)")
  }

  @Test(
    "A window of a location with many integer keys equals that of the complete location", arguments: 0..<16)
  func numbers(seed: Int) async throws {
    var generator = RandomNodes(seed: UInt64(seed) &+ 12_000)
    let (_, store, filling) = try await open("numbers")
    func number() -> Int {
      // Integers of every length, close together and far apart.
      switch generator.below(6) {
      case 0: generator.below(10)
      case 1: generator.below(1_200)
      case 2: 99_990 + generator.below(20)
      case 3: 4_000 + generator.below(40) * 25
      case 4:
        [2_147_483_640, 1_000_000_000, 999_999_999, 20_000, 1_000][generator.below(5)] + generator.below(12)
      default: seed % 4 == 0 ? -generator.below(300) : generator.below(400)
      }
    }
    var model = Node.empty
    for _ in 0..<(200 + generator.below(500)) {
      let text =
        switch generator.below(24) {
        case 0: "0\(number())"
        case 1: "\(number())\(["a", "-", " ", ":"][generator.below(4)])"
        case 2: "-N\(number())"
        default: "\(number())"
        }
      model = model.settingChild(ChildKey(text), to: .leaf(.int(1)))
    }
    _ = try await filling.set("list", to: model, as: .nobody)
    let database = try await reopen(store, "numbers")
    for _ in 0..<40 {
      var query = QuerySpec(ordering: .key)
      if generator.below(3) > 0 {
        query.start = .init(.string("\(number())"), isInclusive: generator.below(2) == 0)
      }
      if generator.below(3) == 0 {
        query.end = .init(.string("\(number())"), isInclusive: generator.below(2) == 0)
      }
      switch generator.below(4) {
      case 0: query.limit = .last(1 + generator.below(30))
      case 1 where query.end != nil: break
      default: query.limit = .first(1 + generator.below(60))
      }
      let found = try await database.get("list", query: query, as: .nobody)
      #expect(found == model.window(query), "seed \(seed): \(query)")
    }
  }

  @Test("Windows read only their children's rows, even among integer keys and non-ASCII keys")
  func costOfNumbers() async throws {
    var costs: [[Int]] = []
    for count in [600, 6_000] {
      let (engine, store, filling) = try await open("wide")
      for part in 0..<(count / 100) {
        let changes = (0..<100).flatMap { n -> [(Path, Node)] in
          let number = part * 100 + n
          let lead = ["\u{E000}", "\u{FFFD}", "\u{10000}", "\u{1F600}"][number % 4]
          return [
            (Path(keys: ["array", ChildKey("\(number)")]), ["at": 1, "text": "x"]),
            (Path(keys: ["mixed", ChildKey("\(number)")]), ["at": 1]),
            (Path(keys: ["mixed", ChildKey("k\(10_000 + number)")]), ["at": 1]),
            (Path(keys: ["wide", ChildKey("k\(lead)\(10_000 + number)")]), ["at": 1]),
          ]
        }
        _ = try await filling.update("/", changes, as: .nobody)
      }
      let database = try await reopen(store, "wide")
      #expect(try await eventually { database.builder.completedRuns > 0 })
      await database.cleaner.stop()
      var cost: [Int] = []
      let windows: [(Path, QuerySpec)] = [
        ("array", QuerySpec(limit: .first(10))),
        ("array", QuerySpec(ordering: .key, start: .init(.string("123")), end: .init(.string("132")))),
        ("array", QuerySpec(ordering: .key, start: .init(.string("97")), limit: .first(10))),
        ("mixed", QuerySpec(limit: .last(10))),
        ("wide", QuerySpec(limit: .first(10))), ("wide", QuerySpec(limit: .last(10))),
        ("wide", QuerySpec(ordering: .key, start: .init(.string("k\u{FFFD}1030")), limit: .first(10))),
        ("wide", QuerySpec(ordering: .key, end: .init(.string("k\u{10000}1030")), limit: .last(10))),
      ]
      for (path, query) in windows {
        cost.append(
          try await engine.count {
            let found = try await database.get(path, query: query, as: .nobody)
            #expect(found.childCount == 10, "\(path) \(query)")
          })
        #expect(cost.last ?? 0 < 150, "\(path) \(query)")
      }
      costs.append(cost)
    }
    // Integer keys of different lengths are in different row ranges. A few keys of other lengths are read
    // too.
    #expect(zip(costs[0], costs[1]).allSatisfy { $1 <= $0 + 24 }, "\(costs)")
  }

  @Test(
    "With or without priorities on the children, windows read from rows equal windows of the complete location",
    arguments: 0..<24)
  func prioritiesAnywhere(seed: Int) async throws {
    var generator = RandomNodes(seed: UInt64(seed) &+ 13_000)
    let store = try MemoryStore()
    let staging: StagingLimits = seed % 3 == 0 ? .tiny : .standard
    let filling = try await RealtimeEngine(store: store, policy: OpenPolicy(), staging: staging)
      .database("priorities")
    var model = Node.empty
    func check(_ database: RealtimeDatabase) async throws {
      for _ in 0..<12 {
        let path = generator.path()
        var query = QuerySpec(
          limit: generator.below(2) == 0 ? .first(1 + generator.below(3)) : .last(1 + generator.below(3)))
        if generator.below(3) == 0 { query.start = generator.bound(.priority) }
        let found = try await database.get(path, query: query, as: .nobody)
        #expect(found == model.descendant(path).window(query), "seed \(seed): \(path) \(query)")
      }
    }
    for round in 0..<30 {
      let path = generator.path()
      // Only a few values have priorities, so most locations have none.
      var node = generator.below(5) == 0 ? generator.node() : generator.node().withoutPriorities
      if generator.below(20) == 0 { node = .empty }
      if generator.below(6) == 0 {
        let priority = Node.leaf(.int(Int64(generator.below(3))))
        _ = try await filling.set(path.child(.priority), to: priority, as: .nobody)
        model = model.setting(path.child(.priority), to: priority)
      }
      if generator.below(3) == 0, !path.isRoot {
        _ = try await filling.update("/", [(path, node)], as: .nobody)
      } else {
        _ = try await filling.set(path, to: node, as: .nobody)
      }
      model = model.setting(path, to: node)
      if round % 6 == 5 { try await check(reopen(store, "priorities")) }
    }
  }

  @Test(
    "Priorities in one location do not prevent reading windows of other locations from rows, also after a restart"
  )
  func costWithPrioritiesElsewhere() async throws {
    let (engine, store, filling) = try await open("priorities")
    let list = Node.object((0..<3_000).map { (ChildKey("k\(10_000 + $0)"), ["at": .leaf(.int(Int64($0)))]) })
    for path in ["rooms/a/list", "rooms/b/list"] {
      _ = try await filling.set(Path(path), to: list, as: .nobody)
    }
    _ = try await filling.set("rooms/b/list/k10007/.priority", to: 3, as: .nobody)
    _ = try await filling.set("flag", to: .leaf(.int(1), priority: .number(2)), as: .nobody)
    let database = try await reopen(store, "priorities")
    #expect(try await eventually { database.builder.completedRuns > 0 })
    await database.cleaner.stop()
    let query = QuerySpec(limit: .last(3))
    let cost = try await engine.count {
      let found = try await database.get("rooms/a/list", query: query, as: .nobody)
      #expect(found == list.window(query))
    }
    #expect(cost < 60, "\(cost) rows")
    let found = try await database.get("rooms/b/list", query: query, as: .nobody)
    #expect(found == list.setting("k10007/.priority", to: 3).window(query))
  }

  @Test("After a child gets a priority, priority order differs from key order, also after a restart")
  func priorities() async throws {
    let (_, store, database) = try await open("priorities")
    let list = Node.object((0..<20).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    _ = try await database.set("list", to: list, as: .nobody)
    let query = QuerySpec(limit: .last(1))
    #expect(try await database.get("list", query: query, as: .nobody) == ["k9": 9])
    _ = try await database.set("list/k3/.priority", to: 1, as: .nobody)
    let moved = list.setting("k3/.priority", to: 1).window(query)
    #expect(moved.childCount == 1 && !moved.child("k3").isEmpty)
    #expect(try await database.get("list", query: query, as: .nobody) == moved)
    #expect(try await reopen(store, "priorities").get("list", query: query, as: .nobody) == moved)
  }
}

extension Node {
  /// The value without priorities.
  fileprivate var withoutPriorities: Node {
    guard case .children = content else { return with(priority: nil) }
    var children: [(ChildKey, Node)] = []
    forEachChild { key, child in
      children.append((key, child.withoutPriorities))
      return true
    }
    return .object(children)
  }
}
