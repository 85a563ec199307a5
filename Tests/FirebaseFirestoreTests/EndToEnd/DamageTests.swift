// Tests damage of the cache file while a client uses it: calls end with an error, and the client continues.

import FirebaseFirestore
import Foundation
import Testing

@Suite("Damage while running", .timeLimit(.minutes(2))) struct DamageTests {
  @Test("a setData call that waits for the server fails, and the listener no longer shows the lost write")
  func waitingWrite() async throws {
    let client = TestClient.make(port: 1)
    let shown = Recorder<Bool>()
    let listener = client.document("c/a").addSnapshotListener { snapshot, _ in
      if let snapshot { shown.add(snapshot.exists) }
    }
    let outcome = Recorder<FirestoreErrorCode.Code?>()
    let waiting = _Concurrency.Task {
      do {
        try await client.document("c/a").setData(["n": 1])
        outcome.add(nil)
      } catch { outcome.add((error as? FirestoreErrorCode)?.code) }
    }
    _ = try await shown.first { $0 }
    await client.damageOverlays()
    await #expect { try await client.document("c/a").getDocument(source: .cache) } throws: {
      ($0 as? FirestoreErrorCode)?.code == .dataLoss
    }
    #expect(try await outcome.first { _ in true } == .dataLoss)
    let count = shown.all.count
    _ = try await shown.first(from: max(count - 1, 0)) { !$0 }
    await waiting.value
    // The client continues with an empty cache.
    put(client.document("c/b"), ["n": 2])
    #expect(try await client.document("c/b").getDocument(source: .cache).exists)
    listener.remove()
    try await client.terminate()
  }
}
