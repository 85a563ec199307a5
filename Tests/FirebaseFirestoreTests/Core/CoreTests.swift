// Tests the core of the sync engine: merged changes, indexes of changes, back-off and streams. Also compares views with
// a naive computation. A limbo document is in the cache and matches a query, but the server did not report it for the
// query. The client resolves it by requesting the document separately.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

private let database = DatabaseName(project: "test")

private func name(_ id: String) -> DocumentName {
  ParentName(rootOf: database).collection("c").document(id)
}

private func document(_ id: String, _ value: Int64, version: Int64 = 1) -> CachedDocument {
  CachedDocument(
    found: name(id), fields: ["v": .integer(value)], version: .init(microseconds: version), createTime: .epoch
  )
}

private func query(limit: Int? = nil, last: Bool = false) -> ClientQuery {
  let structured = StructuredQuery(
    from: [.init("c")], orderBy: [.init(.init(field: "v"), .ascending)], limit: limit)
  return ClientQuery(ModelQuery(parent: ParentName(rootOf: database), structured), isLimitToLast: last)
}

/// An engine that listens to all documents with the field `v`. The server has no such documents.
private func listeningEngine(at version: Int64) -> SyncEngine {
  var engine = SyncEngine(persistence: MemoryPersistence(isEager: false), seed: 1)
  engine.enableNetwork()
  engine.listen(ListenerID(number: 1), to: query(), options: .init(includeMetadataChanges: true))
  engine.watchStreamOpened(1)
  engine.watchReceived(1, .target(.init(kind: .add, targets: [2])))
  engine.watchReceived(1, .target(.init(kind: .current, targets: [2], resumeToken: [1])))
  endSnapshot(at: version, of: &engine)
  return engine
}

private func endSnapshot(at version: Int64, of engine: inout SyncEngine) {
  engine.watchReceived(
    1, .target(.init(kind: .noChange, targets: [], snapshotVersion: .init(microseconds: version))))
}

private func write(_ fields: MapValue, mask: [ModelFieldPath]? = nil, to engine: inout SyncEngine) {
  engine.write([Write(.update(name("a"), fields: fields), mask: mask)], at: .epoch, completion: nil)
}

private func acknowledge(with version: Int64, at commitTime: Int64, to engine: inout SyncEngine) {
  engine.writeAcknowledged(
    1, results: [WriteResult(updateTime: .init(microseconds: version))],
    commitTime: .init(microseconds: commitTime))
}

/// Resolves the limbo document as missing, and expects the listener's snapshot without the document.
private func expectRemoval(at version: Int64, from engine: inout SyncEngine) throws {
  let limbo = try #require(engine.limboTargets[name("a")])
  engine.watchReceived(1, .target(.init(kind: .add, targets: [limbo])))
  engine.watchReceived(1, .target(.init(kind: .current, targets: [limbo], resumeToken: [2])))
  endSnapshot(at: version, of: &engine)
  let last = engine.takeActions().compactMap { if case .snapshot(_, let view) = $0 { view } else { nil } }
    .last
  #expect(last?.documents.isEmpty == true && last?.hasPendingWrites == false && last?.fromCache == false)
}

@Suite("Sync engine core", .timeLimit(.minutes(10))) struct CoreTests {
  @Test(
    "two changes of one document merge into one",
    arguments: [
      (ViewChange.Kind.added, ViewChange.Kind.modified, ViewChange.Kind?.some(.added)),
      (.added, .removed, nil), (.modified, .modified, .modified), (.modified, .removed, .removed),
      (.removed, .added, .modified), (.metadata, .modified, .modified), (.modified, .metadata, .modified),
      (.added, .metadata, .added), (.metadata, .removed, .removed),
    ])
  func mergedChanges(first: ViewChange.Kind, second: ViewChange.Kind, result: ViewChange.Kind?) {
    var changes = ViewChangeSet()
    changes.track(first, document("a", 1))
    changes.track(second, document("a", 2))
    #expect(changes.changes[name("a")]?.kind == result)
  }

  @Test(
    "a view equals a naive computation over random changes",
    arguments: [(nil, false), (5, false), (5, true)] as [(Int?, Bool)])
  func viewMatchesNaiveComputation(limit: Int?, last: Bool) {
    var random = SplitMix(seed: 42)
    let query = query(limit: limit, last: last)
    var view = ClientQueryView(query: query, remoteKeys: [])
    var all: [DocumentName: CachedDocument] = [:]
    var shown: [DocumentName] = []
    for round in 1...200 {
      var changes: DocumentChanges = [:]
      for _ in 0...Int.random(in: 0...6, using: &random) {
        let id = "d\(Int.random(in: 0..<20, using: &random))"
        let isDeleted = Int.random(in: 0..<4, using: &random) == 0
        let new =
          isDeleted
          ? CachedDocument(missing: name(id), version: .init(microseconds: Int64(round)))
          : document(id, Int64.random(in: 0..<9, using: &random), version: Int64(round))
        changes[name(id)] = new
        all[name(id)] = new
      }
      var pending = view.compute(changes)
      if pending.needsRefill {
        let cached = all.values.filter { query.matches($0) }
        pending = view.compute(
          Dictionary(uniqueKeysWithValues: cached.map { ($0.name, $0) }), after: pending)
      }
      let snapshot = view.apply(pending).snapshot
      var expected = all.values.filter(\.isFound).sorted { query.compare($0, $1) == .ascending }
      if let limit, expected.count > limit {
        if last {
          expected.removeFirst(expected.count - limit)
        } else {
          expected.removeLast(expected.count - limit)
        }
      }
      #expect(view.initialSnapshot.documents.ordered.map(\.name) == expected.map(\.name))
      // Applying the changes to the previous documents gives the current ones.
      guard let snapshot else { continue }
      for change in snapshot.changes where change.kind == .removed {
        shown.removeAll { $0 == change.document.name }
      }
      shown += snapshot.changes.filter { $0.kind == .added }.map(\.document.name)
      #expect(Set(shown) == Set(expected.map(\.name)))
    }
  }

  @Test(
    "limbo resolution removes a document that was deleted before the watch stream reported an acknowledged write to it"
  )
  func acknowledgedWriteIsRemoved() throws {
    var engine = listeningEngine(at: 10)
    write(["v": .integer(1)], to: &engine)
    engine.writeStreamOpened(1)
    engine.writeHandshakeDone(1)
    acknowledge(with: 12, at: 12, to: &engine)
    #expect(engine.limboTargets.isEmpty, "watch has not reached the version of the write")
    endSnapshot(at: 11, of: &engine)
    #expect(engine.limboTargets.isEmpty)
    _ = engine.takeActions()
    endSnapshot(at: 13, of: &engine)
    try expectRemoval(at: 14, from: &engine)
  }

  @Test(
    "limbo resolution removes a deleted document, even if a later write to it was rejected or changed nothing",
    arguments: [true, false])
  func laterWriteWithoutEffect(isRejected: Bool) throws {
    var engine = listeningEngine(at: 10)
    write(["v": .integer(1)], to: &engine)
    engine.writeStreamOpened(1)
    engine.writeHandshakeDone(1)
    acknowledge(with: 12, at: 12, to: &engine)
    endSnapshot(at: 14, of: &engine)
    #expect(engine.limboTargets.count == 1)
    write(["w": .integer(1)], mask: [.init(field: "w")], to: &engine)
    #expect(engine.limboTargets.isEmpty, "a document with queued writes is not in limbo")
    // The server sends no snapshot after this write.
    if isRejected {
      engine.writeStreamClosed(1, FirestoreError(.notFound, "No document to update."))
    } else {
      // Another client had created the document as { w: 1 }, so this write changed nothing. That client now
      // deletes the document.
      acknowledge(with: 13, at: 15, to: &engine)
    }
    try expectRemoval(at: 16, from: &engine)
  }

  @Test("applying document changes at their indexes rebuilds the list of documents", arguments: [nil, 4])
  func changeIndexes(limit: Int?) {
    var random = SplitMix(seed: 11)
    let client = TestClient.make(port: 1, project: "test")
    let query = query(limit: limit)
    var view = ClientQueryView(query: query, remoteKeys: [])
    var all: [DocumentName: CachedDocument] = [:]
    var list: [String] = []
    for round in 1...150 {
      var changes: DocumentChanges = [:]
      for _ in 0...Int.random(in: 0...5, using: &random) {
        let id = "d\(Int.random(in: 0..<12, using: &random))"
        let isDeleted = Int.random(in: 0..<4, using: &random) == 0
        let version = ModelTimestamp(microseconds: Int64(round))
        let value = Int64.random(in: 0..<9, using: &random)
        changes[name(id)] =
          isDeleted
          ? CachedDocument(missing: name(id), version: version) : document(id, value, version: Int64(round))
      }
      all.merge(changes) { $1 }
      var pending = view.compute(changes)
      if pending.needsRefill { pending = view.compute(all, after: pending) }
      guard let shown = view.apply(pending).snapshot else { continue }
      let snapshot = QuerySnapshot(query: client.collection("c"), snapshot: shown)
      for change in snapshot.documentChanges {
        if change.type != .added {
          #expect(list.remove(at: Int(change.oldIndex)) == change.document.documentID)
        }
        if change.type != .removed { list.insert(change.document.documentID, at: Int(change.newIndex)) }
      }
      #expect(list == snapshot.documents.map(\.documentID))
    }
  }

  @Test("back-off delays grow to one minute and reset after a message from the server")
  func backoff() {
    var backoff = Backoff.firestore(seed: 7)
    #expect(backoff.next() == 0)
    var base = 1.0
    for _ in 0..<20 {
      let wait = backoff.next()
      #expect(wait >= base * 0.5 && wait <= base * 1.5)
      base = min(base * 1.5, 60)
    }
    backoff.reset()
    #expect(backoff.next() == 0)
    backoff.useMaximum()
    #expect(backoff.next() >= 30)
  }

  @Test("the online state follows connection attempts and the timeout")
  func onlineState() {
    var tracker = OnlineStateTracker()
    #expect(tracker.streamStarted() == .start)
    #expect(tracker.streamFailed() == .stop && tracker.state == .offline)
    #expect(tracker.set(.online) == nil && tracker.state == .online)
    #expect(tracker.streamFailed() == nil && tracker.state == .unknown)
    #expect(tracker.streamStarted() == .start)
    tracker.timedOut()
    #expect(tracker.state == .offline)
  }

  @Test("an idle stream is closed, and opened again when it is needed")
  func idleStream() {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    engine.listen(ListenerID(number: 1), to: query(), options: .init())
    #expect(engine.takeActions().contains(.connect(.watch, 1)))
    engine.watchStreamOpened(1)
    engine.unlisten(ListenerID(number: 1))
    #expect(engine.takeActions().contains(.startTimer(.idle(.watch), seconds: 60)))
    engine.timerFired(.idle(.watch))
    #expect(engine.takeActions().contains(.disconnect(.watch, 1)))
    engine.listen(ListenerID(number: 2), to: query(), options: .init())
    #expect(engine.takeActions().contains(.connect(.watch, 2)))
  }

  @Test("RESOURCE_EXHAUSTED causes the longest back-off")
  func resourceExhausted() {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    engine.listen(ListenerID(number: 1), to: query(), options: .init())
    engine.watchStreamOpened(1)
    _ = engine.takeActions()
    engine.watchStreamClosed(1, .resourceExhausted("too much"))
    let waits = engine.takeActions().compactMap { action -> Double? in
      if case .startTimer(.backoff(.watch), let seconds) = action { return seconds }
      return nil
    }
    #expect(waits.count == 1 && (waits.first ?? 0) >= 30)
  }

  @Test("pending server timestamps are read according to the requested behavior")
  func pendingServerTimestamps() {
    let client = TestClient.make(port: 1)
    let pending = Value.pendingServerTimestamp(
      PendingServerTimestamp(localWriteTime: .init(seconds: 9), previousValue: .string("before")))
    func read(_ behavior: ServerTimestampBehavior) -> Any {
      UserDataWriter(firestore: client, serverTimestamps: behavior).value(pending)
    }
    #expect(read(.none) is NSNull)
    #expect((read(.estimate) as? FirebaseFirestore.Timestamp)?.seconds == 9)
    #expect(read(.previous) as? String == "before")
  }

  @Test("a server address is parsed with and without a port")
  func serverAddress() {
    #expect(ServerAddress("firestore.googleapis.com", isEncrypted: true)?.port == 443)
    #expect(ServerAddress("localhost:8080", isEncrypted: false)?.authority == "localhost:8080")
    let ipv6 = ServerAddress("[::1]:8080", isEncrypted: false)
    #expect(ipv6?.host == "::1" && ipv6?.port == 8080 && ipv6?.authority == "[::1]:8080")
    for wrong in ["localhost:x", "[::1]:70000", "[::1]:-1", "[::1]8080", "[]:80"] {
      #expect(ServerAddress(wrong, isEncrypted: false) == nil)
    }
  }
}
