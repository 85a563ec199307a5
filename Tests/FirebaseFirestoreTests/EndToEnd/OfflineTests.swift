// Tests offline use: writes and documents survive the end of the client, and writes reach the server later.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

@Suite("Offline first", .timeLimit(.minutes(3))) struct OfflineTests {
  @Test("writes that were made offline are shown after a restart and reach the server in order")
  func writesSurviveRestart() async throws {
    let server = TestServer()
    try await server.start()
    let port = await server.port
    await server.stop()
    // The server is stopped, so the writes are queued.
    let first = TestClient.make(port: port)
    for n in 0..<20 { put(first.document("log/\(n)"), ["n": n, "time": FieldValue.serverTimestamp()]) }
    first.document("log/3").delete { _ in }
    put(first.document("counters/a"), ["n": FieldValue.increment(Int64(2))])
    first.document("counters/a").updateData(["n": FieldValue.increment(Int64(3))]) { _ in }
    let before = try await first.collection("log").order(by: "n").getDocuments(source: .cache)
    #expect(before.count == 19 && before.metadata.hasPendingWrites)
    try await first.terminate()

    let second = TestClient.reopen(first)
    let cached = try await second.collection("log").order(by: "n").getDocuments(source: .cache)
    #expect(cached.documents.map(\.documentID) == before.documents.map(\.documentID))
    #expect(cached.metadata.hasPendingWrites)
    #expect(cached.documents.first?.get("time", serverTimestampBehavior: .estimate) is Timestamp)
    try await server.start()
    try await deadline { try await second.waitForPendingWrites() }
    let other = TestClient.make(port: port)
    let stored = try await deadline {
      try await other.collection("log").order(by: "n").getDocuments(source: .server)
    }
    #expect(stored.documents.map(\.documentID) == before.documents.map(\.documentID))
    let counter = try await deadline { try await other.document("counters/a").getDocument(source: .server) }
    #expect(counter.get("n") as? Int == 5)
    try await second.terminate()
    await server.stop()
  }

  @Test("after a restart a listener shows the cached documents first, and resumes from them")
  func listenerResumes() async throws {
    try await withServer { _, port in
      let first = TestClient.make(port: port)
      let other = TestClient.make(port: port)
      for n in 0..<30 { try await other.document("c/\(n)").setData(["n": n]) }
      _ = try await deadline { try await first.collection("c").getDocuments(source: .server) }
      try await first.terminate()
      try await other.document("c/7").delete()
      try await other.document("c/40").setData(["n": 40])
      let second = TestClient.reopen(first)
      let shown = Recorder<QuerySnapshot>()
      let listener = second.collection("c").addSnapshotListener { snapshot, _ in
        if let snapshot { shown.add(snapshot) }
      }
      let cached = try await shown.first { _ in true }
      #expect(cached.metadata.isFromCache && cached.count == 30)
      let current = try await shown.first { !$0.metadata.isFromCache }
      #expect(current.count == 30 && !current.documents.contains { $0.documentID == "7" })
      #expect(current.documentChanges.count == 2)
      listener.remove()
      try await second.terminate()
    }
  }

  @Test(
    "clearing persistence deletes cached documents and queued writes, and fails while the client is in use")
  func clearing() async throws {
    let first = TestClient.make(port: 1)
    put(first.document("c/a"), ["n": 1])
    #expect(try await first.document("c/a").getDocument(source: .cache).exists)
    await #expect { try await first.clearPersistence() } throws: {
      ($0 as? FirestoreErrorCode)?.code == .failedPrecondition
    }
    try await first.terminate()
    try await first.clearPersistence()
    let second = TestClient.reopen(first)
    try await deadline { try await second.waitForPendingWrites() }
    await #expect { try await second.document("c/a").getDocument(source: .cache) } throws: {
      ($0 as? FirestoreErrorCode)?.code == .unavailable
    }
    try await second.terminate()
  }

  @Test("if another process uses the cache, the client uses a cache in memory and logs an error")
  func otherProcess() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let folder = TestClient.dataFolder
      let client = TestClient.make(port: 1)
      // Simulates another process, which locks every folder that this client could use.
      let cacheFolder = client.cacheFolderForTests
      try FileManager.default.createDirectory(at: cacheFolder, withIntermediateDirectories: true)
      let descriptor = open(cacheFolder.appendingPathComponent("lock").path, O_CREAT | O_RDWR, 0o600)
      #expect(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      put(client.document("c/a"), ["n": 1])
      #expect(try await client.document("c/a").getDocument(source: .cache).exists)
      #expect(cacheFolder.path.hasPrefix(folder.path))
      let error = try #require(client.persistenceError) as NSError
      #expect(error.domain == FirestorePersistenceErrorDomain)
      #expect(error.code == FirestorePersistenceErrorCode.inUse.rawValue)
      try await client.terminate()
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("I-FST000008") && text.contains("another process uses the cache"))
  }

  @Test("queries on the cache return the server's results")
  func cacheAndServer() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      var random = SplitMix(seed: 3)
      let values: [Any] = [
        0, 1, 1.0, 2.5, -1, "a", "b", "", true, false, NSNull(), Date(timeIntervalSince1970: 1),
      ]
      func value() -> Any { values.randomElement(using: &random) ?? 0 }
      func operand() -> Any {
        while true {
          let value = value()
          if !(value is NSNull) { return value }
        }
      }
      for chunk in 0..<4 {
        let batch = client.batch()
        for n in 0..<40 {
          var data: [String: Any] = ["tags": [value(), value()]]
          for field in ["a", "b"] where Int.random(in: 0..<6, using: &random) > 0 { data[field] = value() }
          batch.setData(data, forDocument: client.document("c/d\(chunk * 40 + n)"))
        }
        try await deadline { try await batch.commit() }
      }
      _ = try await deadline { try await client.collection("c").getDocuments(source: .server) }
      for round in 0..<120 {
        var query: Query = client.collection("c")
        let field = Bool.random(using: &random) ? "a" : "b"
        switch round % 8 {
        case 0: query = query.whereField(field, isEqualTo: value())
        case 1: query = query.whereField(field, isLessThan: operand())
        case 2: query = query.whereField(field, isGreaterThanOrEqualTo: operand())
        case 3: query = query.whereField("tags", arrayContains: value()).whereField("a", isEqualTo: value())
        case 4:
          query = query.whereField("a", in: [operand(), operand()]).whereField("b", isNotEqualTo: operand())
        case 5:
          query = query.whereFilter(
            .orFilter([
              .whereField("a", isEqualTo: value()), .whereField("b", isLessThanOrEqualTo: operand()),
            ]))
        case 6: query = query.whereField(field, notIn: ["a", 1])
        default: break
        }
        if Bool.random(using: &random) {
          query = query.order(by: field, descending: Bool.random(using: &random))
          if round % 8 == 7 { query = query.start(at: [operand()]) }
          let limit = Int.random(in: 1...20, using: &random)
          query = Bool.random(using: &random) ? query.limit(to: limit) : query.limit(toLast: limit)
        }
        let server = try await deadline { [query] in try await query.getDocuments(source: .server) }
        let cache = try await deadline { [query] in try await query.getDocuments(source: .cache) }
        #expect(cache.documents.map(\.documentID) == server.documents.map(\.documentID), "round \(round)")
      }
      try await client.terminate()
    }
  }

  @Test(
    "ten thousand queued writes behind a busy callback queue take less than 100 MB",
    .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/statm"), "needs /proc"))
  func memoryOfQueuedWrites() async throws {
    let callbacks = DispatchQueue(label: "busy")
    let client = TestClient.make(port: 1, queue: callbacks)
    try await client.disableNetwork()
    let gate = DispatchSemaphore(value: 0)
    let shown = Recorder<Int>()
    let listener = client.collection("c").addSnapshotListener { snapshot, _ in
      gate.wait()
      gate.signal()
      if let snapshot { shown.add(snapshot.count) }
    }
    let before = try residentBytes()
    for n in 0..<10_000 {
      put(client.document("c/\(n)"), ["n": n, "text": "the document with the number \(n)"])
    }
    _ = try await deadline { try await client.cacheCount(of: "c") }
    let growth = try residentBytes() - before
    gate.signal()
    _ = try await shown.first { $0 == 10_000 }
    listener.remove()
    try await client.terminate()
    print("10,000 queued writes: \(growth >> 20) MiB")
    #expect(growth < 100_000_000)
  }

  private func residentBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return (Int(status.dropFirst().first ?? "") ?? 0) * 4_096
  }
}
