// Tests the pushes for updates of several paths around priorities.

import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Pushes for updates around priorities", .timeLimit(.minutes(10)))
struct PriorityPushTests {
  private static let three = Node.leaf(.int(3))

  @Test(
    "A location with a priority that keeps no child is sent as a whole",
    arguments: [
      // The update creates a location with its priority.
      (Node.empty, [("c/.priority", three), ("c/x", 1)], "d p/c {x:1}^3"),
      ([:], [("c/.priority", three), ("c/x", 1), ("d", 2)], "m p {c:{x:1}^3,d:2}"),
      // The update replaces all children.
      (
        ["c": .object([("10", 1)], priority: .number(3))], [("c/9", 2), ("c/10", .empty)],
        "d p/c {9:2}^3"
      ),
      (["c": .object([("a", 1)], priority: .number(3))], [("c/A", 2), ("c/a", .empty)], "d p/c {A:2}^3"),
      (["c": .object([("a", 1)], priority: .number(3))], [("c/a", .empty), ("c/b", 2)], "d p/c {b:2}"),
      (["c": ["a": 1]], [("c/.priority", three), ("c/a", .empty), ("c/b", 2)], "d p/c {b:2}^3"),
      // One child is kept.
      (
        ["c": .object([("a", 1), ("k", 1)], priority: .number(3))], [("c/a", .empty), ("c/b", 2)],
        "m p/c {a:null,b:2}"
      ),
      (["c": ["a": 1]], [("c/.priority", three), ("c/b", 2)], "m p/c {.priority:3,b:2}"),
    ] as [(Node, [(Path, Node)], String)])
  func whole(before: Node, changes: [(Path, Node)], received: String) async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("demo")
    _ = try await database.set("keep", to: 1, as: .administrator)
    _ = try await database.set("p", to: before.setting("keep", to: 1), as: .administrator)
    let client = Client(database)
    await client.call { $0.listen("p", hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.update("p", changes, request: $1) }
    #expect(await client.drain() == [received, "2 ok"])
  }

  @Test("Without priorities each path is sent")
  func none() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("demo")
    _ = try await database.set("p", to: ["c": ["a": 1], "keep": 1], as: .administrator)
    let client = Client(database)
    await client.call { $0.listen("p", hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.update("p", [("c/a", .empty), ("c/b", 2)], request: $1) }
    #expect(await client.drain() == ["m p/c {a:null,b:2}", "2 ok"])
  }

  @Test(
    "A resumed listen with a compound hash receives the removal of a list's priority, which ranges cannot express"
  )
  func resumedList() async throws {
    let held = Node.object([("-Na", ["t": 1]), ("-Nb", ["t": 2])], priority: .number(3))
    let database = try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("demo")
    _ = try await database.set("l", to: held.with(priority: nil), as: .administrator)
    let client = Client(database)
    // Like the iOS client: without the priority.
    let compound = CompoundHash(of: held.with(priority: nil))
    await client.call { $0.listen("l", hash: held.hash, compoundHash: compound, request: $1) }
    #expect(await client.drain() == ["d l {-Na:{t:1},-Nb:{t:2}}", "1 ok"])
  }
}
