// Tests Listen streams: every snapshot contains the query's result at the snapshot's time, without missing, duplicate
// or partial changes.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Listen streams", .timeLimit(.minutes(10))) struct WatchTests {
  static func listen(
    _ fixture: EngineFixture, _ client: WatchClient, as caller: Principal = .administrator
  ) async throws -> WatchStream {
    try await fixture.engine.watch(fixture.database, as: caller, output: client)
  }

  static func query(
    _ fixture: EngineFixture, _ structured: StructuredQuery
  ) -> WatchTarget.Selection { .query(Query(parent: fixture.root, structured)) }

  // MARK: The protocol

  @Test("a document that leaves a target with a projection (selected fields) reveals no other fields")
  func projectedDocumentLeaves() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", ["v": 9, "secret": "s"])
    try await fixture.set("c/b", ["v": 9, "secret": "s"])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    let filter = Filter.field(FieldFilter(FieldPath(field: "v"), .greaterThan, 5))
    let projected = StructuredQuery(from: [.init("c")], filter: filter, select: [FieldPath(field: "v")])
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, projected)))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    let removed = try #require(try await fixture.set("c/a", ["v": 1, "secret": "t"]).commitTime)
    #expect(try await client.snapshot(at: removed)[2]?.keys.sorted() == ["c/b"])
    let removals = client.view.responses.filter {
      if case .documentRemove(let name, _, [2]) = $0 { name.id == "a" } else { false }
    }
    #expect(removals.count == 1)
    // A document that leaves one of two targets has the projection of the remaining target. A target without a projection may
    // receive all fields.
    let unprojected = StructuredQuery(from: [.init("c")], filter: filter)
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, unprojected)))
    try await eventually("both targets are current") { client.view.current == [2, 4] }
    let both = try #require(try await fixture.set("c/b", ["v": 1, "secret": "t"]).commitTime)
    #expect(try await client.snapshot(at: both)[2]?.isEmpty == true)
    for case .documentChange(let document, let targets, let removed) in client.view.responses {
      let fields = try document.fields()
      if targets.contains(4) { continue }
      #expect(fields["secret"] == nil, "\(document.name) to \(targets), out of \(removed)")
    }
    stream.close()
  }

  @Test("a new target receives ADD, its documents, CURRENT and one snapshot")
  func newTarget() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", ["n": 1])
    let commit = try #require(try await fixture.set("c/b", ["n": 2]).commitTime)
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    _ = try await client.snapshot(at: commit)
    let kinds = client.view.responses.map { response -> String in
      switch response {
      case .targetChange(let change): "\(change.kind)"
      case .documentChange(let document, _, _): document.name.id
      default: "other"
      }
    }
    #expect(kinds == ["add", "a", "b", "current", "noChange"])
    #expect(client.view.violations.isEmpty)
    let token = client.view.token
    #expect(ResumeToken.decode(token)?.timestamp == client.view.snapshots.last?.time)
    #expect(
      ResumeToken.encode(Version(microseconds: 1_766_494_185_829_645)) == [
        0x0A, 0x09, 0x08, 0x8D, 0xEA, 0xC6, 0xD3, 0xDF, 0xD3, 0x91, 0x03,
      ])
  }

  @Test("targets for an empty query and a missing document become current")
  func emptyQueryAndMissingDocument() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    stream.addTarget(WatchTarget(id: 4, .documents([try fixture.name("c/none")])))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    let deletes = client.view.responses.filter {
      if case .documentDelete(_, _, [4]) = $0 { true } else { false }
    }
    #expect(deletes.count == 1)
    let commit = try #require(try await fixture.set("c/none", ["n": 1]).commitTime)
    let documents = try await client.snapshot(at: commit)
    #expect(documents[2]?.count == 1)
    #expect(documents[4]?.count == 1)
    let deleted = try #require(try await fixture.delete("c/none").commitTime)
    #expect(try await client.snapshot(at: deleted)[4]?.isEmpty == true)
    #expect(client.view.violations.isEmpty)
  }

  @Test("a commit that affects two of three targets arrives in one snapshot")
  func commitIsOneSnapshot() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    let red = Filter.field(FieldFilter(FieldPath(field: "color"), .equal, "red"))
    let big = Filter.field(FieldFilter(FieldPath(field: "size"), .greaterThan, 5))
    stream.addTarget(
      WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")], filter: red))))
    stream.addTarget(
      WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("c")], filter: big))))
    stream.addTarget(WatchTarget(id: 6, Self.query(fixture, StructuredQuery(from: [.init("d")]))))
    try await eventually("all targets are current") {
      client.view.current == [2, 4, 6] && !client.view.snapshots.isEmpty
    }
    try await fixture.set("c/x", ["color": "red", "size": 9])
    // Waits for the first snapshot, because close commits may be merged.
    try await eventually("the first document is visible") {
      client.view.snapshots.last?.documents[2]?["c/x"] != nil
    }
    let commit = try #require(
      try await fixture.commit([
        Write(.update(try fixture.name("c/x"), fields: ["color": "blue", "size": 7])),
        Write(.update(try fixture.name("c/y"), fields: ["color": "red", "size": 1])),
      ]).commitTime)
    let documents = try await client.snapshot(at: commit)
    #expect(documents[2]?.keys.map(\.description) == ["c/y"])
    #expect(documents[4]?.keys.map(\.description) == ["c/x"])
    // No snapshot contains half of the commit.
    for snapshot in client.view.snapshots {
      let hasX = snapshot.documents[2]?["c/x"] != nil
      let hasY = snapshot.documents[2]?["c/y"] != nil
      #expect(!(hasX && hasY))
    }
    // For a document that leaves one target and stays in another, the client receives one message.
    let moved = client.view.responses.contains {
      if case .documentChange(let document, [4], [2]) = $0 { document.name.id == "x" } else { false }
    }
    #expect(moved)
    #expect(client.view.violations.isEmpty)
  }

  @Test("a document in two targets is one message with both ids, and its bytes are shared")
  func documentInTwoTargets() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    stream.addTarget(WatchTarget(id: 4, .documents([try fixture.name("c/x")])))
    try await eventually("all targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    let commit = try #require(try await fixture.set("c/x", ["n": 1]).commitTime)
    let documents = try await client.snapshot(at: commit)
    #expect(documents[2]?["c/x"] === documents[4]?["c/x"])
    let messages = client.view.responses.compactMap { response -> [Int32]? in
      if case .documentChange(_, let targets, _) = response { targets.sorted() } else { nil }
    }
    #expect(messages == [[2, 4]])
  }

  @Test("an invalid target is removed without affecting others, and each removal is answered once")
  func invalidTarget() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    let bad = StructuredQuery(from: [.init("c"), .init("d")])
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, bad)))
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    stream.rejectTarget(6, .unimplemented("pipelines"))
    try await eventually("the valid target is current") { client.view.current == [4] }
    #expect(client.view.removed[2]??.code == .invalidArgument)
    try await eventually("the other target is rejected") { client.view.removed[6]??.code == .unimplemented }
    stream.removeTarget(2)
    stream.removeTarget(4)
    // The same id is reused immediately.
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current again") {
      client.view.current == [4] && client.view.removals.count == 4
    }
    #expect(client.view.removals == [2, 6, 2, 4])
    #expect(client.view.failure == nil)
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, StructuredQuery(from: [.init("d")]))))
    try await eventually("a duplicate id ends the stream") { client.view.failure?.code == .invalidArgument }
  }

  @Test(
    "a target with the option `once` ends after its first snapshot; for target id 0 the server chooses an id")
  func onceAndServerIDs()
    async throws
  {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 0, Self.query(fixture, StructuredQuery(from: [.init("c")])), once: true))
    try await eventually("the target has ended") { client.view.removals == [1] }
    #expect(client.view.snapshots.count == 1)
    stream.addTarget(WatchTarget(id: 0, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the next target has the next id") { client.view.current == [2] }
  }

  @Test("an idle stream receives a new token at least every 45 s")
  func heartbeat() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { client.view.snapshots.count == 1 }
    let first = client.view.token
    for _ in 0..<5 {
      try await eventually("the heartbeat timer is waiting") { fixture.clock.sleepers >= 1 }
      fixture.clock.advance(by: 9_250_000)
    }
    try await eventually("a heartbeat arrives") { client.view.snapshots.count >= 2 }
    #expect(client.view.token != first)
    let commit = try #require(try await fixture.set("c/x", [:]).commitTime)
    #expect(commit > client.view.snapshots[1].time)
    _ = try await client.snapshot(at: commit)
    #expect(client.view.violations.isEmpty)
  }

  @Test("each stream gets one heartbeat (a response with a new token) in an interval")
  func oneHeartbeat() async throws {
    let fixture = try EngineFixture()
    var clients: [WatchClient] = []
    for _ in 0..<64 {
      let client = WatchClient()
      let stream = try await Self.listen(fixture, client)
      stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
      clients.append(client)
    }
    let open = clients
    try await eventually("the targets are current") { open.allSatisfy { $0.view.snapshots.count == 1 } }
    for _ in 0..<4 {
      try await eventually("the heartbeat timer is waiting") { fixture.clock.sleepers >= 1 }
      fixture.clock.advance(by: 9_250_000)
    }
    try await eventually("all heartbeats arrive") { open.allSatisfy { $0.view.snapshots.count == 2 } }
    #expect(open.allSatisfy { $0.view.violations.isEmpty })
  }

  @Test(
    "heartbeats go to one group of streams after another; a round has each open stream once, and no group is large"
  )
  func groups() async throws {
    let fixture = try EngineFixture()
    var groups = StreamGroups()
    var streams: [WatchStream] = []
    for _ in 0..<1024 { streams.append(try await Self.listen(fixture, WatchClient())) }
    for stream in streams { groups.insert(stream) }
    for stream in streams.prefix(512) { groups.remove(stream) }
    var round: [ObjectIdentifier] = []
    for _ in 0..<StreamGroups.count {
      let group = groups.streamsOfNextGroups(1)
      #expect(group.count <= 24)
      round += group.map { ObjectIdentifier($0) }
    }
    #expect(round.count == 512 && groups.streamCount == 512)
    #expect(Set(round) == Set(streams.suffix(512).map { ObjectIdentifier($0) }))
    #expect(groups.streamsOfNextGroups(.max).count == 512)
  }

  @Test("writes that change nothing cause no snapshot")
  func noEventWithoutChange() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/x", ["n": 1])
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { client.view.snapshots.count == 1 }
    try await fixture.set("c/x", ["n": 1])
    try await fixture.set("other/x", ["n": 1])
    let commit = try #require(try await fixture.set("c/y", [:]).commitTime)
    _ = try await client.snapshot(at: commit)
    #expect(client.view.snapshots.count == 2)
  }

  @Test("if several commits merge into one snapshot, every target gets the last contents of a document")
  func mergedCommits() throws {
    let database = DatabaseName(project: "demo")
    let name = try #require(DocumentName(database: database, path: "c/d"))
    func document(_ version: Int64) -> StoredDocument {
      StoredDocument(
        name: name, createTime: Timestamp(microseconds: 1), updateTime: Timestamp(microseconds: version),
        fields: ["n": .integer(version)])
    }
    let first = CommittedChange(name: name, before: document(1), after: document(2))
    let second = CommittedChange(name: name, before: document(2), after: document(3))
    // Target 1 contains the document throughout. Target 2 loses it with the first commit and ignores the
    // second.
    let delta = SnapshotDelta([
      WatchMatch(change: first, registration: 1, before: true, after: true, isNamed: false),
      WatchMatch(change: first, registration: 2, before: true, after: false, isNamed: false),
      WatchMatch(change: second, registration: 1, before: true, after: true, isNamed: false),
    ])
    #expect(delta.entries.count == 1)
    let entry = try #require(delta.entries.first)
    #expect(entry.before?.updateTime == Timestamp(microseconds: 1))
    #expect(entry.after?.updateTime == Timestamp(microseconds: 3))
    #expect(entry.effects.map(\.registration) == [1, 2])
    #expect(entry.effects.map(\.wasIn) == [true, true])
    #expect(entry.effects.map(\.isIn) == [true, false])
  }

  @Test("changes for a slow client are merged, and the client converges to the right state")
  func slowClient() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    let limited = StructuredQuery(
      from: [.init("c")], orderBy: [.init(FieldPath(field: "n"), .descending)], limit: 5)
    stream.addTarget(WatchTarget(id: 4, Self.query(fixture, limited)))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    client.block(true)
    var last = Timestamp.epoch
    for round in 0..<20 {
      let writes = try (0..<100).map { index in
        Write(
          .update(
            try fixture.name(ResourcePath(["c", "d\(index)"])),
            fields: ["n": .integer(Int64((index * 37 + round * 11) % 101))]))
      }
      last = try #require(try await fixture.commit(writes).commitTime)
    }
    for index in 0..<50 {
      last = try #require(try await fixture.delete(ResourcePath(["c", "d\(index)"])).commitTime)
    }
    let received = client.view.responses.count
    client.block(false)
    let documents = try await client.snapshot(at: last)
    #expect(documents[2]?.count == 50)
    #expect(
      Set(documents[4]?.keys.map { $0 } ?? []) == Set(try await fixture.query(limited).map(\.name.path)))
    #expect(client.view.responses.count - received < 1_000)
    #expect(client.view.violations.isEmpty)
  }

  // A client that wrote the document shows it locally until a snapshot without it arrives.
  @Test(
    "a snapshot follows even if a document matched only between the last snapshot and this one",
    arguments: [false, true])
  func briefMatch(onlyNamesAreKept: Bool) async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    stream.addTarget(WatchTarget(id: 4, .documents([try fixture.name("c/x")])))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    client.block(true)
    let calls = client.view.sendCount
    _ = try await fixture.set("c/y", [:])
    try await eventually("the stream sends") { client.view.sendCount > calls }
    let size = onlyNamesAreKept ? 900_000 : 1
    for _ in 0..<20 {
      _ = try await fixture.set("c/x", ["x": .bytes([UInt8](repeating: 1, count: size))])
    }
    let last = try #require(try await fixture.delete("c/x").commitTime)
    client.block(false)
    let documents = try await client.snapshot(at: last)
    #expect(documents[2]?.keys.map { $0 } == ["c/y"] && documents[4]?.isEmpty == true)
    #expect(client.view.violations.isEmpty)
  }

  @Test("shutdown ends streams with UNAVAILABLE")
  func shutDown() async throws {
    let fixture = try EngineFixture()
    let client = WatchClient()
    _ = try await Self.listen(fixture, client)
    await fixture.engine.shutDown()
    try await eventually("the stream has ended") { client.view.failure?.code == .unavailable }
    #expect(await failure { try await fixture.get("c/d") }?.code == .unavailable)
  }

  // MARK: Model check

  @Test("under random writes every snapshot is the query's result at the snapshot's time", arguments: 1...4)
  func snapshotsEqualQueries(seed: UInt64) async throws {
    let fixture = try EngineFixture()
    var model = RandomModel(seed: seed, database: fixture.database)
    let client = WatchClient()
    var stream = try await Self.listen(fixture, client)
    var queries: [Int32: NormalizedQuery] = [:]
    var id: Int32 = 2
    while queries.count < 12 {
      let query = model.query(root: fixture.root)
      guard let normalized = try? NormalizedQuery(query) else { continue }
      queries[id] = normalized
      stream.addTarget(WatchTarget(id: id, .query(query)))
      id += 2
    }
    var history: [(time: Timestamp, documents: [ResourcePath: MapValue])] = [(.epoch, [:])]
    for _ in 0..<80 {
      var documents = history[history.count - 1].documents
      let writes = try model.writes(atMost: 4, on: &documents)
      let response = try await fixture.commit(writes)
      history.append((try #require(response.commitTime), documents))
      if model.chance(30) { await Task.yield() }
    }
    _ = try await fixture.set("probe/x", [:])
    // A new target forces a snapshot of at least the last commit's time.
    stream.addTarget(WatchTarget(id: 1_001, .documents([try fixture.name("probe/x")])))
    _ = try await client.snapshot(at: history[history.count - 1].time)
    let view = client.view
    #expect(view.violations == [])
    #expect(view.snapshots.count > 1)
    for snapshot in view.snapshots {
      let state = history.last { $0.time <= snapshot.time }?.documents ?? [:]
      for (id, query) in queries where snapshot.documents[id] != nil {
        let expected = Set(naiveResult(query, state, fixture.database))
        #expect(Set(snapshot.documents[id]?.keys.map { $0 } ?? []) == expected, "\(query.canonicalForm)")
        for (path, document) in snapshot.documents[id] ?? [:] {
          #expect(
            try document.fields() == query.projected(state[path] ?? [:]),
            "\(path) at \(snapshot.time.microseconds) in \(id): \(query.canonicalForm)")
        }
      }
    }
    stream.close()
    stream = try await Self.listen(fixture, client)
    stream.close()
  }
}
