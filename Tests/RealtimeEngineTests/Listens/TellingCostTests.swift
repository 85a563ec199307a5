// What it costs the sequencer to find out what listeners are told, in rows, and what pushes carry beside what they tell.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("The cost of telling", .timeLimit(.minutes(10)))
struct TellingCostTests {
  /// The rows that a write reads in a database that holds a value, with nothing in memory.
  private func cost(
    of changes: [(Path, Node)], on before: Node
  ) async throws -> (rows: Int, after: Node) {
    let engine = CountingEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let filling = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("cost")
    _ = try await filling.set("/", to: before, as: .anonymous)
    let database = try await RealtimeEngine(store: store, policy: EmulatorPolicy()).database("cost")
    #expect(try await eventually { database.builder.looks > 0 })
    await database.cleaner.stop()
    let rows = try await engine.count { _ = try await database.update("/", changes, as: .anonymous) }
    return (rows, try await database.get("/", as: .anonymous))
  }

  @Test("A location that is told whole is put together from the write, not read again, however large it is")
  func whole() async throws {
    let wide = Node.object((0..<2_000).map { (ChildKey("k\($0)"), .leaf(.int(Int64($0)))) })
    let update = Write.update("/", [("c/a", .empty), ("c/b", wide), ("d", 1)])
    var visited: [Int] = []
    var last: [(Path, Node)] = []
    for priority in [nil, Priority.number(3)] {
      let rows = try await MemoryStore().database(named: "cost", history: .activeReadersOnly)
      // Nothing is kept in memory.
      let sequencer = Sequencer(policy: EmulatorPolicy(), limits: .standard, cacheBytes: 0)
      let before = Node.object([("c", .object([("a", 1)], priority: priority)), ("keep", 1)])
      for write in [Write.set("/", before), update] {
        let operation = Operation(.write(write, hash: nil), from: .call(.anonymous) { _ in })
        let (count, told) = try await rows.execute(validating: nil) {
          writer -> (Int, [(Path, Node)]) in
          let counting = CountingState(base: writer)
          let pass = try sequencer.run([operation], in: counting, SessionJournal(), mayHold: false)
          guard case .write(let changes, _)? = pass.steps.first else { return (counting.rows, []) }
          return (counting.rows, changes.map { ($0.path, $0.value) })
        }.result
        visited.append(count)
        last = told
      }
    }
    #expect(visited[3] - visited[1] < 40, "\(visited)")
    #expect(last.map(\.0) == ["c", "d"] && last.first?.1 == Node.object([(ChildKey("b"), wide)]))
  }

  @Test("Whether there are priorities above a removal costs one row for each location")
  func removal() async throws {
    let path: Path = "a/b/c/d/e/f/g/h"
    var rows: [Int] = []
    for priority in [nil, Priority.number(3)] {
      let before = Node.empty.setting(path.child("x"), to: 1).setting(path.child("y"), to: 2)
        .setting("other", to: .leaf(.int(1), priority: priority))
      let (cost, after) = try await cost(of: [(path.child("x"), .empty)], on: before)
      #expect(after.descendant(path).childCount == 1)
      rows.append(cost)
    }
    // One for each of the nine locations from the root down, and whether there are any priorities at all.
    #expect(rows[1] - rows[0] <= 9 + 2, "\(rows)")
  }

  @Test("Filtered listens are told of the locations above what they are told is gone, and of no others")
  func surroundings() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("demo")
    let most = 100
    var list = Node.empty
    for i in 0..<most {
      let item = Node.object([
        ("p", .object([("x", 1), ("y", 2)], priority: .number(1))), ("q", ["z": 1]), ("k", 1),
      ])
      list = list.settingChild(ChildKey("i\(1_000 + i)"), to: item)
    }
    _ = try await database.set("list", to: list, as: .administrator)
    let group = RecordingGroup()
    let connection = database.connect(as: .anonymous, to: RecordingSink(group))
    connection.listen(
      "list", query: QuerySpec(ordering: .key, limit: .first(1)), tag: 7, hash: "", request: 1)
    _ = try await database.set("beside", to: 1, as: .administrator)
    _ = group.take()
    var changes: [(Path, Node)] = []
    for i in 0..<most {
      changes.append((Path("i\(1_000 + i)/p/x"), .empty))
      changes.append((Path("i\(1_000 + i)/q/z"), .empty))
    }
    _ = try await database.update("list", changes, as: .administrator)
    let pushes = group.take().flatMap { $0 }.flatMap(\.outputs).compactMap { output -> RealtimePush? in
      if case .push(let push) = output { return push }
      return nil
    }
    #expect(pushes.map(\.text) == ["m list {i1000/p/x:null,i1000/q/z:null} #7"])
    #expect(pushes.map(\.emptied) == [["list/i1000/q"]])
    #expect(pushes.map(\.prioritized) == [["list/i1000/p"]])
    connection.close()
  }
}

/// A sequenced state that counts the rows which are looked up and walked over, also those that are not durable yet.
final class CountingState: SequencedTransaction {
  private let base: any SequencedTransaction
  private(set) var rows = 0

  init(base: any SequencedTransaction) { self.base = base }

  var version: Version { base.version }
  var commitVersion: Version { base.commitVersion }

  func get(_ key: [UInt8]) throws -> VersionedValue? {
    rows += 1
    return try base.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try base.scan(range, reverse: reverse) { key, value, version in
      rows += 1
      return try visit(key, value, version)
    }
  }

  func set(_ key: [UInt8], _ value: StoredValue) throws { try base.set(key, value) }
  func insert(_ key: [UInt8], _ value: StoredValue) throws { try base.insert(key, value) }
  func clear(_ key: [UInt8]) throws { try base.clear(key) }
  func clear(_ range: KeyRange) throws { try base.clear(range) }
  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws { try base.log(payload, attachment) }
  func reserveCommitVersion() { base.reserveCommitVersion() }
}
