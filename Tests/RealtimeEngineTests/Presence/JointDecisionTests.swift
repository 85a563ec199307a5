// Tests which onDisconnect operations are performed if the policy permits each of them alone and denies them together.

import Access
import Locking
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Joint decisions of onDisconnect operations", .timeLimit(.minutes(2)))
struct JointDecisionTests {
  /// The value after all earlier operations.
  private func value(_ database: RealtimeDatabase) async throws -> Node {
    let client = Client(database, as: .administrator)
    guard case .value(let node) = await client.call({ $0.get("/", request: $1) }) else {
      throw RealtimeError(.failure, "no value")
    }
    return node
  }

  @Test(
    "Hundreds of operations are performed although other operations of the session break a rule in combination"
  )
  func many() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: PairPolicy()).database("presence")
    let phone = Client(database, as: .user("u1"))
    for number in 0..<300 {
      let path = Path(keys: [ChildKey("free"), ChildKey("k\(number)")])
      await phone.call { $0.onDisconnectSet(path, to: 1, request: $1) }
      if number % 100 == 50 {
        for name in ["b", "a"] {
          let seat = Path(keys: [ChildKey("pairs"), ChildKey("p\(number)"), ChildKey(name)])
          #expect(await phone.call { $0.onDisconnectSet(seat, to: 1, request: $1) }.text == "ok")
        }
      }
    }
    phone.connection.close()
    let value = try await value(database)
    #expect(value.descendant("free").childKeys.count == 300)
    #expect(value.descendant("pairs").text == "{p150:{b:1},p250:{b:1},p50:{b:1}}")
  }

  @Test("Operations whose decisions would exceed the allowed work are dropped and reported")
  func bound() async throws {
    let reports = Guarded<[String]>([])
    let database = try await RealtimeEngine(
      store: MemoryStore(), policy: PairPolicy(), report: { report in reports.withLock { $0.append(report) } }
    ).database("presence")
    let phone = Client(database, as: .user("u1"))
    let text = Node.leaf(.string(String(repeating: "x", count: 64 << 10)))
    for number in 0..<64 {
      for name in ["a", "b"] {
        let seat = Path(keys: [ChildKey("pairs"), ChildKey("p\(number)"), ChildKey(name)])
        #expect(await phone.call { $0.onDisconnectSet(seat, to: text, request: $1) }.text == "ok")
      }
    }
    phone.connection.close()
    let pairs = try await value(database).descendant("pairs")
    #expect(pairs.childKeys.count > 8 && pairs.childKeys.count < 64)
    for (number, key) in pairs.childKeys.enumerated() {
      #expect(key.text.hasPrefix("p") && pairs.child(key).childKeys.map(\.text) == ["a"])
      #expect(!pairs.child(ChildKey("p\(number)")).isEmpty)
    }
    #expect(reports.withLock { $0.filter { $0.contains("onDisconnect operations dropped") }.count } == 1)
  }
}

/// Denies writes after which a child of `pairs` has both children `a` and `b`.
private struct PairPolicy: AccessPolicy {
  typealias Product = RealtimeAccess
  func decide(
    _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision {
    guard operation.changesData else { return .allowed }
    for path in operation.paths where path.first?.text == "pairs" && path.count == 3 {
      let pair = Path(keys: Array(path.keys.dropLast()))
      if try view.exists(at: pair.child(ChildKey("a")), .after),
        try view.exists(at: pair.child(ChildKey("b")), .after)
      {
        return .deny(reason: "both children exist")
      }
    }
    return .allowed
  }
}
