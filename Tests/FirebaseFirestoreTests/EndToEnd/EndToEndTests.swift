// Tests the Firestore SDK end to end, with a real server over real sockets.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

private struct Snapshot: Sendable {
  let ids: [String]
  let titles: [String]
  let changes: [String]
  let isFromCache: Bool
  let hasPendingWrites: Bool

  init(_ snapshot: QuerySnapshot) {
    ids = snapshot.documents.map(\.documentID)
    titles = snapshot.documents.compactMap { $0.data()["title"] as? String }
    changes = snapshot.documentChanges.map { "\($0.type) \($0.document.documentID)" }
    isFromCache = snapshot.metadata.isFromCache
    hasPendingWrites = snapshot.metadata.hasPendingWrites
  }
}

private func listen(_ query: Query, metadata: Bool = false) -> (Recorder<Snapshot>, any ListenerRegistration)
{
  let recorder = Recorder<Snapshot>()
  let registration = query.addSnapshotListener(includeMetadataChanges: metadata) { snapshot, _ in
    if let snapshot { recorder.add(Snapshot(snapshot)) }
  }
  return (recorder, registration)
}

private func add(_ collection: CollectionReference, _ data: [String: Any]) -> DocumentReference {
  collection.addDocument(data: data)
}

@Suite("End to end", .serialized, .timeLimit(.minutes(10))) struct EndToEndTests {
  @Test("a document written by one client is read by another")
  func writeAndRead() async throws {
    try await withServer { _, port in
      let a = TestClient.make(port: port)
      let b = TestClient.make(port: port)
      nonisolated(unsafe) let written: [String: Any] = [
        "title": "Dune", "pages": 412, "rating": 4.5, "read": true, "tags": ["sf", "classic"],
        "at": GeoPoint(latitude: 1, longitude: 2), "when": Timestamp(seconds: 100, nanoseconds: 5000),
        "raw": Data([1, 2, 3]), "nested": ["a": ["b": NSNull()]], "v": FieldValue.vector([1.0, 2.0]),
        "self": a.document("books/dune"),
      ]
      try await deadline { try await a.document("books/dune").setData(written) }
      let snapshot = try await deadline { try await b.document("books/dune").getDocument() }
      #expect(snapshot.exists && !snapshot.metadata.isFromCache && !snapshot.metadata.hasPendingWrites)
      let data = snapshot.data() ?? [:]
      #expect(data["title"] as? String == "Dune")
      #expect(data["pages"] as? Int == 412 && data["pages"] as? Double == 412)
      #expect(data["rating"] as? Double == 4.5)
      #expect(data["read"] as? Bool == true)
      #expect(data["tags"] as? [String] == ["sf", "classic"])
      #expect(data["at"] as? GeoPoint == GeoPoint(latitude: 1, longitude: 2))
      #expect(data["when"] as? Timestamp == Timestamp(seconds: 100, nanoseconds: 5000))
      #expect(data["raw"] as? Data == Data([1, 2, 3]))
      #expect((data["v"] as? VectorValue)?.array == [1, 2])
      #expect((data["self"] as? DocumentReference)?.path == "books/dune")
      #expect(snapshot.get("nested.a.b") is NSNull)
    }
  }

  @Test("a missing document does not exist and is not an error")
  func missingDocument() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let snapshot = try await deadline { try await client.document("books/none").getDocument() }
      #expect(!snapshot.exists && snapshot.data() == nil && !snapshot.metadata.isFromCache)
    }
  }

  @Test("two clients receive each other's writes")
  func twoClients() async throws {
    try await withServer { _, port in
      let a = TestClient.make(port: port)
      let b = TestClient.make(port: port)
      let (seenByA, listenerA) = listen(a.collection("tasks").order(by: "title"), metadata: true)
      let (seenByB, listenerB) = listen(b.collection("tasks").order(by: "title"), metadata: true)
      put(a.collection("tasks").document("1"), ["title": "from a"])
      put(b.collection("tasks").document("2"), ["title": "from b"])
      for seen in [seenByA, seenByB] {
        let last = try await seen.first { $0.titles == ["from a", "from b"] && !$0.hasPendingWrites }
        #expect(last.ids == ["1", "2"])
      }
      listenerA.remove()
      listenerB.remove()
    }
  }

  @Test("a listener receives a local write before the server responds")
  func latencyCompensation()
    async throws
  {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let (seen, listener) = listen(client.collection("tasks"), metadata: true)
      _ = try await seen.first { !$0.isFromCache }
      let before = seen.all.count
      let reference = add(client.collection("tasks"), ["title": "now"])
      let local = try await seen.first(from: before) { _ in true }
      #expect(local.hasPendingWrites && local.ids == [reference.documentID])
      #expect(local.changes.count == 1)
      let confirmed = try await seen.first(from: before) { !$0.hasPendingWrites && $0.ids.count == 1 }
      #expect(!confirmed.isFromCache)
      listener.remove()
    }
  }

  @Test("queries filter, order and limit, and follow changes of documents")
  func queries() async throws {
    try await withServer { _, port in
      let a = TestClient.make(port: port)
      let b = TestClient.make(port: port)
      let batch = a.batch()
      for number in 1...9 {
        batch.setData(
          ["title": "t\(number)", "n": number, "even": number.isMultiple(of: 2)],
          forDocument: a.document("items/\(number)"))
      }
      try await deadline { try await batch.commit() }
      let items = b.collection("items")
      let even = try await deadline {
        try await items.whereField("even", isEqualTo: true).order(by: "n", descending: true).limit(to: 3)
          .getDocuments()
      }
      #expect(even.documents.map(\.documentID) == ["8", "6", "4"])
      let last = try await deadline { try await items.order(by: "n").limit(toLast: 2).getDocuments() }
      #expect(last.documents.map(\.documentID) == ["8", "9"])
      let page = try await deadline {
        try await items.order(by: "n").start(after: [3]).end(at: [6]).getDocuments()
      }
      #expect(page.documents.map(\.documentID) == ["4", "5", "6"])
      let either = try await deadline {
        try await items.whereFilter(
          .orFilter([.whereField("n", isEqualTo: 1), .whereField("n", in: [7, 8])])
        ).getDocuments()
      }
      #expect(either.documents.map(\.documentID) == ["1", "7", "8"])

      let (seen, listener) = listen(items.order(by: "n").limit(to: 2))
      _ = try await seen.first { $0.ids == ["1", "2"] && !$0.isFromCache }
      try await deadline { try await a.document("items/1").delete() }
      let refilled = try await seen.first { $0.ids == ["2", "3"] }
      #expect(refilled.changes.first == "removed 1")
      listener.remove()
    }
  }

  @Test("transforms and updates reach the server")
  func transforms() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let reference = client.document("counters/c")
      try await deadline {
        try await reference.setData(["n": 1, "tags": ["a"], "gone": 1])
        try await reference.updateData([
          "n": FieldValue.increment(Int64(5)), "tags": FieldValue.arrayUnion(["b"]),
          "gone": FieldValue.delete(), "at": FieldValue.serverTimestamp(), "deep.er": "x",
        ])
      }
      let data = try await deadline { try await reference.getDocument(source: .server) }.data() ?? [:]
      #expect(data["n"] as? Int == 6)
      #expect(data["tags"] as? [String] == ["a", "b"])
      #expect(data["gone"] == nil && data["at"] is Timestamp)
      #expect((data["deep"] as? [String: Any])?["er"] as? String == "x")
      try await deadline { try await reference.setData(["deep": ["two": 2]], merge: true) }
      let merged = try await deadline { try await reference.getDocument(source: .server) }
      #expect(merged.get("deep.er") as? String == "x" && merged.get("deep.two") as? Int == 2)
    }
  }

  @Test("an update of a missing document is rejected, and later writes succeed")
  func updateOfMissingDocument() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      do {
        try await deadline { try await client.document("books/none").updateData(["a": 1]) }
        Issue.record("the update was accepted")
      } catch FirestoreErrorCode.notFound {
        // The next write must succeed.
      }
      try await deadline { try await client.document("books/other").setData(["a": 1]) }
      #expect(try await deadline { try await client.document("books/other").getDocument() }.exists)
    }
  }

  @Test("transactions of two clients lose no increment")
  func concurrentTransactions() async throws {
    try await withServer { _, port in
      let clients = [TestClient.make(port: port), TestClient.make(port: port)]
      try await deadline { try await clients[0].document("bank/a").setData(["n": 0]) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for client in clients {
          group.addTask {
            for _ in 0..<5 {
              _ = try await deadline(60) { () -> Bool in
                let reference = client.document("bank/a")
                _ = try await client.runTransaction { transaction, errorPointer in
                  do {
                    let n = try transaction.getDocument(reference).get("n") as? Int ?? 0
                    transaction.updateData(["n": n + 1], forDocument: reference)
                    return n
                  } catch {
                    errorPointer?.pointee = error as NSError
                    return nil
                  }
                }
                return true
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let end = try await deadline { try await clients[1].document("bank/a").getDocument(source: .server) }
      #expect(end.get("n") as? Int == 10)
    }
  }

  @Test("a transaction that reads after a write fails")
  func readAfterWrite() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let reference = client.document("bank/b")
      await #expect {
        try await deadline { () -> Bool in
          _ = try await client.runTransaction { transaction, errorPointer in
            transaction.setData(["a": 1], forDocument: reference)
            do { _ = try transaction.getDocument(reference) } catch {
              errorPointer?.pointee = error as NSError
            }
            return nil
          }
          return true
        }
      } throws: { error in
        (error as? FirestoreErrorCode)?.code == .invalidArgument
      }
    }
  }

  @Test("offline writes are visible immediately and sent later")
  func offlineWrites() async throws {
    try await withServer { _, port in
      let a = TestClient.make(port: port)
      let b = TestClient.make(port: port)
      try await deadline { try await a.disableNetwork() }
      let (seen, listener) = listen(a.collection("tasks"), metadata: true)
      _ = try await seen.first { $0.isFromCache && $0.ids.isEmpty }
      let reference = a.document("tasks/offline")
      put(reference, ["title": "later"])
      let local = try await seen.first { $0.ids == ["offline"] }
      #expect(local.hasPendingWrites && local.isFromCache)
      let cached = try await deadline { try await reference.getDocument() }
      #expect(cached.metadata.isFromCache && cached.get("title") as? String == "later")
      await #expect(throws: (any Error).self) {
        try await deadline { try await a.document("tasks/unknown").getDocument() }
      }
      try await deadline { try await a.enableNetwork() }
      try await deadline { try await a.waitForPendingWrites() }
      let arrived = try await deadline { try await b.document("tasks/offline").getDocument() }
      #expect(arrived.get("title") as? String == "later")
      listener.remove()
    }
  }

  @Test("listeners and pending writes survive a restart of the server")
  func serverRestart() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-sdk-\(ProcessInfo.processInfo.globallyUniqueString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = TestServer(data: folder.path)
    try await server.start()
    let port = await server.port
    let a = TestClient.make(port: port)
    let b = TestClient.make(port: port)
    let (seen, listener) = listen(a.collection("tasks"), metadata: true)
    try await deadline { try await b.document("tasks/1").setData(["title": "before"]) }
    _ = try await seen.first { $0.titles == ["before"] }
    await server.stop()
    put(a.document("tasks/2"), ["title": "while down"])
    _ = try await seen.first { $0.ids.count == 2 && $0.hasPendingWrites }
    try await server.start()
    try await deadline(60) { try await a.waitForPendingWrites() }
    try await deadline(60) { try await b.document("tasks/3").setData(["title": "after"]) }
    let last = try await seen.first(within: 60) { $0.ids == ["1", "2", "3"] && !$0.hasPendingWrites }
    #expect(last.titles == ["before", "while down", "after"])
    listener.remove()
    await server.stop()
  }

  @Test("snapshots are delivered as an async sequence")
  func asyncSequence() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let titles = try await deadline { () -> [String] in
        var titles: [String] = []
        for try await snapshot in client.document("books/s").snapshots {
          if let title = snapshot.get("title") as? String { titles.append(title) }
          if titles.count == 3 { break }
          put(client.document("books/s"), ["title": "\(titles.count)"])
        }
        return titles
      }
      #expect(titles == ["0", "1", "2"])
    }
  }

  @Test("Codable values are written, merged, written in batches and read")
  func codableValues() async throws {
    struct Note: Codable, Equatable, Sendable {
      @DocumentID var id: String?
      @ServerTimestamp var at: Date?
      @ExplicitNull var sub: String?
      var text: String?
      var tags: [String] = []
    }
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let first = client.document("notes/1")
      try first.setData(from: Note(id: nil, at: nil, sub: "s", text: "one", tags: ["a"]))
      // A merge omits nil properties, and overwrites a field with null only for @ExplicitNull.
      try first.setData(from: Note(id: nil, at: nil, sub: nil, text: nil, tags: ["b"]), merge: true)
      let batch = client.batch()
      try batch.setData(
        from: Note(id: nil, at: nil, sub: nil, text: "two"), forDocument: client.document("notes/2"))
      try await deadline { try await batch.commit() }
      _ = try await deadline { () -> Bool in
        _ = try await client.runTransaction { transaction, errorPointer in
          do {
            try transaction.setData(
              from: Note(id: nil, at: nil, sub: nil, text: "three"),
              forDocument: client.document("notes/3"))
          } catch {
            errorPointer?.pointee = error as NSError
          }
          return nil
        }
        return true
      }
      let read = try await deadline { try await first.getDocument(as: Note.self, source: .server) }
      #expect(read.id == "1" && read.at != nil && read.sub == nil)
      #expect(read.text == "one" && read.tags == ["b"])
      let all = try await deadline { try await client.collection("notes").getDocuments(source: .server) }
      #expect(try all.documents.map { try $0.data(as: Note.self).text } == ["one", "two", "three"])
      let missing = try await deadline { try await client.document("notes/9").getDocument(as: Note?.self) }
      #expect(missing == nil)
    }
  }

  @Test("a read uses the requested source")
  func readSources() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let existing = client.document("books/existing")
      let missing = client.document("books/missing")
      func outcome(_ reference: DocumentReference, _ source: FirestoreSource) async throws -> String {
        do {
          let snapshot = try await deadline { try await reference.getDocument(source: source) }
          return
            "\(snapshot.exists ? "there" : "missing") \(snapshot.metadata.isFromCache ? "cache" : "server")"
        } catch {
          return "error \((error as NSError).code)"
        }
      }
      #expect(try await outcome(existing, .cache) == "error 14")
      try await deadline { try await existing.setData(["a": 1]) }
      #expect(try await outcome(existing, .default) == "there server")
      #expect(try await outcome(existing, .server) == "there server")
      #expect(try await outcome(existing, .cache) == "there cache")
      #expect(try await outcome(missing, .default) == "missing server")
      try await deadline { try await client.disableNetwork() }
      #expect(try await outcome(existing, .default) == "there cache")
      #expect(try await outcome(existing, .server) == "error 14")
      #expect(try await outcome(existing, .cache) == "there cache")
      let books = client.collection("books")
      let cached = try await deadline { try await books.getDocuments() }
      #expect(cached.documents.map(\.documentID) == ["existing"] && cached.metadata.isFromCache)
      await #expect(throws: (any Error).self) {
        try await deadline { try await books.getDocuments(source: .server) }
      }
    }
  }

  @Test("only listeners with includeMetadataChanges receive metadata changes")
  func metadataChanges()
    async throws
  {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let (plain, first) = listen(client.collection("quiet"))
      let (withMetadata, second) = listen(client.collection("quiet"), metadata: true)
      _ = try await withMetadata.first { !$0.isFromCache }
      put(client.document("quiet/1"), ["title": "t"])
      _ = try await withMetadata.first { $0.ids == ["1"] && !$0.hasPendingWrites }
      // Both listeners use one serial queue, so the listener without metadata changes has received all its
      // earlier events.
      #expect(plain.all.map(\.ids) == [[], ["1"]])
      #expect(plain.all.last?.hasPendingWrites == true)
      first.remove()
      second.remove()
    }
  }

  @Test("callbacks run on the configured queue, by default the main queue")
  func callbackQueue() async throws {
    try await withServer { _, port in
      let named = TestClient.make(port: port)
      let queue = named.settings.dispatchQueue
      let main = TestClient.make(port: port, queue: .main)
      for (client, expected) in [(named, queue), (main, DispatchQueue.main)] {
        let received = Recorder<Bool>()
        let listener = client.document("queues/1").addSnapshotListener { snapshot, _ in
          dispatchPrecondition(condition: .onQueue(expected))
          received.add(snapshot != nil)
        }
        client.document("queues/1").setData(["a": 1]) { error in
          dispatchPrecondition(condition: .onQueue(expected))
          received.add(error == nil)
        }
        _ = try await received.first(from: 1) { $0 }
        listener.remove()
      }
    }
  }

  @Test("an aggregation without a server fails with UNAVAILABLE")
  func aggregationOffline() async throws {
    let client = TestClient.make(port: 1)
    await #expect {
      try await deadline { try await client.collection("c").count.getAggregation(source: .server) }
    } throws: { error in
      (error as? FirestoreErrorCode)?.code == .unavailable
    }
  }

  @Test("a terminated client can be replaced by a new one")
  func terminatedClient() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      try await deadline { try await client.document("books/t").setData(["a": 1]) }
      await #expect(throws: (any Error).self) { try await client.clearPersistence() }
      try await deadline { try await client.terminate() }
      try await client.clearPersistence()
      let fresh = Firestore.firestore(app: client.app)
      #expect(fresh !== client)
      fresh.useEmulator(withHost: "127.0.0.1", port: port)
      let settings = fresh.settings
      settings.dispatchQueue = DispatchQueue(label: "fresh")
      fresh.settings = settings
      #expect(try await deadline { try await fresh.document("books/t").getDocument() }.exists)
    }
  }
}
