// Measures writes that are queued without a server: their time and memory, and the start of a client that finds them.

import FirebaseFirestore
import Foundation

struct QueuedWrites {
  let count: Int

  func run() async throws {
    let client = try MeasuredClient.make("queued", cache: MeasuredClient.onDisk)
    try await client.disableNetwork()
    let collection = client.collection("queued")
    let listener = collection.addSnapshotListener { _, _ in }
    // A cached read waits until the client has handled all earlier calls.
    _ = try? await client.document("queued/none").getDocument(source: .cache)
    let before = residentMegabytes()
    var times: [Double] = []
    for part in 0..<10 {
      times.append(
        await seconds {
          for number in 0..<(count / 10) {
            put(collection.document("d\(part * (count / 10) + number)"), sampleFields(number))
          }
          _ = try? await client.document("queued/none").getDocument(source: .cache)
        })
    }
    let growth = residentMegabytes() - before
    listener.remove()
    try await client.terminate()
    let each = Double(count / 10)
    FirestoreClientBenchmarks.row(
      "\(count) queued writes under a listener, cache in a file",
      "\(short(times[0] / each * 1e6)) µs a write at first, \(short(times[9] / each * 1e6)) µs at the end; "
        + "\(short(growth)) MiB")
    let again = try MeasuredClient.make("queued", cache: MeasuredClient.onDisk)
    let start = try await seconds {
      try await again.disableNetwork()
      let one = try await again.document("queued/d1").getDocument(source: .cache)
      guard one.metadata.hasPendingWrites else { throw MeasurementFailure(text: "the queue is empty") }
    }
    let all = try await seconds {
      let found = try await again.collection("queued").getDocuments(source: .cache)
      guard found.count == count / 10 * 10 else { throw MeasurementFailure(text: "\(found.count) documents") }
    }
    try await again.terminate()
    FirestoreClientBenchmarks.row(
      "start with \(count) queued writes",
      "\(short(start * 1e3)) ms to one document, \(short(all * 1e3)) ms to all of them")
  }
}
