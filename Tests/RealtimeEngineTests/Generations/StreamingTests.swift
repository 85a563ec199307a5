// Tests imports and exports: values of any size that are written and read in chunks.

import Access
import JSON
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Imports and exports", .timeLimit(.minutes(10)))
struct StreamingTests {
  private func open(
    _ store: any OrderedStore, _ staging: StagingLimits = .tiny, limits: RealtimeLimits = .standard,
    policy: any AccessPolicy<RealtimeAccess> = OpenPolicy()
  ) async throws -> RealtimeDatabase {
    try await RealtimeEngine(
      store: store, policy: policy, limits: limits, cacheBytes: 1 << 20, staging: staging
    ).database("stream")
  }

  private func send(_ text: [UInt8], to path: Path, of database: RealtimeDatabase, piece: Int) async throws {
    let valueImport = try await database.beginImport(at: path, maximumBytes: 1 << 30, as: .nobody)
    var rest = text[...]
    while !rest.isEmpty {
      try await valueImport.add(Array(rest.prefix(piece)))
      rest = rest.dropFirst(piece)
    }
    try await valueImport.finish()
  }

  private func text(_ path: Path, of database: RealtimeDatabase, isExport: Bool) async throws -> [UInt8] {
    let export = try await database.export(path, isExport: isExport, as: .nobody)
    var text: [UInt8] = []
    while let (bytes, _) = try await export.next() { text += bytes }
    return text
  }

  @Test(
    "The plain JSON export does not depend on how many rows are assembled at once", arguments: [1, 2, 4, 256])
  func plainChunks(maximumRows: Int) async throws {
    var generator = RandomNodes(seed: 52)
    let database = try await open(MemoryStore())
    for round in 0..<40 {
      let model = Node.object([("a", generator.node(depth: 4)), ("b", generator.node(depth: 3)), ("0", 1)])
      _ = try await database.set("/", to: model, as: .administrator)
      guard let pinned = try database.rows.current?.pinView() else { return }
      let generations = database.runner.executor.generations.durable
      let text = try await pinned.read { base in
        let view = try generations.view(base)
        var writer = PlainWriter(.root, pretty: false, maximumBufferedRows: maximumRows)
        while !writer.isOver { try writer.write(from: view) }
        return writer.takeOutput()
      }
      #expect(try JSONValue(json: text) == JSONValue(json: model.json(.plain)), "round \(round)")
    }
  }

  @Test("Random trees round-trip through import and both export formats", arguments: 0..<40)
  func roundTrip(seed: Int) async throws {
    var random = RandomNodes(seed: UInt64(seed))
    let database = try await open(try MemoryStore(), seed % 2 == 0 ? .tiny : .standard)
    var model = Node.empty
    for _ in 0..<6 {
      let path = random.path()
      let node = random.node(depth: 3)
      if random.below(3) == 0 {
        _ = try await database.set(path, to: node, as: .nobody)
      } else {
        try await send(node.json(.export), to: path, of: database, piece: 1 + random.below(60))
      }
      model = model.setting(path, to: node)
      #expect(try await database.get("/", as: .nobody) == model)
      let at = random.path()
      #expect(try Node(json: await text(at, of: database, isExport: true)) == model.descendant(at))
      let plain = try await text(at, of: database, isExport: false)
      #expect(
        try JSONValue(json: plain) == JSONValue(json: model.descendant(at).json(.plain)),
        "\(String(decoding: plain, as: UTF8.self))")
    }
  }

  @Test(
    "If a database's first write is an abandoned import, clearing its rows keeps the rows of the next import")
  func abandoned() async throws {
    let engine = RealtimeEngine(
      store: try MemoryStore(), policy: OpenPolicy(), limits: .standard, cacheBytes: 1 << 20,
      staging: .tiny)
    let members = (0..<2_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    let text = Array("{\(members)}".utf8)
    func abandonImport() async throws {
      let valueImport = try await engine.database("stream").beginImport(
        at: "bad", maximumBytes: 1 << 30, as: .nobody)
      try await valueImport.add(text.dropLast())
    }
    try await abandonImport()
    #expect(engine.openDatabase("stream") != nil)
    try await send(text, to: "good", of: engine.database("stream"), piece: 500)
    #expect(try await engine.database("stream").get("/", as: .nobody) == ["good": Node(json: text)])
  }

  @Test("Listeners below, at and above an import are notified at its end, and not before")
  func listeners() async throws {
    let database = try await open(try MemoryStore())
    _ = try await database.set("a", to: ["b": ["old": 1, "c": 2], "z": 0], as: .nobody)
    let watcher = Client(database)
    await watcher.call { $0.listen("a/b/c/d", hash: "", request: $1) }
    await watcher.call { $0.listen("a/b/c", hash: "", request: $1) }
    let above = Client(database)
    await above.call { $0.listen("a", hash: "", request: $1) }
    _ = await (watcher.drain(), above.drain())
    let valueImport = try await database.beginImport(at: "a/b", maximumBytes: 100, as: .nobody)
    try await valueImport.add(Array(#"{"c":{"d":5,"e":6},"f""#.utf8))
    await watcher.call { $0.get("none", request: $1) }
    #expect(await watcher.drain() == ["3 ok null"])
    try await valueImport.add(Array(#":7}"#.utf8))
    try await valueImport.finish()
    await watcher.call { $0.get("none", request: $1) }
    await above.call { $0.get("none", request: $1) }
    #expect(await above.drain() == ["d a/b {c:{d:5,e:6},f:7}", "2 ok null"])
    // The connection listens at `a/b/c` and at `a/b/c/d`. One push for the upper location serves both listens.
    #expect(await watcher.drain() == ["d a/b/c {d:5,e:6}", "4 ok null"])
    #expect(try await database.get("a", as: .nobody).text == "{b:{c:{d:5,e:6},f:7},z:0}")
  }

  @Test("A listener whose value outgrows the response limit gets an error; listeners below get their values")
  func tooLargeForListener() async throws {
    var limits = RealtimeLimits()
    limits.responseBytes = 2_000
    let database = try await open(try MemoryStore(), limits: limits)
    let above = Client(database)
    let below = Client(database)
    await above.call { $0.listen("/", hash: "", request: $1) }
    await below.call { $0.listen("big/k7", hash: "", request: $1) }
    _ = await (above.drain(), below.drain())
    let big = Node.object((0..<300).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    try await send(big.json(), to: "big", of: database, piece: 100)
    await below.call { $0.get("none", request: $1) }
    await above.call { $0.get("none", request: $1) }
    #expect(await above.drain() == ["c  too_big", "2 ok null"])
    #expect(await below.drain() == ["d big/k7 7", "2 ok null"])
  }

  @Test("Listens whose new values are too large end, listens further down continue, and the import succeeds")
  func tooLargeBelow() async throws {
    var limits = RealtimeLimits()
    limits.responseBytes = 2_000
    let database = try await open(try MemoryStore(), limits: limits)
    let (watcher, tagged) = (Client(database), Client(database))
    for path in ["data", "data/k7", "other/x", "small/a", "small/b"] as [Path] {
      await watcher.call { $0.listen(path, hash: "", request: $1) }
    }
    await tagged.call {
      $0.listen("data", query: QuerySpec(ordering: .key, limit: .first(2)), tag: 1, hash: "", request: $1)
    }
    _ = await (watcher.drain(), tagged.drain())
    let data = Node.object((0..<300).map { (ChildKey("k\($0)"), Node.leaf(.int(Int64($0)))) })
    let text = Node.leaf(.string(String(repeating: "x", count: 1_200)))
    let importedValue: Node = ["data": data, "other": ["x": 1, "y": 2], "small": ["a": text, "b": text]]
    try await send(importedValue.json(), to: "/", of: database, piece: 500)
    await watcher.call { $0.get("none", request: $1) }
    await tagged.call { $0.get("none", request: $1) }
    // Each small value fits a response. All values together exceed the limit with `small/b`, the last one.
    let ended = Set(["c data too_big", "c small/b too_big"])
    let received = await watcher.drain()
    #expect(Set(received.prefix(2)) == ended)
    #expect(
      Array(received.dropFirst(2)) == ["d data/k7 7", "d other/x 1", "d small/a \(text.text)", "6 ok null"])
    #expect(await tagged.drain() == ["c data too_big #1", "2 ok null"])
    #expect(try await database.get("data/k299", as: .nobody) == 299)
  }

  @Test(
    "If an import cannot continue in the background, listens with too large values still end before any is notified"
  )
  func notDeferred() async throws {
    var limits = RealtimeLimits()
    limits.responseBytes = 300
    let database = try await open(try MemoryStore(), limits: limits)
    let client = Client(database)
    for path in ["data", "data/k7"] as [Path] {
      await client.call { $0.listen(path, hash: "", request: $1) }
    }
    let store = try await database.runner.create()
    let generation = try await StagedGeneration.begin(in: store, database.cleaner)
    var summary = ImportedTree.Summary()
    for number in 0..<100 {
      var path: [UInt8] = []
      RowKeys.append(["data", ChildKey("k\(number)")], to: &path)
      try await generation.add([.init(path: path, value: NodeEncoder.encode(.leaf(.int(Int64(number)))))])
      summary.values += 1
      summary.size += 8
    }
    try await generation.waitUntilDurable()
    let executor = database.runner.executor
    let install = RealtimeOperation.Action.installImport("/", ImportedTree(generation, summary))
    let result = try await store.execute(validating: nil) { writer in
      try executor.run(
        [RealtimeOperation(install, from: .call(.nobody) { _ in })], in: writer, SessionJournal(),
        mayDefer: false)
    }.result
    var revoked: [Path] = []
    var received: [Path] = []
    for step in result.steps {
      switch step {
      case .unlisten(_, let name, revoked: let error?) where error == .tooBig: revoked.append(name.path)
      case .write(let changes, windows: _): received += changes.map(\.path)
      default: break
      }
    }
    #expect(revoked == ["data"] && received == ["data/k7"])
    #expect(result.deferred.isEmpty)
    #expect(try await database.get("data/k99", as: .nobody) == 99)
  }

  @Test("Incomplete, oversized and invalid imports leave no rows")
  func refused() async throws {
    let store = try MemoryStore()
    let database = try await open(store)
    _ = try await database.set("a", to: ["b": 1], as: .nobody)
    do {
      let valueImport = try await database.beginImport(at: "a", maximumBytes: 1_000, as: .nobody)
      try await valueImport.add(Array(#"{"x":1,"y":2,"#.utf8))
      // Leaving this scope without `finish()` abandons the import.
    }
    try await beginInvalidImports(database)
    #expect(try await database.get("/", as: .nobody).text == "{a:{b:1}}")
    #expect(
      try await eventually {
        let counts = try await rowCounts(store, "stream")
        return counts["x"] == nil && (counts["t"] ?? 0) + (counts["n"] ?? 0) == 1
      })
  }

  private func beginInvalidImports(_ database: RealtimeDatabase) async throws {
    let broken = try await database.beginImport(at: "a", maximumBytes: 1_000, as: .nobody)
    try await broken.add(Array(#"{"x":1,"#.utf8))
    await #expect(throws: RealtimeError.self) { try await broken.add(Array("]".utf8)) }
    await #expect(throws: RealtimeError.self) { try await broken.finish() }
    let large = try await database.beginImport(at: "a", maximumBytes: 10, as: .nobody)
    await #expect(throws: RealtimeError.writeTooBig) { try await large.add(Array(#"{"x":"12345"}"#.utf8)) }
  }

  @Test("Server values of an import are resolved at its end, and policies see only complete values")
  func serverValues() async throws {
    let database = try await open(try MemoryStore())
    _ = try await database.set("n", to: 40, as: .nobody)
    try await send(
      Array(#"{"n":{".sv":{"increment":2}},"t":{".sv":"timestamp",".priority":3},"u":1}"#.utf8), to: "/",
      of: database, piece: 7)
    let node = try await database.get("/", as: .nobody)
    #expect(node.child("n") == 42)
    guard case .int(let time)? = node.child("t").leafValue else { return #expect(Bool(false), "no time") }
    #expect(time > 1_600_000_000_000 && node.child("t").priority == .number(3))
    let guarded = try await open(try MemoryStore(), policy: OwnPathPolicy())
    await #expect(throws: RealtimeError.permissionDenied) {
      _ = try await guarded.beginImport(
        at: "u1", maximumBytes: 10, as: .user("u1"))
    }
    await #expect(throws: RealtimeError.permissionDenied) {
      _ = try await guarded.export("u2", isExport: true, as: .user("u1"))
    }
  }

  @Test("An export shows one state during concurrent writes")
  func consistent() async throws {
    let database = try await open(try MemoryStore(), .standard)
    let text = String(repeating: "x", count: 1_000)
    let before = Node.object((0..<900).map { (ChildKey("k\($0)"), Node.leaf(.string("\($0)\(text)"))) })
    _ = try await database.set("big", to: before, as: .nobody)
    for isExport in [true, false] {
      let export = try await database.export("big", isExport: isExport, as: .nobody)
      var bytes: [UInt8] = []
      var pieces = 0
      while let (piece, _) = try await export.next() {
        bytes += piece
        pieces += 1
        _ = try await database.set(Path("big/k\(pieces * 90)"), to: "changed", as: .nobody)
        if pieces == 3 { _ = try await database.set("big", to: "gone", as: .nobody) }
      }
      #expect(pieces > 5)
      #expect(try Node(json: bytes) == before)
      _ = try await database.set("big", to: before, as: .nobody)
    }
  }
}
