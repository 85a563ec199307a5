// Tests the pushes for updates of several paths whose location has a priority. A client that applies the
// paths one after the other would remove the priority with the location's last child.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Pushes for updates around priorities", .timeLimit(.minutes(10)))
struct PriorityPushTests {
  private static let three = Node.leaf(.int(3))

  @Test(
    "A location with a priority is sent completely if the update keeps none of its children",
    arguments: [
      // The update creates the location together with its priority.
      (Node.empty, [("c/.priority", three), ("c/x", 1)], "d p/c {x:1}^3"),
      ([:], [("c/.priority", three), ("c/x", 1), ("d", 2)], "m p {c:{x:1}^3,d:2}"),
      // The update removes all existing children and adds other children.
      (
        ["c": .object([("10", 1)], priority: .number(3))], [("c/9", 2), ("c/10", .empty)],
        "d p/c {9:2}^3"
      ),
      (["c": .object([("a", 1)], priority: .number(3))], [("c/A", 2), ("c/a", .empty)], "d p/c {A:2}^3"),
      (["c": .object([("a", 1)], priority: .number(3))], [("c/a", .empty), ("c/b", 2)], "d p/c {b:2}"),
      (["c": ["a": 1]], [("c/.priority", three), ("c/a", .empty), ("c/b", 2)], "d p/c {b:2}^3"),
      // One existing child remains, so the paths are sent one by one.
      (
        ["c": .object([("a", 1), ("k", 1)], priority: .number(3))], [("c/a", .empty), ("c/b", 2)],
        "m p/c {a:null,b:2}"
      ),
      (["c": ["a": 1]], [("c/.priority", three), ("c/b", 2)], "m p/c {.priority:3,b:2}"),
    ] as [(Node, [(Path, Node)], String)])
  func completeLocation(before: Node, changes: [(Path, Node)], received: String) async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("demo")
    _ = try await database.set("keep", to: 1, as: .administrator)
    _ = try await database.set("p", to: before.setting("keep", to: 1), as: .administrator)
    let client = Client(database)
    await client.call { $0.listen("p", hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.update("p", changes, request: $1) }
    #expect(await client.drain() == [received, "2 ok"])
  }

  @Test("A location without a priority is sent path by path")
  func separatePaths() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("demo")
    _ = try await database.set("p", to: ["c": ["a": 1], "keep": 1], as: .administrator)
    let client = Client(database)
    await client.call { $0.listen("p", hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.update("p", [("c/a", .empty), ("c/b", 2)], request: $1) }
    #expect(await client.drain() == ["m p/c {a:null,b:2}", "2 ok"])
  }

  @Test(
    "A resumed listen on a list that lost its priority gets the complete list: ranges cannot remove priorities"
  )
  func resumedList() async throws {
    let held = Node.object([("-Na", ["t": 1]), ("-Nb", ["t": 2])], priority: .number(3))
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("demo")
    _ = try await database.set("l", to: held.with(priority: nil), as: .administrator)
    let client = Client(database)
    // The iOS client's compound hash, which has a hash for each range of the list, does not cover the list's priority.
    let compound = CompoundHash(of: held.with(priority: nil))
    await client.call { $0.listen("l", hash: held.hash, compoundHash: compound, request: $1) }
    #expect(await client.drain() == ["d l {-Na:{t:1},-Nb:{t:2}}", "1 ok"])
  }
}
