// Tests the encoding of rows and log records: values round-trip, and corrupt bytes throw an error.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Rows of the realtime tree", .timeLimit(.minutes(10)))
struct RealtimeRowTests {
  @Test("Nodes round-trip through their encoding", arguments: 0..<50)
  func roundTrip(seed: Int) throws {
    var generator = RandomNodes(seed: UInt64(seed))
    let node = generator.node(depth: 4)
    #expect(try NodeDecoder.decode(NodeEncoder.encode(node)) == node)
    let deferred: [Node] = [
      .leaf(.deferred(.timestamp), priority: .deferred(.timestamp)), .leaf(.deferred(.increment(.int(-3)))),
      .leaf(.deferred(.increment(.double(0.5)))), .leaf(.int(.min)), .leaf(.string("")),
    ]
    for node in deferred { #expect(try NodeDecoder.decode(NodeEncoder.encode(node)) == node) }
  }

  @Test("Decoding corrupt bytes gives an error or another node, and never crashes", arguments: 0..<200)
  func corrupt(seed: Int) {
    var generator = RandomNodes(seed: UInt64(seed))
    var bytes = NodeEncoder.encode(generator.node(depth: 3))
    for _ in 0..<3 where !bytes.isEmpty { bytes[generator.below(bytes.count)] = UInt8(generator.below(256)) }
    _ = try? NodeDecoder.decode(bytes)
    _ = try? NodeDecoder.decode(Array(bytes.dropLast(generator.below(bytes.count + 1))))
    _ = try? ChangeLogRecord(bytes: bytes)
  }

  @Test(
    "The decoder counts the children next to a path in the encoded bytes, without decoding the children",
    arguments: 0..<100)
  func siblingCounts(seed: Int) throws {
    var generator = RandomNodes(seed: UInt64(seed))
    let node = generator.node(depth: 4)
    let bytes = NodeEncoder.encode(node)
    func siblingCounts(_ bytes: [UInt8], _ path: Path, _ maximum: Int = .max) throws -> [Int]? {
      try bytes.withUnsafeBytes { raw in
        var decoder = NodeDecoder(raw)
        return try decoder.siblingCounts(along: path.keys[...], atMost: maximum)
      }
    }
    for _ in 0..<20 {
      let path = generator.path()
      let parts = node.siblings(along: path)
      let found = try siblingCounts(bytes, path)?.reduce(0, +)
      if node.isLeaf {
        #expect(found == nil || path.isRoot)
      } else {
        // `siblings` counts a leaf above the end of the path, and the decoder does not.
        let isLeafOnPath = parts.last.map { $0.path.contains(path) && $0.path != path } ?? false
        #expect(found == parts.count - (isLeafOnPath ? 1 : 0), "\(node.text) \(path)")
      }
    }
    var corrupt = bytes
    for _ in 0..<3 where !corrupt.isEmpty {
      corrupt[generator.below(corrupt.count)] = UInt8(generator.below(256))
    }
    _ = try? siblingCounts(corrupt, generator.path())
    // If the count exceeds the maximum, the children are not read. Here their bytes are invalid.
    #expect(try siblingCounts([0x10, 20] + [UInt8](repeating: 0xFF, count: 20), "a/b", 10) == [20])
    #expect(throws: StoreError.self) {
      try siblingCounts([0x10, 20] + [UInt8](repeating: 0xFF, count: 20), "a")
    }
    #expect(throws: StoreError.self) { try siblingCounts([0x10, 20], "a") }
  }

  @Test("A session row whose key ends with the session's name is an error, not a crash")
  func corruptSession() async throws {
    let store = try MemoryStore()
    let database = try await store.database(named: "damaged", history: .activeReadersOnly)
    _ = try await database.execute(validating: nil) { writer in
      try writer.set(RowKeys.prefix(ofSession: "s1"), [])
      try writer.set(RowKeys.prefix(ofSession: "s2") + [UInt8(ascii: "c")], [0xFF])
    }
    for session in ["s1", "s2"] {
      await #expect(throws: StoreError.self) {
        try await database.read(at: nil) { _ = try DisconnectRows(session: session, in: $0) }
      }
    }
    try await store.close()
  }

  @Test(
    "The rows of one onDisconnect request are one operation; each row of an earlier version is its own operation"
  )
  func registrations() async throws {
    let store = try MemoryStore()
    let database = try await store.database(named: "registered", history: .activeReadersOnly)
    let rows: [(path: Path, operation: Int?)] = [("a", 300), ("b", nil), ("c", 2), ("d", 300), ("e", nil)]
    _ = try await database.execute(validating: nil) { writer in
      for (path, operation) in rows {
        try writer.set(
          RowKeys.disconnect(ofSession: "s", at: path), DisconnectRow.encode("text", of: operation))
      }
    }
    try await database.read(at: nil) { view in
      let registered = try DisconnectRows(session: "s", in: view)
      #expect(registered.values.map(\.path) == rows.map(\.path))
      #expect(registered.values.allSatisfy { $0.value == "text" })
      #expect(registered.operations.map { $0.map(\.path) } == [["b"], ["e"], ["c"], ["a", "d"]])
    }
    try await store.close()
  }

  @Test("All rows of a location have its prefix, its priority is first, and each child's rows are contiguous")
  func layout() {
    let ascending: [Path] = ["a", "a/.priority", "a/1", "a/b", "a/b/.priority", "a/b/c", "a!", "aa", "b"]
    let rows = ascending.map { RowKeys.row(of: $0) }
    for i in 1..<rows.count { #expect(rows[i - 1].lexicographicallyPrecedes(rows[i])) }
    #expect(rows.filter { RowKeys.range(of: "a").contains($0) }.count == 6)
    for path in ascending {
      let bytes = Array(RowKeys.row(of: path).dropFirst())
      #expect(bytes.withUnsafeBytes { RowKeys.keys(in: $0) } == path.keys)
    }
    #expect(RowKeys.row(of: "shop/tea") == [0x74] + Array("shop".utf8) + [0] + Array("tea".utf8) + [0])
  }

  @Test("The longest allowed path is a valid key of the store")
  func longestPath() {
    let path = Path(keys: Array(repeating: ChildKey(String(repeating: "k", count: 768)), count: 32))
    #expect(RowKeys.row(of: path.child(.priority)).count <= 32 * 1024)
    #expect(RowKeys.disconnect(ofSession: SessionName.make(), at: path.child(.priority)).count <= 32 * 1024)
  }

  @Test("Log records contain the written values, except large values")
  func records() throws {
    let record = ChangeLogRecord([("a/b", .leaf(.int(1))), ("c", .empty)])
    let read = try ChangeLogRecord(bytes: record.bytes)
    #expect(read.changes.map(\.path) == ["a/b", "c"])
    #expect(read.changes.map(\.value) == [.leaf(.int(1)), .empty])
    let large = ChangeLogRecord([("a", .leaf(.string(String(repeating: "x", count: 2 << 20))))])
    #expect(large.bytes.count < 100)
    #expect(try ChangeLogRecord(bytes: large.bytes).changes.map(\.value) == [nil])
  }

  @Test("Every write adds a log record, in order")
  func log() async throws {
    let store = try MemoryStore()
    let database = try await RealtimeEngine(store: store, policy: OpenPolicy()).database("log")
    for i in 0..<5 { _ = try await database.set("n", to: .leaf(.int(Int64(i))), as: .nobody) }
    _ = try await database.set("n", to: 4, as: .nobody)
    let stored = try await store.database(named: "realtime/log", history: .activeReadersOnly)
    let records = try await stored.log(after: stored.createdVersion, limit: 100)
    let values = try records.flatMap {
      try ChangeLogRecord(bytes: $0.payload).changes.map { $0.value?.text ?? "" }
    }
    #expect(values == ["0", "1", "2", "3", "4"])
  }

  @Test(
    "The cache returns the stored subtrees, applies writes to them, and stays within its budget",
    arguments: 0..<10)
  func cache(seed: Int) {
    var generator = RandomNodes(seed: UInt64(seed))
    let cache = TreeCache(budget: 20_000)
    var model = Node.empty
    for _ in 0..<2_000 {
      let path = generator.path()
      if generator.below(2) == 0 {
        let node = generator.node()
        model = model.setting(path, to: node)
        cache.apply(path, node, at: .zero)
      } else if let known = cache.node(at: path) {
        #expect(known == model.descendant(path))
      } else {
        cache.insert(model.descendant(path), at: path)
      }
      #expect(cache.cost <= 20_000 + 3 * model.estimatedSize)
    }
    cache.removeAll()
    #expect(cache.cost == 0 && cache.count == 0)
  }
}
