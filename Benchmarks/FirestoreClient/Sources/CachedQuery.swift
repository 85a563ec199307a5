// Measures queries on a cache on disk that holds many documents: ten matches, and the first ten of an order.

import FirebaseFirestore
import Foundation

struct CachedQuery {
  let count: Int

  func run() async throws {
    let client = try MeasuredClient.make("cached\(count)", cache: MeasuredClient.onDisk)
    try await client.disableNetwork()
    try await client.setIndexConfiguration(
      #"{"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"group","order":"ASCENDING"}]},"#
        + #"{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"number","order":"ASCENDING"}]}]}"#
    )
    let load = try await seconds { _ = try await client.loadBundle(bundle()) }
    try await client.terminate()
    let again = try MeasuredClient.make("cached\(count)", cache: MeasuredClient.onDisk)
    try await again.disableNetwork()
    let matches = again.collection("c").whereField("group", isEqualTo: count / 20)
    let ordered = again.collection("c").order(by: "number").limit(to: 10)
    FirestoreClientBenchmarks.row("loading a bundle of \(count) documents", "\(short(load)) s")
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
        "cached query over \(count) documents, \(name)",
        "first \(short(first * 1e3)) ms, then p50 \(short(times[25] * 1e3)) ms")
    }
    try await again.terminate()
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
