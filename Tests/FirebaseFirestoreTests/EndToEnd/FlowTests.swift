// Tests application flows with a real server over real sockets: errors, races, contention and termination.

import FirebaseCore
import Foundation
import ServerFixture
import Testing

@testable import FirebaseFirestore

private struct Event: Sendable {
  let values: [String: Int]
  let changes: [String]
  let isFromCache: Bool
  let hasPendingWrites: Bool
  let error: FirestoreErrorCode.Code?

  init(_ snapshot: QuerySnapshot?, _ error: (any Error)?) {
    let documents = snapshot?.documents ?? []
    values = Dictionary(documents.map { ($0.documentID, $0.get("n") as? Int ?? -1) }) { $1 }
    changes =
      snapshot?.documentChanges.map { change in
        func indexText(_ index: UInt) -> String { index == UInt(NSNotFound) ? "-" : "\(index)" }
        let id = change.document.documentID
        return "\(change.type) \(id) \(indexText(change.oldIndex))>\(indexText(change.newIndex))"
      } ?? []
    isFromCache = snapshot?.metadata.isFromCache ?? false
    hasPendingWrites = snapshot?.metadata.hasPendingWrites ?? false
    self.error = error.flatMap { FirestoreErrorCode.Code(rawValue: ($0 as NSError).code) }
  }
}

private func listen(
  _ query: FirebaseFirestore.Query, metadata: Bool = true
) -> (Recorder<Event>, any ListenerRegistration) {
  let received = Recorder<Event>()
  let registration = query.addSnapshotListener(includeMetadataChanges: metadata) {
    received.add(Event($0, $1))
  }
  return (received, registration)
}

private func patch(_ reference: DocumentReference, _ data: [String: Any]) { reference.updateData(data) }

/// Returns the error code that a write's completion receives, or nil for success.
private func outcome(
  _ write: (@escaping @Sendable ((any Error)?) -> Void) -> Void
) async throws -> FirestoreErrorCode.Code? {
  let received = Recorder<Int>()
  write { received.add(($0 as NSError?)?.code ?? 0) }
  let code = try await received.first { _ in true }
  return code == 0 ? nil : FirestoreErrorCode.Code(rawValue: code)
}

@Suite("Application flows", .serialized, .timeLimit(.minutes(10))) struct FlowTests {
  // MARK: Rejections

  @Test("without credentials, listeners stay open, writes stay pending, and reads from the server fail")
  func unauthenticated() async throws {
    try await withServer(emulator: false) { _, port in
      let client = TestClient.make(port: port)
      let reference = client.document("secret/a")
      let (received, listener) = listen(client.collection("secret"))
      // Authentication may succeed later, so the client behaves as it does while offline.
      let first = try await received.first { _ in true }
      #expect(first.isFromCache && first.values.isEmpty && first.error == nil)
      put(reference, ["n": 1])
      _ = try await received.first { $0.values == ["a": 1] && $0.hasPendingWrites }
      await #expect { try await deadline { try await reference.getDocument(source: .server) } } throws: {
        ($0 as? FirestoreErrorCode)?.code == .unavailable
      }
      listener.remove()
    }
  }

  @Test("a rejected write is visible locally and then reverted")
  func rejectedWrite() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let (received, listener) = listen(client.collection("big"))
      _ = try await received.first { !$0.isFromCache }
      let reference = client.document("big/a")
      let text = String(repeating: "x", count: 1_048_576)
      let rejection = try await outcome { done in reference.setData(["n": 1, "t": text], completion: done) }
      #expect(rejection == .invalidArgument)
      let shown = received.all.firstIndex { $0.values == ["a": 1] && $0.hasPendingWrites }
      _ = try await received.first(from: try #require(shown)) { $0.values.isEmpty && !$0.hasPendingWrites }
      try await deadline { try await reference.setData(["n": 2]) }
      _ = try await received.first { $0.values == ["a": 2] && !$0.hasPendingWrites }
      listener.remove()
    }
  }

  @Test("a batch is atomic")
  func atomicBatch() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let batch = client.batch()
      batch.setData(["n": 1], forDocument: client.document("b/1"))
      batch.updateData(["n": 2], forDocument: client.document("b/missing"))
      #expect(try await outcome { done in batch.commit(completion: done) } == .notFound)
      let one = try await deadline { try await client.document("b/1").getDocument() }
      #expect(!one.exists)
      let complete = client.batch()
      for n in 1...3 { complete.setData(["n": n], forDocument: client.document("b/\(n)")) }
      complete.deleteDocument(client.document("b/2"))
      try await deadline { try await complete.commit() }
      let found = try await deadline { try await client.collection("b").getDocuments(source: .server) }
      #expect(found.documents.map(\.documentID) == ["1", "3"])
      try await deadline { try await client.batch().commit() }
    }
  }

  // MARK: Offline

  @Test("offline transforms are estimated, and then applied to the server's state")
  func offlineTransforms()
    async throws
  {
    try await withServer { _, port in
      let a = TestClient.make(port: port)
      let b = TestClient.make(port: port)
      let reference = a.document("c/d")
      try await deadline { try await reference.setData(["n": 10, "tags": ["x"]]) }
      let (received, listener) = listen(a.collection("c"))
      _ = try await received.first { $0.values == ["d": 10] && !$0.isFromCache }
      try await deadline { try await a.disableNetwork() }
      _ = try await received.first { $0.isFromCache && $0.values == ["d": 10] }
      patch(reference, ["n": FieldValue.increment(Int64(5)), "tags": FieldValue.arrayUnion(["y"])])
      patch(reference, ["n": FieldValue.increment(Int64(1)), "tags": FieldValue.arrayRemove(["x"])])
      _ = try await received.first { $0.values == ["d": 16] && $0.hasPendingWrites }
      let local = try await deadline { try await reference.getDocument(source: .cache) }
      #expect(local.get("tags") as? [String] == ["y"] && local.metadata.hasPendingWrites)
      try await deadline {
        try await b.document("c/d").updateData(["n": 100, "tags": FieldValue.arrayUnion(["z"])])
      }
      try await deadline { try await a.enableNetwork() }
      _ = try await received.first { $0.values == ["d": 106] && !$0.hasPendingWrites && !$0.isFromCache }
      let end = try await deadline { try await reference.getDocument(source: .server) }
      #expect(end.get("tags") as? [String] == ["z", "y"])
      listener.remove()
    }
  }

  @Test("waitForPendingWrites waits for the writes pending at the call")
  func waitForPendingWrites()
    async throws
  {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      try await deadline { try await client.waitForPendingWrites() }
      try await deadline { try await client.disableNetwork() }
      put(client.document("w/1"), ["n": 1])
      let done = Recorder<Bool>()
      client.waitForPendingWrites { done.add($0 == nil) }
      // The client handles this read after waitForPendingWrites. If waitForPendingWrites ended while offline, it would
      // complete before the read.
      _ = try await deadline { try await client.document("w/1").getDocument(source: .cache) }
      #expect(done.all.isEmpty)
      try await deadline { try await client.enableNetwork() }
      #expect(try await done.first { _ in true })
      #expect(try await deadline { try await client.document("w/1").getDocument(source: .server) }.exists)
    }
  }

  @Test("a transaction requires the server and respects maxAttempts")
  func transactionAttempts() async throws {
    let client = TestClient.make(port: 1)
    let attempts = Recorder<Int>()
    let ends = Recorder<Int>()
    let options = TransactionOptions()
    options.maxAttempts = 2
    let reference = client.document("t/a")
    client.runTransaction(with: options) { transaction, pointer in
      attempts.add(1)
      do { _ = try transaction.getDocument(reference) } catch { pointer?.pointee = error as NSError }
      return nil
    } completion: { _, error in
      ends.add((error as NSError?)?.code ?? 0)
    }
    #expect(try await ends.first { _ in true } == FirestoreErrorCode.unavailable.rawValue)
    #expect(attempts.all.count == 2)
    // The failed transaction must not leave a pending write.
    try await deadline { try await client.waitForPendingWrites() }
  }

  // MARK: Contention

  @Test("concurrent transactions of four clients lose no increment")
  func contention() async throws {
    try await withServer { _, port in
      let clients = (0..<4).map { _ in TestClient.make(port: port) }
      try await deadline { try await clients[0].document("bank/a").setData(["n": 0]) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for client in clients {
          group.addTask {
            for _ in 0..<4 {
              _ = try await deadline(90) { () -> Bool in
                let reference = client.document("bank/a")
                // An app retries after five failed attempts.
                while true {
                  do {
                    _ = try await client.runTransaction { transaction, pointer in
                      do {
                        let n = try transaction.getDocument(reference).get("n") as? Int ?? 0
                        transaction.updateData(["n": n + 1], forDocument: reference)
                      } catch { pointer?.pointee = error as NSError }
                      return nil
                    }
                    return true
                  } catch FirestoreErrorCode.failedPrecondition {
                  } catch FirestoreErrorCode.aborted {}
                }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let end = try await deadline { try await clients[1].document("bank/a").getDocument(source: .server) }
      #expect(end.get("n") as? Int == 16)
    }
  }

  @Test("an application error ends a transaction without another attempt")
  func applicationError()
    async throws
  {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let runs = Recorder<Int>()
      await #expect {
        try await deadline { () -> Bool in
          _ = try await client.runTransaction { transaction, pointer in
            runs.add(1)
            transaction.setData(["n": 1], forDocument: client.document("t/own"))
            pointer?.pointee = NSError(domain: "app", code: 7)
            return nil
          }
          return true
        }
      } throws: { ($0 as NSError).domain == "app" && ($0 as NSError).code == 7 }
      #expect(runs.all.count == 1)
      let snapshot = try await deadline { try await client.document("t/own").getDocument() }
      #expect(!snapshot.exists)
    }
  }

  // MARK: Listeners

  @Test("document changes have the old and the new index")
  func changeIndexes() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let items = client.collection("moves")
      for n in 1...3 { try await deadline { try await items.document("d\(n)").setData(["n": n]) } }
      let (received, listener) = listen(items.order(by: "n"), metadata: false)
      let first = try await received.first { $0.values.count == 3 }
      #expect(first.changes == ["added d1 ->0", "added d2 ->1", "added d3 ->2"])
      put(items.document("d1"), ["n": 9])
      let moved = try await received.first { $0.values["d1"] == 9 }
      #expect(moved.changes == ["modified d1 0>2"])
      try await deadline { try await items.document("d2").delete() }
      let deleted = try await received.first { $0.values["d2"] == nil && $0.values.count == 2 }
      #expect(deleted.changes == ["removed d2 0>-"])
      listener.remove()
    }
  }

  @Test(
    "after remove() a listener receives no event, whether it is removed on the callback queue or another thread"
  )
  func removedListener() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let writer = TestClient.make(port: port)
      let collection = client.collection("races")
      let violations = Recorder<String>()
      let stop = Locked(false)
      let writing = _Concurrency.Task {
        var n = 0
        while !stop.change({ $0 }) {
          n += 1
          try await writer.document("races/a").setData(["n": n])
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            for round in 0..<12 {
              let removed = Locked(false)
              let received = Recorder<Int>()
              let registration = collection.addSnapshotListener(includeMetadataChanges: true) { _, _ in
                if removed.change({ $0 }) { violations.add("called after remove() returned") }
                received.add(1)
              }
              if round.isMultiple(of: 2) { _ = try await received.first { _ in true } }
              // Every third round removes the listener on the callback queue. No callback is running there at
              // that time.
              if round.isMultiple(of: 3) {
                let sendableRegistration = AppClosure(call: registration)
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                  client.settings.dispatchQueue.async {
                    sendableRegistration.call.remove()
                    removed.change { $0 = true }
                    continuation.resume()
                  }
                }
              } else {
                registration.remove()
                registration.remove()
                // A running callback may finish, but no new one may begin.
                client.settings.dispatchQueue.sync {}
                removed.change { $0 = true }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      stop.change { $0 = true }
      _ = try? await writing.value
      #expect(violations.all.isEmpty)
    }
  }

  // MARK: Termination

  @Test(
    "when an instance is terminated, completion handlers of pending writes are not called, and awaited calls throw",
    arguments: [false, true])
  func pendingWritesAtTermination(byDeletingTheApp: Bool) async throws {
    let client = TestClient.make(port: 1)
    let outcomes = Recorder<String>()
    func recordOutcome(_ what: String) -> @Sendable ((any Error)?) -> Void {
      { error in outcomes.add("\(what) \((error as NSError?)?.code ?? 0)") }
    }
    let reference = client.document("end/a")
    // The network is disabled, so that no failed connection attempt interferes with reads from the cache.
    try await deadline { try await client.disableNetwork() }
    reference.setData(["n": 1], completion: recordOutcome("write"))
    client.waitForPendingWrites(completion: recordOutcome("wait"))
    let (received, _) = listen(client.collection("end"))
    _ = try await received.first { $0.values == ["a": 1] }
    let waiting = _Concurrency.Task {
      do { try await client.document("end/b").setData(["n": 2]) } catch {
        outcomes.add("task \((error as NSError).code)")
      }
    }
    _ = try await received.first { $0.values.count == 2 }
    let count = received.all.count
    if byDeletingTheApp {
      _ = await client.app.delete()
    } else {
      try await deadline { try await client.terminate() }
    }
    try await deadline { await waiting.value }
    _ = try await outcomes.first(from: 1) { _ in true }
    client.settings.dispatchQueue.sync {}
    #expect(
      Set(outcomes.all) == [
        "wait \(FirestoreErrorCode.cancelled.rawValue)", "task \(FirestoreErrorCode.unknown.rawValue)",
      ])
    #expect(received.all.count == count)
  }

  @Test("a running transaction fails when its instance is terminated")
  func transactionAtTermination() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let blockRuns = Recorder<Int>()
      let resumeBlock = DispatchSemaphore(value: 0)
      let ends = Recorder<Int>()
      let reference = client.document("end/t")
      client.runTransaction { transaction, pointer in
        blockRuns.add(1)
        resumeBlock.wait()
        do { _ = try transaction.getDocument(reference) } catch { pointer?.pointee = error as NSError }
        transaction.setData(["n": 1], forDocument: reference)
        return nil
      } completion: { _, error in
        ends.add((error as NSError?)?.code ?? 0)
      }
      _ = try await blockRuns.first { _ in true }
      try await deadline { try await client.terminate() }
      for _ in 0..<5 { resumeBlock.signal() }
      #expect(try await ends.first { _ in true } == FirestoreErrorCode.cancelled.rawValue)
      #expect(blockRuns.all.count == 1, "a terminated instance does not run the block again")
    }
  }

  @Test("a commit in flight has an unknown outcome when its instance is terminated")
  func commitAtTermination()
    async throws
  {
    try await withServer { _, port in
      let relay = try await Relay.start(to: port)
      let (client, other) = (TestClient.make(port: relay.port), TestClient.make(port: port))
      let runs = Recorder<Int>()
      let ends = Recorder<Int>()
      let (shown, listener) = listen(other.collection("end"))
      client.runTransaction { transaction, pointer in
        runs.add(1)
        let reference = client.document("end/c")
        do { _ = try transaction.getDocument(reference) } catch { pointer?.pointee = error as NSError }
        transaction.setData(["n": 1], forDocument: reference)
        relay.hold()
        return nil
      } completion: { _, error in
        ends.add((error as NSError?)?.code ?? 0)
      }
      // The server has executed the commit, but the relay delays its response.
      _ = try await shown.first { $0.values == ["c": 1] }
      #expect(ends.all.isEmpty)
      try await deadline { try await client.terminate() }
      #expect(try await ends.first { _ in true } == FirestoreErrorCode.unknown.rawValue)
      #expect(runs.all.count == 1)
      listener.remove()
      await relay.stop()
    }
  }

  @Test("a pending read fails when its instance is terminated")
  func readAtTermination() async throws {
    // This server accepts connections and sends nothing.
    let silent = try SilentServer()
    defer { silent.stop() }
    let client = TestClient.make(port: silent.port)
    let outcomes = Recorder<Int>()
    client.document("end/r").getDocument { _, error in outcomes.add((error as NSError?)?.code ?? 0) }
    client.collection("end").getDocuments { _, error in outcomes.add((error as NSError?)?.code ?? 0) }
    try await deadline { try await client.waitForPendingWrites() }
    try await deadline { try await client.terminate() }
    _ = try await outcomes.first(from: 1) { _ in true }
    #expect(outcomes.all == [1, 1])
  }

  @Test("clearPersistence empties the cache of a terminated instance")
  func clearPersistence() async throws {
    let client = TestClient.make(port: 1)
    try await deadline { try await client.disableNetwork() }
    put(client.document("clear/a"), ["n": 1])
    #expect(try await deadline { try await client.document("clear/a").getDocument(source: .cache) }.exists)
    await #expect { try await deadline { try await client.clearPersistence() } } throws: {
      ($0 as? FirestoreErrorCode)?.code == .failedPrecondition
    }
    try await deadline { try await client.terminate() }
    try await deadline { try await client.clearPersistence() }
    let fresh = Firestore.firestore(app: client.app)
    let settings = fresh.settings
    settings.dispatchQueue = DispatchQueue(label: "fresh")
    fresh.settings = settings
    fresh.useEmulator(withHost: "127.0.0.1", port: 1)
    try await deadline { try await fresh.disableNetwork() }
    await #expect(throws: (any Error).self) {
      try await deadline { try await fresh.document("clear/a").getDocument(source: .cache) }
    }
  }
}
