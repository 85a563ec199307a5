// Tests each limit of `RealtimeLimits` at its bound: the maximum is accepted, and a value above it is rejected with
// Firebase's status and message.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Limits of the Realtime Database at their bounds", .timeLimit(.minutes(10)))
struct LimitBoundTests {
  private func open(_ change: (inout RealtimeLimits) -> Void = { _ in }) async throws -> RealtimeDatabase {
    var limits = RealtimeLimits()
    change(&limits)
    return try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy(), limits: limits)
      .database("bounds")
  }

  private func responseText(
    _ client: Client, _ send: @Sendable (RealtimeConnection, Int64) -> Void
  ) async -> String {
    switch await client.call(send) {
    case .failure(let error): error.description
    case let response: response.text
    }
  }

  private static let writeTooBig =
    "write_too_big: Data to write exceeds the maximum size that can be modified with a single request."
  private static let tooBig =
    "too_big: The specified payload is too large, please request a location with less data."

  @Test("Keys have at most 768 bytes, in paths and in values")
  func keys() async throws {
    let client = Client(try await open())
    let longest = String(repeating: "é", count: 384)
    for (key, expected) in [
      (longest, "ok"), (longest + "x", "failure: Invalid data; key longer than 768 bytes"),
    ] {
      #expect(
        await responseText(client) { $0.set(Path(keys: [ChildKey(key)]), to: 1, request: $1) } == expected)
      #expect(
        await responseText(client) { $0.set("a", to: .object([(ChildKey(key), 1)]), request: $1) } == expected
      )
      #expect(
        await responseText(client) { $0.onDisconnectSet(Path(keys: [ChildKey(key)]), to: 1, request: $1) }
          == expected)
    }
  }

  @Test("The depth of data is limited", arguments: [1, 5])
  func depth(limit: Int) async throws {
    let client = Client(try await open { $0.depth = limit })
    let path = Path(keys: Array(repeating: "k", count: limit))
    #expect(await responseText(client) { $0.set(path, to: 1, request: $1) } == "ok")
    #expect(
      await responseText(client) { $0.set(path.child("k"), to: 1, request: $1) }
        == "failure: Invalid data; data lies more than \(limit) levels deep")
  }

  @Test("The size of strings is limited")
  func strings() async throws {
    let client = Client(try await open { $0.stringBytes = 1_000 })
    let longest = String(repeating: "é", count: 500)
    #expect(await responseText(client) { $0.set("a", to: .leaf(.string(longest)), request: $1) } == "ok")
    #expect(
      await responseText(client) { $0.set("a", to: .leaf(.string(longest + "x")), request: $1) }
        == "failure: Invalid data; string longer than 1000 bytes of UTF-8")
  }

  @Test("The size of one write is limited, over WebSocket and over REST")
  func writes() async throws {
    let node = Node.object((0..<40).map { (ChildKey("k\($0)"), Node.leaf(.string("0123456789"))) })
    for (spare, expected) in [(0, "ok"), (-1, LimitBoundTests.writeTooBig)] {
      let client = Client(try await open { $0.socketWriteBytes = node.estimatedSize + spare })
      #expect(await responseText(client) { $0.set("a", to: node, request: $1) } == expected)
      #expect(await responseText(client) { $0.update("b", [("c", node)], request: $1) } == expected)
      #expect(await responseText(client) { $0.onDisconnectSet("d", to: node, request: $1) } == expected)
      let database = try await open {
        $0.socketWriteBytes = 1
        $0.restWriteBytes = node.estimatedSize + spare
      }
      do throws(RealtimeError) {
        _ = try await database.set("a", to: node, as: .nobody)
        #expect(spare == 0)
      } catch { #expect(error.description == expected) }
    }
  }

  @Test("The size of one response is limited, whether it is read from rows or from the cache")
  func responses() async throws {
    var generator = RandomNodes(seed: 7)
    var node = Node.empty
    while node.childCount < 3 { node = generator.node(depth: 3) }
    for (spare, expected) in [(0, "ok \(node.text)"), (-1, LimitBoundTests.tooBig)] {
      let store = try MemoryStore()
      var limits = RealtimeLimits()
      limits.responseBytes = node.estimatedSize + spare
      let warm = try await RealtimeEngine(store: store, policy: OpenPolicy(), limits: limits).database(
        "b")
      let client = Client(warm)
      // Reading the empty location caches it, so that the value grows in the cache.
      _ = await client.call { $0.get("a", request: $1) }
      _ = await client.set("a", node)
      #expect(await responseText(client) { $0.get("a", request: $1) } == expected)
      let cold = Client(
        try await RealtimeEngine(store: store, policy: OpenPolicy(), limits: limits).database("b"))
      #expect(await responseText(cold) { $0.get("a", request: $1) } == expected)
      let listen = await responseText(cold) { $0.listen("a", hash: "", request: $1) }
      #expect(listen == (spare == 0 ? "ok" : expected))
    }
  }

  @Test("The size estimate while rows are assembled equals that of the complete node", arguments: 0..<50)
  func assembled(seed: Int) {
    var generator = RandomNodes(seed: UInt64(seed))
    let node = generator.node(depth: 4)
    var assembler = NodeAssembler()
    node.forEachLeaf { assembler.add($0.keys, $1) }
    if !node.isEmpty { #expect(assembler.estimatedSize == node.estimatedSize) }
    #expect(assembler.finish() == node)
  }

  @Test("The number of listens on a connection is limited")
  func listens() async throws {
    let client = Client(try await open { $0.listensPerConnection = 2 })
    for i in 0..<2 {
      #expect(await responseText(client) { $0.listen(Path("a/\(i)"), hash: "", request: $1) } == "ok")
    }
    #expect(
      await responseText(client) { $0.listen("b", hash: "", request: $1) }
        == "failure: too many listens: a connection may hold 2")
  }

  @Test("The number of a connection's onDisconnect values is limited")
  func disconnectCount() async throws {
    let database = try await open { $0.onDisconnectsPerConnection = 3 }
    let client = Client(database)
    let refused = "failure: too many onDisconnect operations: a connection may hold 3"
    #expect(
      await responseText(client) { $0.onDisconnectUpdate("a", [("x", 1), ("y", 1)], request: $1) } == "ok")
    #expect(
      await responseText(client) { $0.onDisconnectUpdate("b", [("x", 1), ("y", 1)], request: $1) } == refused)
    #expect(await responseText(client) { $0.onDisconnectSet("b", to: 1, request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectSet("c", to: 1, request: $1) } == refused)
    // A value that replaces registered values frees their share of the limit, and cancelling a value frees its share.
    #expect(await responseText(client) { $0.onDisconnectSet("b", to: 2, request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectSet("a", to: 2, request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectSet("c", to: 1, request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectSet("d", to: 1, request: $1) } == refused)
    #expect(await responseText(client) { $0.onDisconnectCancel("a", request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectCancel("none", request: $1) } == "ok")
    #expect(await responseText(client) { $0.onDisconnectSet("d", to: 1, request: $1) } == "ok")
    client.connection.close()
    #expect(await Client(database).call { $0.get("/", request: $1) }.text == "ok {b:2,c:1,d:1}")
  }

  @Test("The bytes of a connection's onDisconnect values are limited")
  func disconnectBytes() async throws {
    let node = Node.object((0..<40).map { (ChildKey("k\($0)"), Node.leaf(.string("0123456789"))) })
    let each = DisconnectCost("a", node).bytes
    #expect(each == DisconnectCost("b", node).bytes)
    for (spare, expected) in [(0, "ok"), (-1, LimitBoundTests.writeTooBig)] {
      let database = try await open { $0.onDisconnectBytes = 2 * each + spare }
      let client = Client(database)
      #expect(await responseText(client) { $0.onDisconnectSet("a", to: node, request: $1) } == "ok")
      #expect(await responseText(client) { $0.onDisconnectSet("b", to: node, request: $1) } == expected)
      // Replacing a value does not add to the sum.
      #expect(await responseText(client) { $0.onDisconnectSet("a", to: node, request: $1) } == "ok")
      client.connection.close()
      let root = await Client(database).call { $0.get("/", request: $1) }.text
      #expect(root.contains("b:") == (spare == 0))
    }
  }

  @Test(
    "An update with more rows than a commit may hold is rejected before anything is written")
  func commit() async throws {
    let database = try await open()
    let client = Client(database)
    let first = await client.send { $0.set("a", to: 1, request: $1) }
    var changes: [(Path, Node)] = []
    HugeSubtree.leaves(3_000).forEachChild { key, leaf in
      changes.append((Path(keys: [key]), leaf))
      return true
    }
    let second = await client.send { [changes] in $0.update(HugeSubtree.path, changes, request: $1) }
    let third = await client.send { $0.set("b", to: 1, request: $1) }
    #expect(await client.response(to: first).text == "ok")
    guard case .failure(let error) = await client.response(to: second) else {
      return #expect(Bool(false), "72 MB of rows were accepted")
    }
    #expect(error == .writeTooBig)
    #expect(await client.response(to: third).text == "ok")
    #expect(try await database.get("/", as: .nobody).text == "{a:1,b:1}")
    // A single value of this size is accepted, because the engine stores it in several commits before it is visible.
    #expect(await client.set(HugeSubtree.path, HugeSubtree.leaves(3_000)).text == "ok")
    #expect(await client.call { $0.get(HugeSubtree.path.child("l7"), request: $1) }.text == "ok 7")
  }
}
