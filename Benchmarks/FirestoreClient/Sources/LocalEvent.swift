// Measures the time from a local write to the event of a local listener.

import FirebaseFirestore
import Foundation

struct LocalEvent {
  let count: Int
  let server: String

  func run() async throws {
    for (place, cache) in [
      ("memory", MemoryCacheSettings() as any LocalCacheSettings & NSObjectProtocol),
      ("a file", MeasuredClient.onDisk),
    ] {
      let client = try MeasuredClient.make(
        "local-\(place == "memory" ? place : "file")", server: server, cache: cache)
      try await client.disableNetwork()
      let document = client.document("local/a")
      put(document, ["n": -1])
      var snapshots = document.snapshots.makeAsyncIterator()
      _ = try await snapshots.next()
      var times: [Double] = []
      for number in 0..<count {
        times.append(
          try await seconds {
            put(document, ["n": number])
            while try await snapshots.next()?.get("n") as? Int != number {}
          })
      }
      times.sort()
      FirestoreClientBenchmarks.row(
        "local write to local event, cache in \(place)",
        "p50 \(short(times[count / 2] * 1e6)) µs, p99 \(short(times[count * 99 / 100] * 1e6)) µs")
      try await client.terminate()
    }
  }
}
