// Tests Listen clients that stop reading: the buffers of these clients are bounded in bytes, the clients converge to
// the right state, and other clients are not delayed. Also tests the memory and cost of targets with large results.
//
// The buffer of a slow client degrades in two steps. Above its byte budget the buffer keeps only the names of changed
// documents. Above the budget of names it keeps one marker (the reset marker), which later resets all targets.

import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Slow listeners", .timeLimit(.minutes(10))) struct SlowListenerTests {
  private static func match(_ index: Int, bytes: Int, registration: Int = 1) throws -> WatchMatch {
    let name = try #require(
      DocumentName(database: DatabaseName(project: "demo"), path: ResourcePath(["c", "d\(index)"])))
    let document = StoredDocument(
      name: name, createTime: Timestamp(microseconds: 1), updateTime: Timestamp(microseconds: 2),
      fields: ["x": .bytes([UInt8](repeating: 1, count: bytes))])
    return WatchMatch(
      change: CommittedChange(name: name, before: nil, after: document), registration: registration,
      before: false, after: true, isNamed: false)
  }

  @Test(
    "a buffer over its budget replaces changes by names, and names by one reset marker; it never exceeds its budget",
    arguments: [10, 16_384])
  func budget(size: Int) throws {
    let budget = WatchBufferLimits()
    var buffer = BufferedChanges(budget)
    var stages: [String] = []
    for index in 0..<20_000 {
      buffer.add([try Self.match(index, bytes: size)])
      #expect(buffer.bytes <= max(budget.maximumChangeBytes, budget.maximumNameBytes))
      let stage =
        switch buffer.content {
        case .changes(let matches):
          matches.reduce(0) { $0 + ($1.change.after?.encoded.count ?? 0) } <= budget.maximumChangeBytes
            ? "changes" : "too many changes"
        case .names: "names"
        case .reset: "reset"
        }
      if stages.last != stage { stages.append(stage) }
    }
    #expect(stages == ["changes", "names", "reset"])
    _ = buffer.take()
    #expect(buffer.isEmpty && buffer.bytes == 0)
  }

  @Test(
    "the buffer counts a document in many targets once, and keeps only names for a commit above its budget")
  func sharedDocuments() throws {
    var buffer = BufferedChanges(WatchBufferLimits())
    let change = try Self.match(1, bytes: 900_000).change
    buffer.add(
      (0..<200).map {
        WatchMatch(change: change, registration: $0, before: false, after: true, isNamed: false)
      })
    guard case .changes(let matches) = buffer.content else {
      Issue.record("the matches are missing")
      return
    }
    #expect(matches.count == 200)
    buffer.add(try (10..<20).map { try Self.match($0, bytes: 900_000) })
    guard case .names(let paths) = buffer.content else {
      Issue.record("9 MB are buffered in full")
      return
    }
    #expect(paths.count == 11)
  }

  @Test("a client that stops reading during thousands of writes converges to the queries' results")
  func stoppedReader() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let all = StructuredQuery(from: [.init("c")])
    let limited = StructuredQuery(
      from: [.init("c")], orderBy: [.init(FieldPath(field: "n"), .descending)], offset: 3, limit: 40)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(all)))
    stream.addTarget(WatchTarget(id: 4, fixture.selection(limited)))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    client.block(true)
    let bytes = Value.bytes([UInt8](repeating: 9, count: 16_000))
    let budget = WatchBufferLimits()
    var last = Timestamp.epoch
    for round in 0..<60 {
      let writes = try (0..<50).map { index -> Write in
        let path = ResourcePath(["c", "d\((round * 50 + index) % 2_000)"])
        if index == 7, round > 40 { return Write(.delete(try fixture.name(path))) }
        return Write(
          .update(
            try fixture.name(path),
            fields: ["n": .integer(Int64((index * 37 + round * 11) % 101)), "x": bytes]))
      }
      last = try #require(try await fixture.commit(writes).commitTime)
      #expect(stream.bufferedBytes <= max(budget.maximumChangeBytes, budget.maximumNameBytes))
    }
    client.block(false)
    let documents = try await client.snapshot(at: last)
    for (id, query) in [(2, all), (4, limited)] as [(Int32, StructuredQuery)] {
      let expected = try await fixture.query(query)
      #expect(Set(documents[id]?.keys.map { $0 } ?? []) == Set(expected.map(\.name.path)))
      for document in expected {
        #expect(documents[id]?[document.name.path]?.updateTime == document.updateTime)
      }
    }
    #expect(client.view.violations.isEmpty)
    #expect(client.view.resets == 0)
    #expect(client.view.largestBatch <= budget.maximumBatchBytes + 17_000)
  }

  @Test(
    "above the budget of names, all targets of the slow stream are reset, and other streams are not delayed")
  func resetOfStoppedReader() async throws {
    let fixture = try EngineFixture()
    let slow = WatchClient()
    let fast = WatchClient()
    let query = StructuredQuery(from: [.init("c")])
    let limited = StructuredQuery(from: [.init("c")], orderBy: [.init(FieldPath(field: "n"))], limit: 10)
    for client in [slow, fast] {
      let stream = try await fixture.watch(client)
      stream.addTarget(WatchTarget(id: 2, fixture.selection(query)))
      stream.addTarget(WatchTarget(id: 4, fixture.selection(limited)))
      try await eventually("the target is current") {
        client.view.current == [2, 4] && !client.view.snapshots.isEmpty
      }
    }
    slow.block(true)
    var last = Timestamp.epoch
    for start in stride(from: 0, to: EngineLimits.maximumStreamChangedNames + 600, by: 500) {
      let writes = try (start..<start + 500).map {
        Write(
          .update(try fixture.name(ResourcePath(["c", "d\($0)"])), fields: ["n": .integer(Int64(-$0))]))
      }
      last = try #require(try await fixture.commit(writes).commitTime)
      // The fast client receives each commit while the slow client is blocked.
      _ = try await fast.snapshot(at: last)
    }
    #expect(fast.view.resets == 0)
    slow.block(false)
    let documents = try await slow.snapshot(at: last)
    #expect(slow.view.resets == 2)
    #expect(documents[2]?.count == fast.view.documents[2]?.count)
    #expect(Set(documents[2]?.keys.map { $0 } ?? []) == Set(fast.view.documents[2]?.keys.map { $0 } ?? []))
    #expect(
      Set(documents[4]?.keys.map { $0 } ?? []) == Set(try await fixture.query(limited).map(\.name.path)))
    #expect(slow.view.violations.isEmpty && fast.view.violations.isEmpty)
    // The stream continues after the reset.
    let next = try #require(try await fixture.set("c/next", ["n": -1_000_000]).commitTime)
    #expect(try await slow.snapshot(at: next)[4]?["c/next"] != nil)
  }

  @Test("a target of 100,000 documents does not scan its names for each of thousands of changes")
  func manyNames() async throws {
    var budget = WatchBufferLimits()
    budget.maximumChanges = 10
    let fixture = try EngineFixture(watchBufferLimits: budget)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let names = try (0..<100_000).map { try fixture.name(ResourcePath(["c", "d\($0)"])) }
    stream.addTarget(WatchTarget(id: 2, .documents(names)))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    client.block(true)
    var last = Timestamp.epoch
    for start in stride(from: 90_000, to: 94_000, by: 500) {
      let writes = names[start..<start + 500].map { Write(.update($0, fields: ["n": 1])) }
      last = try #require(try await fixture.commit(writes).commitTime)
    }
    client.block(false)
    #expect(try await client.snapshot(at: last)[2]?.count == 4_000)
    #expect(client.view.resets == 0)
    #expect(client.view.violations.isEmpty)
  }

  @Test("pending requests and a stream's targets are limited in bytes")
  func requestBytes() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let query = fixture.selection(StructuredQuery(from: [.init("c")]))
    stream.addTarget(WatchTarget(id: 2, query, bytes: EngineLimits.maximumStreamTargetBytes - 10))
    stream.addTarget(WatchTarget(id: 4, query, bytes: 100))
    try await eventually("the second target is rejected") {
      client.view.removed[4]??.code == .resourceExhausted
    }
    #expect(client.view.current == [2])
    stream.removeTarget(2)
    stream.addTarget(WatchTarget(id: 4, query, bytes: 100))
    try await eventually("a slot is free") { client.view.current == [4] }
    client.block(true)
    for id in Int32(10)..<20 { stream.addTarget(WatchTarget(id: id, query, bytes: 10 << 20)) }
    client.block(false)
    try await eventually("the stream has ended") { client.view.failure?.code == .resourceExhausted }
  }

  @Test("a stream's memory includes the field masks of pending requests and of targets until their removal")
  func pendingMasks() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let mask = FieldMask((0..<1_000).map { FieldPath(field: "f\($0)") })
    let query = fixture.selection(StructuredQuery(from: [.init("c")], select: mask))
    client.block(true)
    // The blocked client does not accept the response, so later requests stay pending.
    stream.removeTarget(99)
    try await eventually("the request is in progress") { !stream.hasCommands }
    for id in Int32(2)..<12 { stream.addTarget(WatchTarget(id: id, query, bytes: 5_000)) }
    // The bytes of a request are counted while it is pending, and then as those of its target. So the sum does not depend
    // on how many requests the stream has processed.
    try await eventually("all requests count") { stream.heldBytes >= 10 * (5_000 + mask.heldBytes) }
    client.block(false)
    try await eventually("all targets are current") { client.view.current.count == 10 }
    for id in Int32(2)..<12 { stream.removeTarget(id) }
    try await eventually("all bytes are released") { stream.heldBytes == 0 }
  }

  @Test("a change in a query with offset and limit reads only the documents that enter or leave the result")
  func windowCost() async throws {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store)
    for start in stride(from: 0, to: 3_000, by: 500) {
      try await fixture.commit(
        try (start..<start + 500).map {
          Write(
            .update(
              try fixture.name(ResourcePath(["c", "d\($0)"])),
              fields: ["a": .integer(Int64($0 % 2_999)), "b": 1]))
        })
    }
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    let query = StructuredQuery(
      from: [.init("c")], orderBy: [.init(FieldPath(field: "a"))], offset: 10, limit: 1_000)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(query)))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    _ = store.takeCount()
    // The offset skips `c/d3`. Its deletion moves the result window forwards by one document, its insertion backwards.
    for change in [nil, ["a": .integer(3), "b": 1], nil] as [MapValue?] {
      let response =
        if let change { try await fixture.set("c/d3", change) } else { try await fixture.delete("c/d3") }
      let documents = try await client.snapshot(at: try #require(response.commitTime))
      #expect(
        Set(documents[2]?.keys.map { $0 } ?? []) == Set(try await fixture.query(query).map(\.name.path)))
    }
    let view = client.view
    #expect(view.violations.isEmpty && view.resets == 0)
    stream.close()
    // The three comparison queries above read 1,010 results each: an index entry, a document row and some
    // read-ahead per result. The listener's reads must add few rows to these.
    let cost = store.takeCount()
    #expect(cost < 3 * 3 * 1_010, "\(cost) rows")
  }
}
