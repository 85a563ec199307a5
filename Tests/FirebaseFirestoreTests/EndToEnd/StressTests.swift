// Stress tests with a real server: calls from many threads, and many short-lived listeners.

import Dispatch
import FirebaseCore
import FirestoreModel
import Foundation
import ServerFixture
import Testing

@testable import FirebaseFirestore

@Suite("Stress", .serialized, .timeLimit(.minutes(10))) struct StressTests {
  private func state<T: Sendable>(
    of client: Firestore, _ read: @escaping @Sendable (FirestoreClient) -> T
  ) async -> T {
    await withCheckedContinuation { continuation in
      client.client.event { continuation.resume(returning: read($0)) }
    }
  }

  @Test("thousands of listeners are removed without leaks")
  func listenerLeaks() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let settings = client.settings
      settings.cacheSettings = MemoryCacheSettings()
      client.settings = settings
      for round in 0..<3_000 {
        let query = client.collection("c\(round % 30)").whereField("n", isEqualTo: round % 300)
        let listener = query.addSnapshotListener { _, _ in }
        listener.remove()
        if round % 1_000 == 999 {
          _ = try await deadline { try await client.document("x/y").getDocument(source: .server) }
        }
      }
      let leaked = await state(of: client) { client in
        client.engine.views.count + client.engine.listenTargets.count + client.engine.store.targets.count
          + client.engine.queriesOfTarget.count
      }
      #expect(leaked == 0)
    }
  }

  @Test("calls from many threads complete exactly once on the callback queue")
  func concurrentCalls()
    async throws
  {
    try await withServer { _, port in
      let queue = DispatchQueue(label: "stress")
      let key = DispatchSpecificKey<Bool>()
      queue.setSpecific(key: key, value: true)
      let client = TestClient.make(port: port, queue: queue)
      let done = Recorder<Bool>()
      let (threads, calls) = (8, 15)
      for thread in 0..<threads {
        Thread.detachNewThread {
          for call in 0..<calls {
            let document = client.document("t\(thread)/c\(call)")
            let listener = document.addSnapshotListener { _, _ in }
            document.setData(["n": call]) { error in
              done.add(error == nil && DispatchQueue.getSpecific(key: key) == true)
            }
            document.getDocument { snapshot, error in
              done.add(
                error == nil && snapshot?.get("n") as? Int == call
                  && DispatchQueue.getSpecific(key: key) == true)
            }
            client.document("all/count").updateData(["n": FieldValue.increment(Int64(1))])
            listener.remove()
          }
        }
      }
      _ = try await done.first(from: 2 * threads * calls - 1, within: 120) { _ in true }
      #expect(done.all.allSatisfy { $0 })
      try await deadline(60) { try await client.waitForPendingWrites() }
      #expect(done.all.count == 2 * threads * calls)
    }
  }
}
