// Tests loading bundles through the public API: progress, cached documents and named queries.

import FirebaseFirestore
import Foundation
import Testing

private struct ReportedProgress: Equatable, Sendable {
  let state: LoadBundleTaskState
  let documents: Int
  let total: Int

  init(_ progress: LoadBundleTaskProgress) {
    state = progress.state
    documents = progress.documentsLoaded
    total = progress.totalDocuments
  }
}

private func books(_ change: (inout BundleFile) -> Void = { _ in }) -> Data {
  var file = BundleFile()
  file.addQuery(
    "last two",
    ["from": [["collectionId": "books"]], "orderBy": [["field": ["fieldPath": "n"]]], "limit": 2],
    limitType: "LAST", at: 20)
  for n in 1...3 { file.add("books/b\(n)", ["n": ["integerValue": "\(n)"]], at: 10) }
  change(&file)
  return file.data
}

@Suite("Loading bundles", .timeLimit(.minutes(10))) struct LoadBundleTests {
  private func makeOfflineClient() async throws -> Firestore {
    let client = TestClient.make(port: 1)
    try await deadline { try await client.disableNetwork() }
    return client
  }

  /// Suspends the callback queue during `body`, so that observers are added before the first progress.
  private func suspendingCallbacks<T>(_ client: Firestore, _ body: () -> T) -> T {
    let queue = client.settings.dispatchQueue
    queue.suspend()
    defer { queue.resume() }
    return body()
  }

  @Test("loading a bundle fills the cache and registers its named queries")
  func fillsCache() async throws {
    let client = try await makeOfflineClient()
    let steps = Recorder<ReportedProgress>()
    let ends = Recorder<ReportedProgress>()
    suspendingCallbacks(client) {
      let task = client.loadBundle(books()) { progress, error in
        #expect(error == nil)
        if let progress { ends.add(ReportedProgress(progress)) }
      }
      task.addObserver { steps.add(ReportedProgress($0)) }
    }
    let last = try await ends.first { _ in true }
    #expect(last.state == .success && last.documents == 3 && last.total == 3)
    #expect(steps.all.map(\.state) == [.inProgress, .inProgress, .inProgress, .inProgress, .success])
    #expect(steps.all.map(\.documents) == [0, 1, 2, 3, 3])

    let read = try await deadline { try await client.document("books/b2").getDocument(source: .cache) }
    #expect(read.get("n") as? Int == 2 && read.metadata.isFromCache && !read.metadata.hasPendingWrites)
    let found = try await deadline { await client.getQuery(named: "last two") }
    let query = try #require(found)
    let result = try await deadline { try await query.getDocuments(source: .cache) }
    #expect(result.documents.map(\.documentID) == ["b2", "b3"])
    #expect(try await deadline { await client.getQuery(named: "unknown") } == nil)
  }

  @Test("a bundle that is not newer than the loaded one succeeds without changes")
  func olderBundle()
    async throws
  {
    let client = try await makeOfflineClient()
    let first = try await deadline { try await client.loadBundle(books()) }
    #expect(first.state == .success && first.documentsLoaded == 3 && first.bytesLoaded == first.totalBytes)
    let older = books {
      $0.createTime -= 1; $0.add("books/b9", nil, at: 30)
    }
    let repeated = try await deadline { try await client.loadBundle(older) }
    #expect(repeated.state == .success && repeated.totalDocuments == 4)
    await #expect(throws: (any Error).self) {
      try await deadline { try await client.document("books/b9").getDocument(source: .cache) }
    }
    let newer = books {
      $0.createTime += 1
      $0.add("books/b1", ["n": ["integerValue": "9"]], at: 30)
      $0.documentCount = 3
    }
    _ = try await deadline { try await client.loadBundle(newer) }
    let read = try await deadline { try await client.document("books/b1").getDocument(source: .cache) }
    #expect(read.get("n") as? Int == 9)
  }

  @Test("a corrupt bundle fails after its progress and changes nothing")
  func corruptBundle() async throws {
    let client = try await makeOfflineClient()
    let received = Recorder<ReportedProgress>()
    let failures = Recorder<Int>()
    let data = books()
    suspendingCallbacks(client) {
      let task = client.loadBundle(Data(data.dropLast(3))) { progress, error in
        if let progress { received.add(ReportedProgress(progress)) }
        failures.add((error as? FirestoreErrorCode)?.errorCode ?? -1)
      }
      task.addObserver { received.add(ReportedProgress($0)) }
    }
    #expect(try await failures.first { _ in true } == FirestoreErrorCode.dataLoss.rawValue)
    let last = try await received.first { $0.state == .error }
    #expect(last.documents == 2 && last.total == 3)
    await #expect(throws: (any Error).self) {
      try await deadline { try await client.document("books/b1").getDocument(source: .cache) }
    }
    #expect(try await deadline { await client.getQuery(named: "last two") } == nil)
    await #expect {
      try await deadline { try await client.loadBundle(Data("nonsense".utf8)) }
    } throws: { ($0 as? FirestoreErrorCode)?.code == .dataLoss }
    await #expect {
      try await deadline { try await client.loadBundle(Data()) }
    } throws: { ($0 as? FirestoreErrorCode)?.code == .unknown }
    // The failed attempt must not mark the bundle as loaded.
    #expect(try await deadline { try await client.loadBundle(data) }.state == .success)
  }

  @Test("a bundle is loaded from a stream, and a stream of a missing file is an error")
  func streams() async throws {
    let client = try await makeOfflineClient()
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-bundle-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("bundle")
    // The document is larger than one read of the stream.
    let long = String(repeating: "x", count: 200_000)
    try books { $0.add("books/long", ["text": ["stringValue": long]], at: 10) }.write(to: file)
    let stream = try #require(InputStream(fileAtPath: file.path))
    let steps = Recorder<ReportedProgress>()
    suspendingCallbacks(client) {
      _ = client.loadBundle(stream).addObserver { steps.add(ReportedProgress($0)) }
    }
    #expect(try await steps.first { $0.state != .inProgress }.state == .success)
    let read = try await deadline { try await client.document("books/long").getDocument(source: .cache) }
    #expect((read.get("text") as? String)?.count == long.count)
    if let missing = InputStream(fileAtPath: folder.appendingPathComponent("none").path) {
      let failures = Recorder<Bool>()
      client.loadBundle(missing) { _, error in failures.add(error != nil) }
      #expect(try await failures.first { _ in true })
    }
  }

  @Test("a removed observer receives no progress")
  func removedObservers() async throws {
    let client = try await makeOfflineClient()
    let unexpected = Recorder<ReportedProgress>()
    let received = Recorder<ReportedProgress>()
    suspendingCallbacks(client) {
      let task = client.loadBundle(books())
      let handle = task.addObserver { unexpected.add(ReportedProgress($0)) }
      task.addObserver { received.add(ReportedProgress($0)) }
      task.removeObserverWith(handle: handle)
    }
    _ = try await received.first { $0.state == .success }
    suspendingCallbacks(client) {
      let task = client.loadBundle(books { $0.id = "second" }) { _, _ in unexpected.add(received.all[0]) }
      task.addObserver { unexpected.add(ReportedProgress($0)) }
      task.removeAllObservers()
    }
    _ = try await deadline { try await client.loadBundle(books { $0.id = "third" }) }
    #expect(unexpected.all.isEmpty)
  }

  @Test("a listener receives the bundle's documents, and then the server's")
  func listenerAfterBundle()
    async throws
  {
    let server = TestServer()
    try await server.start()
    let port = await server.port
    let writer = TestClient.make(port: port)
    for n in 1...3 { try await deadline { try await writer.document("books/b\(n)").setData(["n": n * 10]) } }
    let reader = TestClient.make(port: port)
    try await deadline { try await reader.disableNetwork() }
    _ = try await deadline { try await reader.loadBundle(books()) }
    let found = try await deadline { await reader.getQuery(named: "last two") }
    let query = try #require(found)
    let received = Recorder<([Int], Bool)>()
    let listener = query.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
      guard let snapshot else { return }
      received.add((snapshot.documents.compactMap { $0.get("n") as? Int }, snapshot.metadata.isFromCache))
    }
    let cached = try await received.first { _ in true }
    #expect(cached.0 == [2, 3] && cached.1)
    try await deadline { try await reader.enableNetwork() }
    let live = try await received.first { !$0.1 }
    #expect(live.0 == [20, 30])
    listener.remove()
    await server.stop()
  }
}
