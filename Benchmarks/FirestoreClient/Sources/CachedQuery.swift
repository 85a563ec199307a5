// Measures queries on a cache that holds many documents: ten matches, and the first ten of an order. A cache in a file is
// closed and opened before the queries; its second client makes its indexes by itself.

import FirebaseFirestore
import Foundation

struct CachedQuery {
  private static let indexes =
    #"{"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"group","order":"ASCENDING"}]},"#
    + #"{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"number","order":"ASCENDING"}]}]}"#

  let count: Int

  func run() async throws {
    let file = try await loaded("cached\(count)", MeasuredClient.onDisk, indexes: CachedQuery.indexes)
    try await file.terminate()
    let again = try MeasuredClient.make("cached\(count)", cache: MeasuredClient.onDisk)
    try await measure(again, "a file that was just opened")
    let unlimited = NSNumber(value: FirestoreCacheSizeUnlimited)
    let memory = MemoryCacheSettings(
      garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: unlimited))
    try await measure(
      loaded("memory\(count)", memory, indexes: CachedQuery.indexes), "memory")
    try await measure(
      loaded("automatic\(count)", MeasuredClient.onDisk, indexes: nil), "a file, no index at first")
  }

  /// Measures the first query of this process on the cache in a file that `run` left, and the start of its client.
  func firstQuery(_ state: String) async throws {
    var client: Firestore?
    let start = try await seconds {
      client = try MeasuredClient.make("cached\(count)", cache: MeasuredClient.onDisk)
      try await client?.disableNetwork()
    }
    guard let client else { throw MeasurementFailure(text: "no client") }
    let matches = client.collection("c").whereField("group", isEqualTo: count / 20)
    let query = try await seconds {
      let found = try await matches.getDocuments(source: .cache)
      guard found.count == 10 else { throw MeasurementFailure(text: "\(found.count) documents") }
    }
    try await client.terminate()
    FirestoreClientBenchmarks.row(
      "ten matches of \(count) documents, \(state)",
      "start \(short(start * 1e3)) ms, first query \(short(query * 1e3)) ms")
  }

  /// A client whose cache holds the documents.
  private func loaded(
    _ name: String, _ cache: any LocalCacheSettings & NSObjectProtocol, indexes: String?
  ) async throws -> Firestore {
    let client = try MeasuredClient.make(name, cache: cache)
    try await client.disableNetwork()
    if let indexes { try await client.setIndexConfiguration(indexes) }
    let bytes = try bundle()
    let time = try await seconds { _ = try await client.loadBundle(bytes) }
    FirestoreClientBenchmarks.row("loading a bundle of \(count) documents, \(name)", "\(short(time)) s")
    return client
  }

  /// Runs both queries, and ends the client.
  private func measure(_ client: Firestore, _ place: String) async throws {
    try await client.disableNetwork()
    let matches = client.collection("c").whereField("group", isEqualTo: count / 20)
    let ordered = client.collection("c").order(by: "number").limit(to: 10)
    for (name, query) in [("ten matches", matches), ("first ten of an order", ordered)] {
      var times: [Double] = []
      for _ in 0..<51 {
        times.append(
          try await seconds {
            let found = try await query.getDocuments(source: .cache)
            guard found.count == 10 else { throw MeasurementFailure(text: "\(found.count) documents") }
          })
      }
      let first = times.removeFirst()
      times.sort()
      FirestoreClientBenchmarks.row(
        "cached query over \(count) documents, \(place), \(name)",
        "first \(short(first * 1e3)) ms, then p50 \(short(times[25] * 1e3)) ms")
    }
    try await client.terminate()
  }

  /// A bundle with the documents of one collection.
  private func bundle() throws -> Data {
    let root = "projects/demo-bench/databases/(default)/documents"
    let time = ["seconds": 1_700_000_000, "nanos": 0]
    var body = Data()
    func add(_ element: [String: Any]) throws {
      let json = try JSONSerialization.data(withJSONObject: element)
      body += Data("\(json.count)".utf8) + json
    }
    for number in 0..<count {
      let name = "\(root)/c/d\(number)"
      try add(["documentMetadata": ["name": name, "readTime": time, "exists": true]])
      try add([
        "document": [
          "name": name, "createTime": time, "updateTime": time,
          "fields": [
            "title": ["stringValue": "document number \(number)"], "number": ["integerValue": "\(number)"],
            "group": ["integerValue": "\(number / 10)"],
          ],
        ]
      ])
    }
    let metadata: [String: Any] = [
      "metadata": [
        "id": "bench", "version": 1, "createTime": time, "totalDocuments": count,
        "totalBytes": "\(body.count)",
      ]
    ]
    let head = try JSONSerialization.data(withJSONObject: metadata)
    return Data("\(head.count)".utf8) + head + body
  }
}
