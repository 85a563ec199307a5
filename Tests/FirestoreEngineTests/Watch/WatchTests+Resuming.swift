// Tests targets that resume from the token of an earlier stream.

import EmbeddedStore
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

extension WatchTests {
  @Test(
    "a resumed target receives exactly the changes since its token, also after a restart", arguments: [1, 2])
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
    var cachedDocuments: [Int32: [ResourcePath: StoredDocument]] = [:]
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
      try await eventually("all targets are current") {
        client.view.current.count == 10 && !client.view.snapshots.isEmpty
      }
      let view = client.view
      #expect(view.violations == [])
      for (id, target) in targets {
        // Applies the resumed stream's changes to the documents of the earlier streams.
        var clientDocuments = cachedDocuments[id] ?? [:]
        for response in view.responses {
          switch response {
          case .documentChange(let document, let ids, let removed):
            if ids.contains(id) { clientDocuments[document.name.path] = document }
            if removed.contains(id) { clientDocuments[document.name.path] = nil }
          case .documentDelete(let name, _, let removed), .documentRemove(let name, _, let removed):
            if removed.contains(id) { clientDocuments[name.path] = nil }
          case .targetChange(let change): #expect(change.kind != .reset)
          case .existenceFilter: break
          }
        }
        cachedDocuments[id] = clientDocuments
        let expected = Set(naiveResult(target.normalized, documents, fixture.database))
        #expect(Set(clientDocuments.keys) == expected, "run \(run): \(target.normalized.canonicalForm)")
        for (path, document) in clientDocuments {
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

  @Test("a resumed stream sends only changed documents")
  func resumeSendsChangesOnly() async throws {
    let fixture = try EngineFixture()
    for index in 0..<200 {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["n": .integer(Int64(index))])
    }
    let first = WatchClient()
    let stream = try await Self.listen(fixture, first)
    stream.addTarget(WatchTarget(id: 2, Self.query(fixture, StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { !first.view.snapshots.isEmpty }
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
    try await eventually("the target is current") { !second.view.snapshots.isEmpty }
    let changed = second.view.responses.filter {
      switch $0 {
      case .documentChange, .documentDelete, .documentRemove: true
      default: false
      }
    }
    #expect(changed.count == 2)
    resumed.close()
  }

  @Test("an unknown token resets the target and sends all documents with an existence filter")
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
      try await eventually("the target is current") { !client.view.snapshots.isEmpty }
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

  /// Resumes a target with `expectedCount` and the cached documents, and returns the client's state.
  private func resume(
    _ fixture: EngineFixture, _ query: WatchTarget.Selection, from token: [UInt8], expecting: Int?,
    holding documents: [ResourcePath: StoredDocument] = [:]
  ) async throws -> WatchClient.View {
    let client = WatchClient()
    client.setCachedDocuments([2: documents])
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, query, start: .resumeToken(token), expectedCount: expecting))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    #expect(client.view.violations.isEmpty)
    stream.close()
    return client.view
  }

  /// Listens for the first time and returns the token and the documents.
  private func listen(
    _ fixture: EngineFixture, _ query: WatchTarget.Selection
  ) async throws -> (token: [UInt8], documents: [ResourcePath: StoredDocument]) {
    let client = WatchClient()
    let stream = try await Self.listen(fixture, client)
    stream.addTarget(WatchTarget(id: 2, query))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    stream.close()
    return (client.view.token, client.view.documents[2] ?? [:])
  }

  /// Encodes each response as one letter, the first letter of its kind: add, reset, document, filter, current, no change.
  private func eventSequence(_ view: WatchClient.View) -> String {
    String(
      view.responses.map { response -> Character in
        switch response {
        case .targetChange(let change):
          switch change.kind {
          case .add: "a"
          case .reset: "r"
          case .current: "c"
          default: "n"
          }
        case .existenceFilter: "f"
        default: "d"
        }
      })
  }

  @Test(
    "a client with more documents than the target gets an existence filter after the changes; with fewer, a reset"
  )
  func mismatchedCount() async throws {
    let fixture = try EngineFixture()
    for index in 0..<600 {
      try await fixture.set(ResourcePath(["c", "d\(index)"]), ["n": .integer(Int64(index))])
    }
    try await fixture.set("gone/stray", [:])
    let foreignDocuments = try await listen(
      fixture, Self.query(fixture, StructuredQuery(from: [.init("gone")])))
    let ordered = StructuredQuery(from: [.init("c")], orderBy: [.init(FieldPath(field: "n"), .descending)])
    var limited = ordered
    limited.limit = 10
    var skipping = ordered
    skipping.offset = 100
    for structured in [ordered, limited, skipping] {
      let query = Self.query(fixture, structured)
      let (token, documents) = try await listen(fixture, query)
      let before = documents.count
      try await fixture.set("c/new", ["n": 10_000])
      try await fixture.delete("c/d8")
      let now = Set(try await fixture.query(structured).map(\.name.path))
      for expected in [0, 1, before - 1] {
        let cachedDocuments = Dictionary(
          uniqueKeysWithValues: documents.prefix(expected).map { ($0.key, $0.value) })
        let view = try await resume(
          fixture, query, from: token, expecting: expected, holding: cachedDocuments)
        #expect(Set(view.documents[2]?.keys.map { $0 } ?? []) == now)
        #expect(eventSequence(view).wholeMatch(of: #/ard+fcn+/#) != nil, "\(eventSequence(view))")
        #expect(view.filters[2]?.count == now.count)
      }
      let more = documents.merging(foreignDocuments.documents) { $1 }
      #expect(more.count == before + 1)
      let view = try await resume(fixture, query, from: token, expecting: before + 1, holding: more)
      let filter = try #require(view.filters[2])
      #expect(filter.count == now.count && view.documents[2]?.count == now.count + 1)
      // The client discards documents whose names are not in the bloom filter, and keeps exactly the current
      // result.
      let names = try #require(filter.names)
      let kept = (view.documents[2] ?? [:]).values.filter { names.mightContain($0.name.description) }
      #expect(Set(kept.map(\.name.path)) == now)
      // The filter follows the changes and precedes CURRENT.
      #expect(eventSequence(view).wholeMatch(of: #/ad{1,4}fcn+/#) != nil, "\(eventSequence(view))")
      for expected in [before, EngineLimits.maximumResumeCountDocuments + 1, -1, nil] {
        let view = try await resume(fixture, query, from: token, expecting: expected, holding: documents)
        #expect(view.filters[2] == nil && view.resets == 0, "\(String(describing: expected))")
        #expect(Set(view.documents[2]?.keys.map { $0 } ?? []) == now)
      }
      try await fixture.delete("c/new")
      try await fixture.set("c/d8", ["n": 8])
    }
  }

  @Test(
    "a target of named documents gets an existence filter if the client has too many of them, a reset if too few"
  )
  func mismatchedDocumentCount() async throws {
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store)
    for id in ["there", "also"] { try await fixture.set(ResourcePath(["c", id]), [:]) }
    for (ids, count) in [(["there"], 1), (["gone"], 0), (["also", "gone", "there"], 2)] {
      let target = WatchTarget.Selection.documents(try ids.map { try fixture.name(ResourcePath(["c", $0])) })
      let (token, documents) = try await listen(fixture, target)
      #expect(documents.count == count)
      _ = store.takeCount()
      let agreeing = try await resume(fixture, target, from: token, expecting: count, holding: documents)
      #expect(agreeing.filters[2] == nil && eventSequence(agreeing).wholeMatch(of: #/acn+/#) != nil)
      // Each document is read at the token's time and at the current time.
      let rows = store.takeCount()
      #expect(rows == 2 * ids.count, "\(rows) rows")
      let more = try await resume(fixture, target, from: token, expecting: count + 1, holding: documents)
      #expect(more.filters[2]?.count == count && eventSequence(more).wholeMatch(of: #/afcn+/#) != nil)
      #expect(store.takeCount() == rows)
      guard count > 0 else { continue }
      let fewer = try await resume(fixture, target, from: token, expecting: count - 1)
      #expect(fewer.resets == 1 && fewer.documents[2]?.keys == documents.keys)
      #expect(fewer.filters[2]?.count == count)
    }
  }
}
