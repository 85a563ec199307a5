// Targets that go on where a stream before them ended.

import EmbeddedStore
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

extension WatchTests {
  @Test("a resumed target gets exactly what it missed, also after a restart", arguments: [1, 2])
  func resumeAfterRestart(seed: UInt64) async throws {
    let directory = try TemporaryDirectory()
    var model = RandomModel(seed: seed, database: DatabaseName(project: "demo"))
    var documents: [ResourcePath: MapValue] = [:]
    func change(_ fixture: EngineFixture, _ count: Int) async throws -> Timestamp {
      var last = Timestamp.epoch
      for _ in 0..<count {
        let path = model.path()
        let fields = model.chance(30) ? nil : model.fields()
        documents[path] = fields
        let response =
          if let fields { try await fixture.set(path, fields) } else { try await fixture.delete(path) }
        last = response.commitTime ?? last
      }
      return last
    }
    var targets: [Int32: (query: Query, normalized: NormalizedQuery)] = [:]
    var held: [Int32: [ResourcePath: StoredDocument]] = [:]
    var token: [UInt8] = []
    for run in 0..<3 {
      let store = try await EmbeddedStore.open(directory: directory.path, EmbeddedOptions())
      let fixture = try EngineFixture(store: store)
      if run == 0 { _ = try await change(fixture, 40) }
      while targets.count < 10 {
        let query = model.query(root: fixture.root)
        guard let normalized = try? NormalizedQuery(query) else { continue }
        targets[Int32(targets.count) * 2 + 2] = (query, normalized)
      }
      let client = WatchClient()
      let stream = try await Self.listen(fixture, client)
      for (id, target) in targets {
        stream.addTarget(
          WatchTarget(id: id, .query(target.query), start: run == 0 ? .beginning : .resumeToken(token)))
      }
      try await eventually("all are current") {
        client.view.current.count == 10 && !client.view.snapshots.isEmpty
      }
      let view = client.view
      #expect(view.violations == [])
      for (id, target) in targets {
        // What the client held, with what the resumed stream said since.
        var mine = held[id] ?? [:]
        for response in view.responses {
          switch response {
          case .documentChange(let document, let ids, let removed):
            if ids.contains(id) { mine[document.name.path] = document }
            if removed.contains(id) { mine[document.name.path] = nil }
          case .documentDelete(let name, _, let removed), .documentRemove(let name, _, let removed):
            if removed.contains(id) { mine[name.path] = nil }
          case .targetChange(let change): #expect(change.kind != .reset)
          case .existenceFilter: break
          }
        }
        held[id] = mine
        let expected = Set(naiveResult(target.normalized, documents, fixture.database))
        #expect(Set(mine.keys) == expected, "run \(run): \(target.normalized.canonicalForm)")
        for (path, document) in mine {
          #expect(try document.fields() == target.normalized.projected(documents[path] ?? [:]))
        }
      }
      token = view.token
      stream.close()
      _ = try await change(fixture, 25)
      await fixture.engine.shutDown()
      try await store.close()
    }
  }

  @Test("a resumed stream sends only what has changed")
  func resumeSendsChangesOnly() async throws {
    let fixture = try EngineFixture()
    for index in 0..<200 {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["n": .integer(Int64(index))])
    }
    let first = WatchClient()
    let stream = try await Self.listen(fixture, first)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("it is current") { !first.view.snapshots.isEmpty }
    let token = first.view.token
    stream.close()
    try await fixture.set("c/d7", ["n": 1_000])
    try await fixture.delete("c/d8")
    try await fixture.set("other/d", [:])
    let second = WatchClient()
    let resumed = try await Self.listen(fixture, second)
    resumed.addTarget(
      WatchTarget(
        id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")])), start: .resumeToken(token),
        expectedCount: 200))
    try await eventually("it is current") { !second.view.snapshots.isEmpty }
    let changed = second.view.responses.filter {
      switch $0 {
      case .documentChange, .documentDelete, .documentRemove: true
      default: false
      }
    }
    #expect(changed.count == 2)
    resumed.close()
  }

  @Test("an unknown token resets the target and sends all with an existence filter")
  func unknownTokenResets() async throws {
    let fixture = try EngineFixture()
    for id in ["a", "b"] { try await fixture.set(ResourcePath(["c", id]), [:]) }
    for token in [
      [1, 2, 3], ResumeToken.encode(Version(microseconds: 5)),
      ResumeToken.encode(Version(microseconds: .max)),
    ] {
      let client = WatchClient()
      let stream = try await Self.listen(fixture, client)
      stream.addTarget(
        WatchTarget(
          id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")])), start: .resumeToken(token),
          expectedCount: 3))
      try await eventually("it is current") { !client.view.snapshots.isEmpty }
      let view = client.view
      #expect(view.documents[2]?.count == 2)
      let isReset = view.responses.contains {
        if case .targetChange(let change) = $0 { change.kind == .reset } else { false }
      }
      #expect(isReset)
      #expect(view.filters[2]?.count == 2)
      let names = try #require(view.filters[2]?.names)
      #expect(names.mightContain(try fixture.name("c/a").description))
      #expect(!names.mightContain(try fixture.name("c/gone").description))
      #expect(view.violations.isEmpty)
      stream.close()
    }
  }

  /// What a client that says how many documents it had is told when it resumes.
  private func resume(
    _ fixture: EngineFixture, _ query: WatchTarget.Selection, from token: [UInt8], expecting: Int?
  ) async throws -> WatchClient {
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, query, start: .resumeToken(token), expectedCount: expecting))
    try await eventually("it is current") { !client.view.snapshots.isEmpty }
    #expect(client.view.violations.isEmpty)
    stream.close()
    return client
  }

  private func token(_ fixture: EngineFixture, _ query: WatchTarget.Selection) async throws -> [UInt8] {
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, query))
    try await eventually("it is current") { !client.view.snapshots.isEmpty }
    stream.close()
    return client.view.token
  }

  @Test(
    "a client that had another number of documents than there were gets an existence filter, and the changes alone"
  )
  func resumeWithOtherCount() async throws {
    let fixture = try EngineFixture()
    for index in 0..<600 {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["n": .integer(Int64(index))])
    }
    let ordered = StructuredQuery(from: [.init("c")], orderBy: [.init(FieldPath(field: "n"), .descending)])
    var limited = ordered
    limited.limit = 10
    var skipping = ordered
    skipping.offset = 100
    let cases = [(ordered, 600, 600, "new"), (limited, 10, 10, "new"), (skipping, 500, 500, "d0")]
    for (structured, before, after, shown) in cases {
      let query = Self.query(fixture, structured)
      let token = try await token(fixture, query)
      try await fixture.set("c/new", ["n": 10_000])
      try await fixture.delete("c/d8")
      for expected in [0, 1, before - 1, before + 1] {
        let client = try await resume(fixture, query, from: token, expecting: expected)
        let filter = try #require(client.view.filters[2], "\(expected)")
        #expect(filter.count == after)
        #expect((filter.names == nil) == (expected == 0))
        if let names = filter.names {
          #expect(names.mightContain(try fixture.name(ResourcePath(["c", shown])).description))
        }
        let isReset = client.view.responses.contains {
          if case .targetChange(let change) = $0 { change.kind == .reset } else { false }
        }
        #expect(!isReset)
        // The filter stands between the changes and the news that these are all.
        let kinds = client.view.responses.map { response -> Character in
          switch response {
          case .targetChange(let change): change.kind == .add ? "a" : change.kind == .current ? "c" : "n"
          case .existenceFilter: "f"
          default: "d"
          }
        }
        let order = String(kinds)
        #expect(order.wholeMatch(of: #/ad{1,4}fcn+/#) != nil, "\(order)")
      }
      for expected in [before, EngineLimits.resumeCountDocuments + 1, -1, nil] {
        let client = try await resume(fixture, query, from: token, expecting: expected)
        #expect(client.view.filters[2] == nil, "\(String(describing: expected))")
      }
      try await fixture.delete("c/new")
      try await fixture.set("c/d8", ["n": 8])
    }
  }

  @Test("a single document that a client had wrongly, or lacks, is told by the filter's count")
  func resumeDocumentWithOtherCount() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/there", [:])
    for (id, count) in [("there", 1), ("gone", 0)] {
      let target = WatchTarget.Selection.documents([try fixture.name(ResourcePath(["c", id]))])
      let token = try await token(fixture, target)
      let agreeing = try await resume(fixture, target, from: token, expecting: count)
      #expect(agreeing.view.filters[2] == nil)
      let other = try await resume(fixture, target, from: token, expecting: 1 - count)
      #expect(other.view.filters[2]?.count == count)
    }
  }
}
