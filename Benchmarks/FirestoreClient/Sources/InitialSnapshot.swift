// Measures the first complete snapshot of a listener whose cache is empty.

import FirebaseFirestore
import Foundation

struct InitialSnapshot {
  let count: Int
  let server: String

  func run() async throws {
    let collection = "initial\(count)"
    let writer = try MeasuredClient.make("writer\(count)", server: server, cache: MemoryCacheSettings())
    for start in stride(from: 0, to: count, by: 500) {
      let batch = writer.batch()
      for number in start..<min(start + 500, count) {
        batch.setData(sampleFields(number), forDocument: writer.document("\(collection)/d\(number)"))
      }
      try await batch.commit()
    }
    try await writer.terminate()
    for (place, cache) in [
      ("memory", MemoryCacheSettings() as any LocalCacheSettings & NSObjectProtocol),
      ("disk", MeasuredClient.onDisk),
    ] {
      let reader = try MeasuredClient.make("reader\(count)\(place)", server: server, cache: cache)
      let time = try await seconds {
        for try await snapshot in reader.collection(collection).snapshots(includeMetadataChanges: true)
        where !snapshot.metadata.isFromCache {
          guard snapshot.count == count else { throw MeasurementFailure(text: "\(snapshot.count) documents") }
          break
        }
      }
      try await reader.terminate()
      FirestoreClientBenchmarks.row(
        "initial snapshot of \(count) documents, cache in \(place == "disk" ? "a file" : "memory")",
        "\(short(time * 1e3)) ms, \(short(time / Double(count) * 1e6)) µs a document")
    }
  }
}

/// The fields of a document of about 200 bytes.
func sampleFields(_ number: Int) -> [String: Any] {
  [
    "title": "document number \(number)", "number": number, "group": number / 10, "share": Double(number) / 7,
    "tags": ["a", "b\(number % 10)"], "author": ["name": "somebody", "born": 1775],
  ]
}
