// Tests that invalid input gets Firebase's error for that request alone, and leaves the database unharmed.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Limits of the Realtime Database", .timeLimit(.minutes(10)))
struct RealtimeLimitTests {
  private func open(_ limits: RealtimeLimits = .standard) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy(), limits: limits).database(
      "limits")
  }

  private func failure(_ client: Client, _ path: Path, _ node: Node) async -> String {
    guard case .failure(let error) = await client.set(path, node) else { return "ok" }
    return error.description
  }

  @Test("Data may be 32 levels deep (path and value together), but not 33")
  func depth() async throws {
    let client = Client(try await open())
    let deep = Path(keys: Array(repeating: "k", count: 31))
    #expect(await failure(client, deep, ["a": 1]) == "ok")
    #expect(await failure(client, deep, ["a": ["b": 1]]).contains("32 levels"))
    #expect(await failure(client, deep.child("a").child("b"), 1).contains("32 levels"))
    #expect(await failure(client, deep.child("a").child(.priority), 1) == "ok")
  }

  @Test(
    "Keys, strings and numbers that cannot be stored are rejected",
    arguments: [
      (Path(keys: ["a."]), Node.leaf(.int(1))),
      (Path(keys: [ChildKey(String(repeating: "x", count: 769))]), .leaf(.int(1))),
      ("a", .object([("b$", .leaf(.int(1)))])),
      ("a", .object([(ChildKey(String(repeating: "x", count: 769)), .leaf(.int(1)))])),
      ("a", .leaf(.double(.nan))), ("a", .leaf(.double(.infinity))),
      ("a", .leaf(.int(1), priority: .number(.infinity))),
      ("a", .leaf(.string(String(repeating: "x", count: 10 * 1024 * 1024 + 1)))),
      ("a/.priority", .object([("b", .leaf(.int(1)))])),
      (Path(keys: [".priority", "a"]), .leaf(.int(1))), (Path(keys: [".info"]), .leaf(.int(1))),
    ])
  func refused(path: Path, node: Node) async throws {
    let database = try await open()
    let client = Client(database)
    #expect(await failure(client, path, node).hasPrefix("failure"))
    #expect(try await database.get("/", as: .nobody).isEmpty)
  }

  @Test("A string of 10 MiB is stored and read")
  func largeString() async throws {
    let database = try await open()
    let text = String(repeating: "é", count: 5 * 1024 * 1024)
    _ = try await database.set("big", to: .leaf(.string(text)), as: .nobody)
    #expect(try await database.get("big", as: .nobody) == .leaf(.string(text)))
  }

  @Test(
    "A write above its limit fails with write_too_big, a read with too_big, and the next request succeeds")
  func sizes() async throws {
    var limits = RealtimeLimits()
    limits.socketWriteBytes = 2_000
    limits.responseBytes = 5_000
    let database = try await open(limits)
    let client = Client(database)
    let wide = Node.object((0..<100).map { (ChildKey("k\($0)"), Node.leaf(.string("0123456789"))) })
    #expect(await client.set("a", wide).text == "ok")
    let wider = Node.object((0..<200).map { (ChildKey("k\($0)"), Node.leaf(.string("0123456789"))) })
    #expect(await client.set("b", wider).text == "write_too_big")
    for i in 0..<4 { _ = try await database.set(Path("c/\(i)"), to: wide, as: .nobody) }
    let cold = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy(), limits: limits)
      .database("cold")
    for i in 0..<4 { _ = try await cold.set(Path("c/\(i)"), to: wide, as: .nobody) }
    let reader = Client(cold)
    #expect(await reader.call { $0.get("c", request: $1) }.text == "too_big")
    #expect(await reader.call { $0.listen("c", hash: "", request: $1) }.text == "too_big")
    #expect(try await cold.getShallow("c", as: .nobody) == .children(["0", "1", "2", "3"]))
    #expect(await reader.call { $0.get("c/1/k5", request: $1) }.text == "ok '0123456789'")
  }

  @Test("A connection has a maximum number of listens")
  func listens() async throws {
    var limits = RealtimeLimits()
    limits.listensPerConnection = 3
    let client = Client(try await open(limits))
    for i in 0..<3 {
      #expect(await client.call { $0.listen(Path("a/\(i)"), hash: "", request: $1) }.text == "ok")
    }
    #expect(await client.call { $0.listen("a/3", hash: "", request: $1) }.text == "failure")
    #expect(await client.call { $0.listen("a/2", hash: "", request: $1) }.text == "ok")
    await client.call { $0.unlisten("a/0", request: $1) }
    #expect(await client.call { $0.listen("a/3", hash: "", request: $1) }.text == "ok")
  }

  @Test("The sort orders that listens of all connections need at one location are limited")
  func orders() async throws {
    var limits = RealtimeLimits()
    limits.ordersPerLocation = 2
    let database = try await open(limits)
    _ = try await database.set("a", to: ["x": ["p": 1, "q": 2, "r": 3]], as: .nobody)
    let (client, other) = (Client(database), Client(database))
    func listen(
      _ client: Client, _ ordering: Ordering, _ tag: Int64, _ path: Path = "a"
    ) async -> RealtimeResponse {
      let query = QuerySpec(ordering: ordering, limit: .first(1))
      return await client.call { $0.listen(path, query: query, tag: tag, hash: "", request: $1) }
    }
    #expect(await listen(client, .child("p"), 1).text == "ok no_index")
    #expect(await listen(client, .child("q"), 2).text == "ok no_index")
    guard case .failure(let error) = await listen(other, .child("r"), 1) else {
      return #expect(Bool(false), "it listens")
    }
    #expect(error.status == .failure)
    #expect(error.message.contains("2 at a time (ordersPerLocation)"))
    // Listens are still allowed in an order that the location already keeps, in key order, with bounds
    // instead of a limit, and at another location.
    #expect(await listen(other, .child("p"), 2).text == "ok no_index")
    #expect(await listen(other, .key, 3).text == "ok")
    let range = QuerySpec(ordering: .child("r"), start: .init(.int(1)))
    #expect(
      await other.call { $0.listen("a", query: range, tag: 8, hash: "", request: $1) }.text == "ok no_index")
    #expect(await listen(other, .child("r"), 4, "b").text == "ok no_index")
    await client.call { $0.unlisten("a", tag: 1, request: $1) }
    // The order by p is still kept for the other connection.
    #expect(await listen(other, .child("r"), 1).text == "failure")
    await client.call { $0.unlisten("a", tag: 2, request: $1) }
    #expect(await listen(other, .child("r"), 1).text == "ok no_index")
  }

  @Test("A write that is too large for a commit fails alone, even if it shares a batch")
  func tooLargeForACommit() async throws {
    let database = try await open()
    let client = Client(database)
    let huge = (0..<9).map { i in
      (Path("k\(i)"), Node.leaf(.string(String(repeating: "x", count: 9 * 1024 * 1024))))
    }
    async let first = database.set("a", to: 1, as: .nobody)
    async let second = database.update("huge", huge, as: .nobody)
    async let third = database.set("b", to: 2, as: .nobody)
    _ = try await (first, third)
    do {
      _ = try await second
      Issue.record("a write above the store's limit was accepted")
    } catch { #expect((error as? RealtimeError)?.status == .writeTooBig) }
    #expect(await client.call { $0.get("/", request: $1) }.text == "ok {a:1,b:2}")
    // Written as one value, the same data is accepted: the engine stores it in several commits before it is visible.
    _ = try await database.set("huge", to: .object(huge.map { ($0.0.keys[0], $0.1) }), as: .nobody)
    #expect(try await database.getShallow("huge", as: .nobody) == .children(huge.map { $0.0.keys[0] }))
  }

  @Test("Names of namespaces are validated, and namespaces are separate", arguments: ["", "a/b", "a b", "é"])
  func namespaces(bad: String) async throws {
    let engine = RealtimeEngine(store: try MemoryStore(), policy: OpenPolicy())
    await #expect(throws: RealtimeError.self) { _ = try await engine.database(bad) }
    _ = try await engine.database("one").set("a", to: 1, as: .nobody)
    #expect(try await engine.database("two").get("/", as: .nobody).isEmpty)
    // Reading does not create a namespace.
    #expect(try await engine.namespaces() == ["one"])
  }
}
