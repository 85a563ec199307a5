// Tests the subtle behaviours of the protocol by the exact messages that a client receives. A window is the children
// that a query selects; a default listen has neither filter nor limit.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Worked examples of the protocol", .timeLimit(.minutes(10)))
struct WorkedExampleTests {
  private func open() async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("demo")
  }

  /// Returns a database with `value`, and a client that has received nothing yet.
  private func client(_ path: Path, _ value: Node) async throws -> (Client, RealtimeDatabase) {
    let database = try await open()
    _ = try await database.set(path, to: value, as: .administrator)
    return (Client(database), database)
  }

  @Test("The push of a write precedes its acknowledgement")
  func ownPushFirst() async throws {
    let (client, _) = try await client("shop/tea/stock", 41)
    await client.call { $0.listen("shop", hash: "", request: $1) }
    #expect(await client.drain() == ["d shop {tea:{stock:41}}", "1 ok"])
    _ = await client.set("shop/tea/stock", 42)
    #expect(await client.drain() == ["d shop/tea/stock 42", "2 ok"])
  }

  @Test("A failed write gets an error response and causes no push")
  func failedWrite() async throws {
    let (client, database) = try await client("a", 1)
    await client.call { $0.listen("/", hash: "", request: $1) }
    _ = await client.drain()
    let bad = await client.set(Path(keys: ["a.b"]), 1)
    #expect(bad.text == "failure")
    #expect(await client.drain() == ["2 failure"])
    #expect(try await database.get("/", as: .nobody) == ["a": 1])
  }

  @Test("A transaction with a stale hash receives the newer value before the error datastale")
  func staleHash() async throws {
    let (client, database) = try await client("shop/tea/stock", 41)
    await client.call { $0.listen("shop/tea/stock", hash: "", request: $1) }
    _ = await client.drain()
    _ = try await database.set("shop/tea/stock", to: 50, as: .administrator)
    await client.call {
      $0.set("shop/tea/stock", to: 42, ifHash: "FKQEQrg9eSmOibuEATBfMSlup8g=", request: $1)
    }
    #expect(await client.drain() == ["d shop/tea/stock 50", "2 datastale"])
    await client.call { $0.set("shop/tea/stock", to: 51, ifHash: Node.leaf(.int(50)).hash, request: $1) }
    #expect(await client.drain() == ["d shop/tea/stock 51", "3 ok"])
  }

  @Test("An empty hash matches only an empty location")
  func emptyHash() async throws {
    let (client, _) = try await client("a", 1)
    #expect(await client.call { $0.set("a", to: 2, ifHash: "", request: $1) }.text == "datastale")
    #expect(await client.call { $0.set("b", to: 2, ifHash: "", request: $1) }.text == "ok")
  }

  @Test("A transaction of the iOS client on an object whose children all have priorities is accepted")
  func iosTransactionHash() async throws {
    let value: Node = [
      "z": .leaf(.string("x"), priority: .number(1)), "a": .leaf(.string("y"), priority: .number(2)),
    ]
    let (client, _) = try await client("q", value)
    let answer = await client.call { $0.set("q", to: 1, ifHash: "CaTvE5RHLIo9iQ/rm9Eoh7LiaVY=", request: $1) }
    #expect(answer.text == "ok")
  }

  @Test("A listen with a matching hash is answered without data")
  func resume() async throws {
    let (client, database) = try await client("shop/tea", ["name": "tea", "stock": 41])
    await client.call { $0.listen("shop/tea", hash: "Wd9WHAEgYdDgRxO+qsMzasWv2DE=", request: $1) }
    #expect(await client.drain() == ["1 ok"])
    _ = try await database.set("shop/tea/stock", to: 40, as: .administrator)
    await client.call { $0.listen("shop/tea", tag: nil, hash: "Wd9WHAEgYdDgRxO+qsMzasWv2DE=", request: $1) }
    #expect(
      await client.drain() == ["d shop/tea/stock 40", "d shop/tea {name:'tea',stock:40}", "2 ok"])
  }

  @Test(
    "A listen with a compound hash receives the ranges that differ; any other listen receives the complete value"
  )
  func rangeMerge() async throws {
    let (client, _) = try await client("doc", ["a": ["x": 1], "b": "r", "c": true])
    let compound = try CompoundHash(
      paths: ["a/x", "b"], hashes: ["1MrbPrFkag36VJVl+ntcevAS2SE=", "ZXyd1kHQwhyYqq8gUvgycHXesak=", ""])
    let held = "qZcBZHXdxbKd9iJsEPLpMzoW/Mc="
    await client.call { $0.listen("doc", hash: held, compoundHash: compound, request: $1) }
    #expect(await client.drain() == ["rm doc (a/x ] {b:'r',c:true}", "1 ok"])
    await client.call { $0.listen("doc", hash: held, request: $1) }
    #expect(await client.drain() == ["d doc {a:{x:1},b:'r',c:true}", "2 ok"])
    _ = await client.set("doc", ["a": ["x": 1]])
    _ = await client.drain()
    await client.call { $0.listen("doc", hash: held, compoundHash: compound, request: $1) }
    #expect(await client.drain() == ["rm doc (a/x b] null", "4 ok"])
  }

  @Test("A listen with the hash of a value that no longer exists receives null before its response")
  func resumeAfterRemoval() async throws {
    let client = Client(try await open())
    await client.call { $0.listen("gone", hash: "Wd9WHAEgYdDgRxO+qsMzasWv2DE=", request: $1) }
    #expect(await client.drain() == ["d gone null", "1 ok"])
    await client.call { $0.listen("empty", hash: "", request: $1) }
    #expect(await client.drain() == ["2 ok"])
    await client.call { $0.listen("stream", hash: nil, request: $1) }
    #expect(await client.drain() == ["d stream null", "3 ok"])
  }

  @Test("When a child leaves a limited window, its replacement is in the same message")
  func replacementRow() async throws {
    let (client, database) = try await client(
      "notes", ["n1": ["due": 5], "n2": ["due": 1], "n3": ["due": 9]])
    let query = QuerySpec(ordering: .child("due"), limit: .last(2))
    await client.call { $0.listen("notes", query: query, tag: 1, hash: "", request: $1) }
    // Without an index the client receives all children and filters them.
    #expect(await client.drain() == ["d notes {n1:{due:5},n2:{due:1},n3:{due:9}} #1", "1 ok no_index"])
    _ = try await database.set("notes/n3", to: nil, as: .administrator)
    await client.call { $0.get("notes", request: $1) }
    #expect(await client.drain() == ["m notes {n3:null,n2:{due:1}} #1", "2 ok {n1:{due:5},n2:{due:1}}"])
  }

  @Test("When a window slides, the client receives one message; a child that left the window can return")
  func slidingWindow() async throws {
    let (client, _) = try await client("log", ["k1": 1, "k2": 2, "k3": 3])
    await client.call {
      $0.listen("log", query: QuerySpec(ordering: .key, limit: .last(2)), tag: 6, hash: "", request: $1)
    }
    _ = await client.drain()
    _ = await client.set("log/k4", ["msg": "new"])
    #expect(await client.drain() == ["m log {k2:null,k4:{msg:'new'}} #6", "2 ok"])
    _ = await client.set("log/k3", nil)
    #expect(await client.drain() == ["m log {k3:null,k2:2} #6", "3 ok"])
    _ = await client.set("log/k1", 7)
    #expect(await client.drain() == ["4 ok"], "changes outside the window are not sent")
    _ = await client.set("log/k4/msg", "newer")
    #expect(await client.drain() == ["d log/k4/msg 'newer' #6", "5 ok"])
  }

  @Test("Exclusive bounds select the same children in all four wire spellings")
  func exclusiveBounds() async throws {
    let (client, database) = try await client(
      "s", ["a": ["score": 10], "b": ["score": 11], "c": ["score": 19], "d": ["score": 20], "e": nil])
    try await database.setRules(
      try RulesFile(Array(#"{"rules":{"s":{".indexOn":"score"}}}"#.utf8)), as: .administrator)
    let ordering = Ordering.child("score")
    let js = QuerySpec(
      ordering: ordering, start: .init(.int(10), key: .maximum, isInclusive: false),
      end: .init(.int(20), key: .minimum, isInclusive: false))
    let ios = QuerySpec(
      ordering: ordering, start: .init(.int(10), key: .maximum), end: .init(.int(20), key: .minimum))
    for query in [js, ios] {
      #expect(
        await client.call { $0.get("s", query: query, request: $1) }.text == "ok {b:{score:11},c:{score:19}}")
    }
    let jsKey = QuerySpec(ordering: .key, start: .init(.string("b"), isInclusive: false))
    let iosKey = QuerySpec(ordering: .key, start: .init(.string("b ")))
    for query in [jsKey, iosKey] {
      #expect(
        await client.call { $0.get("s", query: query, request: $1) }.text == "ok {c:{score:19},d:{score:20}}")
    }
  }

  @Test("A write to several paths reaches each listener as one message")
  func atomicFanOut() async throws {
    let (writer, database) = try await client("count/u1", 7)
    let atRoot = Client(database)
    let below = Client(database)
    await atRoot.call { $0.listen("/", hash: "", request: $1) }
    await below.call { $0.listen("by-user", hash: "", request: $1) }
    _ = (await atRoot.drain(), await below.drain())
    await writer.call {
      $0.update(
        "/",
        [
          ("posts/p1", ["t": "hi"]), ("by-user/u1/p1", ["t": "hi"]),
          ("count/u1", .leaf(.deferred(.increment(.int(1))))),
        ], request: $1)
    }
    await atRoot.call { $0.get("none", request: $1) }
    await below.call { $0.get("none", request: $1) }
    #expect(
      await atRoot.drain() == ["m  {by-user/u1/p1:{t:'hi'},count/u1:8,posts/p1:{t:'hi'}}", "2 ok null"])
    #expect(await below.drain() == ["d by-user/u1/p1 {t:'hi'}", "2 ok null"])
    let overlapping = await writer.call { $0.update("/", [("a", 1), ("a/b", 2)], request: $1) }
    #expect(overlapping.text == "failure")
  }

  @Test("An update is pushed at the deepest location that contains all its changes")
  func mergeAtCommonAncestor() async throws {
    let (client, _) = try await client("a/b", ["c": 1, "d": 2])
    await client.call { $0.listen("a", hash: "", request: $1) }
    _ = await client.drain()
    await client.call { $0.update("/", [("a/b/c", 3), ("a/b/d", 4)], request: $1) }
    #expect(await client.drain() == ["m a/b {c:3,d:4}", "2 ok"])
    await client.call { $0.update("/", [("a/b/c", 3), ("a/b/d", 5)], request: $1) }
    #expect(await client.drain() == ["d a/b/d 5", "3 ok"], "unchanged values are not sent")
  }

  @Test("A priority can be written alone, and is then pushed alone")
  func priorities() async throws {
    let (client, _) = try await client(
      "q", ["z": .leaf(.string("x"), priority: .number(1)), "a": .leaf(.string("y"), priority: .number(2))])
    await client.call { $0.listen("q", hash: "", request: $1) }
    #expect(await client.drain() == ["d q {a:'y'^2,z:'x'^1}", "1 ok"])
    _ = await client.set("q/z/.priority", 3)
    #expect(await client.drain() == ["d q/z/.priority 3", "2 ok"])
    _ = await client.set("missing/.priority", 3)
    #expect(await client.drain() == ["3 ok"])
    _ = await client.set("q/z", "plain")
    #expect(await client.call { $0.get("q/z", request: $1) }.text == "ok 'plain'")
    #expect(await client.set("q/z/.priority", true).text == "failure")
  }

  @Test("Increments add integers exactly, overflow to doubles and replace other types")
  func increments() async throws {
    let (client, _) = try await client("n", .leaf(.int(.max)))
    let one = Node.leaf(.deferred(.increment(.int(1))))
    await client.call { $0.listen("/", hash: "", request: $1) }
    _ = await client.drain()
    _ = await client.set("n", one)
    #expect(await client.drain() == ["d n 9.223372036854776e+18", "2 ok"])
    for (value, sum) in [
      ("seven" as Node, 1 as Node), (["x": 1], 1), (nil, 1), (1.5, 2.5), (true, 1), (2, 3),
    ] {
      _ = await client.set("n", value)
      _ = await client.set("n", one)
      #expect(await client.call { $0.get("n", request: $1) }.text == "ok \(sum.text)")
    }
    _ = await client.set("n", 1)
    _ = await client.set("n", .leaf(.deferred(.increment(.int(1))), priority: .number(4)))
    #expect(await client.call { $0.get("n", request: $1) }.text == "ok 2^4")
  }

  @Test("All timestamps of one write are equal")
  func timestamps() async throws {
    let client = Client(try await open())
    let stamp = Node.leaf(.deferred(.timestamp))
    let before = SystemTime.milliseconds()
    await client.call {
      $0.update(
        "/", [("a", stamp), ("b", ["c": stamp]), ("d", .leaf(.int(1), priority: .deferred(.timestamp)))],
        request: $1)
    }
    guard case .value(let node) = await client.call({ $0.get("/", request: $1) }),
      case .int(let time)? = node.child("a").leafValue
    else { return #expect(Bool(false), "no timestamp") }
    #expect(time >= before - 1)
    #expect(time <= SystemTime.milliseconds() + 1_000)
    #expect(node.descendant("b/c") == .leaf(.int(time)))
    #expect(node.child("d").priority == .number(Double(time)))
  }

  @Test(
    "Removing the last child removes emptied ancestors; writing a child below a leaf keeps the leaf's priority"
  )
  func pruning() async throws {
    let (client, database) = try await client("cart/u7/qty", 1)
    await client.call { $0.listen("cart", hash: "", request: $1) }
    _ = await client.drain()
    _ = await client.set("cart/u7/qty", nil)
    #expect(await client.drain() == ["d cart/u7/qty null", "2 ok"])
    #expect(try await database.get("/", as: .nobody).isEmpty)
    _ = await client.set("cart", .leaf(.string("closed"), priority: .number(4)))
    _ = await client.set("cart/u8", true)
    #expect(await client.call { $0.get("cart", request: $1) }.text == "ok {u8:true}^4")
    _ = await client.set("leaf", 1)
    _ = await client.set("leaf/x/y", nil)
    #expect(await client.call { $0.get("leaf", request: $1) }.text == "ok 1")
  }

  @Test("A priority is removed with the last child of its location, also from the rows")
  func priorityVanishes() async throws {
    let (client, _) = try await client("a/b", .object([("c", 1)], priority: .number(9)))
    _ = await client.set("a/b/c", nil)
    _ = await client.set("a/b/d", 2)
    #expect(await client.call { $0.get("a/b", request: $1) }.text == "ok {d:2}")
  }

  @Test("A filtered listen on a leaf shows nothing until the leaf becomes an object")
  func leafUnderQuery() async throws {
    let (client, _) = try await client("x", "leaf")
    await client.call {
      $0.listen("x", query: QuerySpec(limit: .first(2)), tag: 1, hash: nil, request: $1)
    }
    #expect(await client.drain() == ["d x null #1", "1 ok"])
    _ = await client.set("x/a", 1)
    #expect(await client.drain() == ["d x {a:1} #1", "2 ok"])
    _ = await client.set("x", "leaf again")
    #expect(await client.drain() == ["d x null #1", "3 ok"])
  }

  @Test("A connection receives a change once, however many of its default listens cover it")
  func oneUntaggedPush() async throws {
    let (client, _) = try await client("a/b/c", 1)
    for path in ["a/b", "a", "a/b/c"] as [Path] {
      await client.call { $0.listen(path, hash: "", request: $1) }
    }
    _ = await client.drain()
    _ = await client.set("a/b/c", 2)
    #expect(await client.drain() == ["d a/b/c 2", "4 ok"])
    await client.call { $0.unlisten("a", request: $1) }
    _ = await client.set("a/b/c", 3)
    #expect(await client.drain() == ["5 ok", "d a/b/c 3", "6 ok"])
    _ = await client.set("a", ["b": ["c": 4]])
    #expect(await client.drain() == ["d a/b {c:4}", "7 ok"])
  }

  @Test("After unlisten a client receives nothing")
  func unlisten() async throws {
    let (client, _) = try await client("a", 1)
    let query = QuerySpec(limit: .first(1))
    await client.call { $0.listen("/", query: query, tag: 3, hash: "", request: $1) }
    await client.call { $0.listen("/", hash: "", request: $1) }
    await client.call { $0.unlisten("/", tag: 3, request: $1) }
    await client.call { $0.unlisten("/", request: $1) }
    _ = await client.drain()
    _ = await client.set("a", 2)
    #expect(await client.drain() == ["5 ok"])
  }
}
