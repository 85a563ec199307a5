// Windows in key order, read from rows: they are those of the whole location, and cost no more than themselves.

import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Windows in the order of keys", .timeLimit(.minutes(2)))
struct KeyOrderTests {
  /// A database of which nothing is in memory, on an engine that counts.
  private func open(_ name: String) async throws -> (CountingEngine, EngineStore, RealtimeDatabase) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingInterval: 0))
    return (engine, store, try await reopen(store, name))
  }

  private func reopen(_ store: EngineStore, _ name: String) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: store, policy: EmulatorPolicy(), cacheBytes: 0).database(name)
  }

  /// Keys of every kind: integers with and without zeros before them, push ids, texts around them, and texts whose order
  /// by bytes is another.
  private static func key(_ values: inout RandomNodes, isSimple: Bool) -> String {
    switch values.below(isSimple ? 6 : 8) {
    case 0: "\(values.below(120) - 20)"
    case 1:
      ["007", "00", "-0", "-01", "2147483647", "2147483648", "-2147483648", "-2147483649"][values.below(8)]
    case 2: "-N\(["a", "b", "_", "Z"][values.below(4)])\(values.below(30))"
    case 3: "\(values.below(20))\(["a", "-", " ", "é"][values.below(4)])"
    case 4: ["-", "--", "a", "aa", "ab", "b", "~", " ", "-a", ":", "-:"][values.below(11)]
    case 5: "k\(values.below(40))"
    case 6: "k\(["\u{E000}", "\u{FFFD}", "😀", "𐀀", "z"][values.below(5)])\(values.below(3))"
    default: ["\u{FF5E}", "😀"][values.below(2)]
    }
  }

  @Test("A window by key, or by priority where none is, is that of the whole location", arguments: 0..<40)
  func property(seed: Int) async throws {
    var values = RandomNodes(seed: UInt64(seed) &+ 11_000)
    let (_, store, filling) = try await open("keys")
    let isSimple = seed % 2 == 0
    let hasPriorities = seed % 5 == 4
    var model = Node.empty
    for _ in 0..<values.below(60) {
      var child = values.below(3) == 0 ? values.node() : Node.leaf(.int(Int64(values.below(9))))
      if !hasPriorities { child = child.withoutPriorities }
      model = model.settingChild(Key(Self.key(&values, isSimple: isSimple)), to: child)
    }
    _ = try await filling.set("list", to: model, as: .anonymous)
    for other in ["lis", "list!", "lisu"] {
      _ = try await filling.set(Path([Key(other)]), to: ["1": 2], as: .anonymous)
    }
    let database = try await reopen(store, "keys")
    for _ in 0..<60 {
      var query = QuerySpec(ordering: values.below(2) == 0 ? .key : .priority)
      func bound() -> QuerySpec.Bound {
        let key = Self.key(&values, isSimple: isSimple)
        let isInclusive = values.below(3) > 0
        if query.ordering == .key {
          let text = [key, "[MIN_NAME]", "[MAX_NAME]"][max(0, values.below(12) - 9)]
          return .init(.string(text), isInclusive: isInclusive)
        }
        let value: LeafValue? = values.below(4) == 0 ? .int(Int64(values.below(3))) : nil
        return .init(value, key: values.below(3) == 0 ? nil : Key(bound: key), isInclusive: isInclusive)
      }
      if values.below(2) == 0 { query.start = bound() }
      if values.below(2) == 0 { query.end = bound() }
      switch values.below(4) {
      case 0: query.limit = .first(1 + values.below(8))
      case 1, 2: query.limit = .last(1 + values.below(8))
      default: break
      }
      let found = try await database.get("list", query: query, as: .anonymous)
      #expect(
        found == (query.showsAll ? model : model.window(query)), "seed \(seed): \(query) of \(model.text)")
      if query.ordering == .key, !query.showsAll {
        let shallow = try await database.getShallow("list", query: query, as: .anonymous)
        #expect(
          shallow == ShallowNode(model.window(query)), "seed \(seed): shallow \(query) of \(model.text)")
      }
    }
  }

  @Test("A window by key costs its children, however many there are beside them")
  func cost() async throws {
    var costs: [[Int]] = []
    for count in [300, 6_000] {
      let (engine, store, filling) = try await open("wide")
      for part in 0..<(count / 100) {
        let changes = (0..<100).map { n -> (Path, Node) in
          (
            Path(keys: [Key("-N\(10_000 + part * 100 + n)")]),
            ["text": "what was said", "at": .leaf(.int(Int64(n)))]
          )
        }
        _ = try await filling.update("list", changes, as: .anonymous)
      }
      let database = try await reopen(store, "wide")
      // A database that opens looks for what is to be built or cleared, which reads rows too.
      #expect(try await eventually { database.builder.looks > 0 })
      await database.cleaner.stop()
      var cost: [Int] = []
      for query in [
        QuerySpec(limit: .last(10)), QuerySpec(ordering: .key, limit: .first(10)),
        QuerySpec(ordering: .key, start: .init(.string("-N10100")), end: .init(.string("-N10109"))),
        QuerySpec(ordering: .key, end: .init(.string("-N10100"), isInclusive: false), limit: .last(10)),
      ] {
        cost.append(
          try await engine.count {
            let found = try await database.get("list", query: query, as: .anonymous)
            #expect(found.childCount == 10, "\(query)")
          })
        #expect(cost.last ?? 0 < 120, "\(query)")
      }
      let shallow = try await engine.count {
        let query = QuerySpec(ordering: .key, limit: .first(1))
        let found = try await database.getShallow("list", query: query, as: .anonymous)
        #expect(found == .children(["-N10000"]))
      }
      cost.append(shallow)
      costs.append(cost)
    }
    #expect(zip(costs[0], costs[1]).allSatisfy { $1 <= $0 + 2 }, "\(costs)")
  }

  @Test("A priority anywhere makes the order by priority one that is looked at whole, also over restarts")
  func priorities() async throws {
    let (_, store, database) = try await open("priorities")
    let list = Node.object((0..<20).map { (Key("k\($0)"), Node.leaf(.int(Int64($0)))) })
    _ = try await database.set("list", to: list, as: .anonymous)
    let query = QuerySpec(limit: .last(1))
    #expect(try await database.get("list", query: query, as: .anonymous) == ["k9": 9])
    _ = try await database.set("list/k3/.priority", to: 1, as: .anonymous)
    let moved = list.setting("k3/.priority", to: 1).window(query)
    #expect(moved.childCount == 1 && !moved.child("k3").isEmpty)
    #expect(try await database.get("list", query: query, as: .anonymous) == moved)
    #expect(try await reopen(store, "priorities").get("list", query: query, as: .anonymous) == moved)
  }
}

extension Node {
  /// The value without any priority in it.
  fileprivate var withoutPriorities: Node {
    guard case .children = content else { return with(priority: nil) }
    var children: [(Key, Node)] = []
    forEachChild { key, child in
      children.append((key, child.withoutPriorities))
      return true
    }
    return .object(children)
  }
}
