// Tests the watch change aggregator, which combines messages of the watch stream into snapshots. A limbo
// document is a document in the cache that matches a query, but that the server did not report for the query.
// The client requests the state of each limbo document with a separate target.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

private let root = ParentName(rootOf: DatabaseName(project: "test"))
private func name(_ id: String) -> DocumentName { root.collection("c").document(id) }

private func found(_ id: String, at version: Int64) -> CachedDocument {
  CachedDocument(
    found: name(id), fields: ["v": .integer(version)], version: .init(microseconds: version),
    createTime: .epoch)
}

@Suite("Watch change aggregation") struct AggregatorTests {
  private static let query = Target.query(
    ModelQuery(parent: root, StructuredQuery(from: [.init("c")])))

  private var aggregator = WatchChangeAggregator()
  private var targets: [TargetID: TargetData] = [2: TargetData(target: query, id: 2)]
  private var keys: [TargetID: Set<DocumentName>] = [:]

  private mutating func handle(_ changes: WatchChange...) {
    for change in changes { aggregator.handle(change, targets: targets) { [keys] in keys[$0] ?? [] } }
  }

  private mutating func snapshot(at version: Int64) -> RemoteEvent {
    aggregator.takeEvent(at: .init(microseconds: version), targets: targets) { [keys] in keys[$0] ?? [] }
  }

  private func update(_ kind: WatchChange.TargetUpdate.Kind, _ token: String = "") -> WatchChange {
    .target(.init(kind: kind, targets: [2], resumeToken: Array(token.utf8)))
  }

  private func documentChange(_ document: CachedDocument) -> WatchChange {
    .document(document.name, document, updated: [2], removed: [])
  }

  /// Acknowledges the request for the target.
  private mutating func acknowledgeTarget() {
    aggregator.recordRequest(2)
    handle(update(.add))
  }

  @Test("messages before the acknowledgement belong to an older request and are ignored")
  mutating func messagesBeforeAcknowledgement() {
    aggregator.recordRequest(2)
    handle(documentChange(found("old", at: 1)), update(.current, "old"))
    #expect(snapshot(at: 2) == RemoteEvent(version: .init(microseconds: 2)))
    aggregator.recordRequest(2)
    aggregator.recordRequest(2)
    handle(
      update(.add), documentChange(found("old", at: 3)), update(.remove), documentChange(found("old", at: 4)))
    #expect(snapshot(at: 5).targetChanges.isEmpty)
    handle(update(.add), documentChange(found("new", at: 6)), update(.current, "t"))
    let event = snapshot(at: 7)
    #expect(
      event.targetChanges == [
        2: TargetChange(resumeToken: Array("t".utf8), isCurrent: true, added: [name("new")])
      ])
    #expect(event.documents.keys.map(\.description) == [name("new").description])
  }

  @Test("a reset discards the target's documents")
  mutating func reset() {
    acknowledgeTarget()
    keys[2] = [name("a"), name("b")]
    handle(
      update(.current), documentChange(found("a", at: 2)), update(.reset, "t"),
      documentChange(found("b", at: 3)))
    let event = snapshot(at: 4)
    #expect(
      event.targetChanges == [
        2: TargetChange(resumeToken: Array("t".utf8), modified: [name("b")], removed: [name("a")])
      ])
  }

  @Test("a matching existence filter changes nothing")
  mutating func matchingFilter() {
    acknowledgeTarget()
    keys[2] = [name("a"), name("b")]
    handle(documentChange(found("c", at: 2)), .filter(2, count: 3, names: nil))
    let event = snapshot(at: 3)
    #expect(event.targetMismatches.isEmpty && event.targetChanges[2]?.added == [name("c")])
  }

  @Test("a bloom filter identifies the documents that no longer match")
  mutating func bloomFilter() {
    acknowledgeTarget()
    keys[2] = [name("a"), name("b"), name("c")]
    let names = BloomFilter([name("a"), name("b")])
    #expect(!names.mightContain(name("c").description))
    handle(.filter(2, count: 2, names: names))
    let event = snapshot(at: 3)
    #expect(event.targetMismatches.isEmpty)
    #expect(event.targetChanges[2] == TargetChange(removed: [name("c")]))
  }

  @Test("an empty bloom filter is ignored")
  mutating func emptyBloomFilter() throws {
    acknowledgeTarget()
    keys[2] = [name("a"), name("b")]
    let empty = try #require(BloomFilter(bitmap: [], padding: 0, hashCount: 0))
    handle(.filter(2, count: 1, names: empty))
    #expect(snapshot(at: 3).targetMismatches == [2: .existenceFilterMismatch])
  }

  @Test("a bloom filter with false positives causes a full reload")
  mutating func falsePositives() throws {
    acknowledgeTarget()
    keys[2] = [name("a"), name("b"), name("c")]
    let everything = try #require(BloomFilter(bitmap: [0xFF], padding: 0, hashCount: 1))
    handle(.filter(2, count: 2, names: everything))
    var event = snapshot(at: 3)
    #expect(event.targetMismatches == [2: .existenceFilterMismatchBloom])
    #expect(event.targetChanges[2]?.removed == [name("a"), name("b"), name("c")])
    #expect(TargetPurpose.existenceFilterMismatchBloom.label == "existence-filter-mismatch-bloom")
    handle(.filter(2, count: 7, names: nil))
    event = snapshot(at: 4)
    #expect(event.targetMismatches == [2: .existenceFilterMismatch])
  }

  @Test("if a target for one document becomes current without the document, the document is missing")
  mutating func missingDocument() {
    targets[2] = TargetData(target: .document(name("a")), id: 2, purpose: .limboResolution)
    acknowledgeTarget()
    handle(update(.current))
    let event = snapshot(at: 5)
    #expect(event.documents[name("a")]?.isMissing == true)
    #expect(event.resolvedLimbo == [name("a")])
  }

  @Test("a snapshot contains the newest version of a document")
  mutating func newestVersion() {
    targets[4] = TargetData(target: AggregatorTests.query, id: 4)
    acknowledgeTarget()
    handle(
      documentChange(found("a", at: 9)), .document(name("a"), found("a", at: 3), updated: [4], removed: []))
    #expect(snapshot(at: 10).documents[name("a")]?.version == .init(microseconds: 9))
  }
}

@Suite("Watch snapshots") struct WatchSnapshotTests {
  private func engine() -> SyncEngine {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    let query = ClientQuery(ModelQuery(parent: root, StructuredQuery(from: [.init("c")])))
    engine.listen(ListenerID(number: 1), to: query, options: .init())
    engine.watchStreamOpened(1)
    _ = engine.takeActions()
    return engine
  }

  private func snapshots(_ actions: [EngineAction]) -> [[String]] {
    actions.compactMap {
      if case .snapshot(_, let view) = $0 { view.documents.ordered.map { $0.name.id } } else { nil }
    }
  }

  private func endOfSnapshot(at version: Int64) -> WatchChange {
    .target(.init(kind: .noChange, targets: [], snapshotVersion: .init(microseconds: version)))
  }

  @Test("a snapshot older than the previous one is dropped")
  func olderSnapshot() {
    var engine = engine()
    engine.watchReceived(1, .target(.init(kind: .add, targets: [2])))
    engine.watchReceived(1, .target(.init(kind: .current, targets: [2], resumeToken: [1])))
    engine.watchReceived(1, endOfSnapshot(at: 10))
    #expect(snapshots(engine.takeActions()) == [[]])
    engine.watchReceived(1, .document(name("a"), found("a", at: 5), updated: [2], removed: []))
    engine.watchReceived(1, endOfSnapshot(at: 9))
    #expect(snapshots(engine.takeActions()).isEmpty)
    engine.watchReceived(1, endOfSnapshot(at: 11))
    #expect(snapshots(engine.takeActions()) == [["a"]])
  }

  @Test("a reopened stream resumes the target with its last token")
  func resumeToken() {
    var engine = engine()
    engine.watchReceived(1, .target(.init(kind: .add, targets: [2])))
    engine.watchReceived(1, .target(.init(kind: .current, targets: [2], resumeToken: [7])))
    engine.watchReceived(1, endOfSnapshot(at: 10))
    engine.watchStreamClosed(1, .unavailable("gone"))
    engine.timerFired(.backoff(.watch))
    engine.watchStreamOpened(2)
    let sent = engine.takeActions().compactMap { action -> TargetData? in
      if case .send(.watch, .addTarget(let data)) = action { data } else { nil }
    }
    #expect(sent.map(\.resumeToken) == [[7]] && sent.map(\.snapshotVersion) == [.init(microseconds: 10)])
  }

  @Test("at most 100 limbo documents are resolved at a time")
  func limboLimit() throws {
    var engine = engine()
    #expect(engine.maxLimboResolutions == 100)
    let names = (0..<150).map { name("d\($0)") }
    engine.trackLimbo(names.map { .entered($0) }, of: 2)
    func limboTargets() -> Int {
      engine.takeActions().count {
        if case .send(.watch, .addTarget(let data)) = $0 { data.purpose == .limboResolution } else { false }
      }
    }
    #expect(limboTargets() == 100 && engine.enqueuedLimbo.count == 50)
    try engine.rejectListen(1, FirestoreError(.permissionDenied, "no"))
    #expect(limboTargets() == 1 && engine.limboResolutions.count == 100 && engine.enqueuedLimbo.count == 49)
    let first = try engine.store.read(names[0])
    #expect(first.isMissing || !first.isKnown)
  }
}
