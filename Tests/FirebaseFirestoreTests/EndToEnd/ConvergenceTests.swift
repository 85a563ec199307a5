// Random programs of several clients against a real server: with writes that the server rejects, clients that go offline
// and clients that restart from their cache, all clients show the server's documents in the end.
//
// `CONVERGENCE_RUNS` and `CONVERGENCE_SEED` choose longer runs and other programs.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

@Suite("Convergence", .serialized, .timeLimit(.minutes(60))) struct ConvergenceTests {
  private static func number(_ name: String, _ fallback: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? fallback
  }

  @Test("clients converge to the server's documents over rejected writes, offline times and restarts")
  func convergence() async throws {
    let (runs, first) = (Self.number("CONVERGENCE_RUNS", 12), Self.number("CONVERGENCE_SEED", 1))
    try await withServer { _, port in
      let observer = TestClient.make(port: port)
      for seed in first..<(first + runs) {
        var program = Program(seed: UInt64(seed), port: port, observer: observer)
        try await program.run()
      }
      try await observer.terminate()
    }
  }
}

/// A client with a listener, which restarts with the same cache.
private final class Participant {
  private(set) var client: Firestore
  private(set) var shown = Recorder<[String: String]>()
  /// The last snapshot or error, for messages of failures.
  let last = Locked("nothing")
  private var listener: (any ListenerRegistration)?
  private let collection: String

  init(_ client: Firestore, collection: String) {
    self.client = client
    self.collection = collection
    listen()
  }

  private func listen() {
    let shown = Recorder<[String: String]>()
    self.shown = shown
    let last = last
    listener = client.collection(collection).addSnapshotListener(includeMetadataChanges: true) {
      snapshot, error in
      let text = snapshot.map {
        "cached \($0.metadata.isFromCache), pending \($0.metadata.hasPendingWrites) \(Participant.contents($0))"
      }
      last.change { $0 = text ?? String(describing: error) }
      guard let snapshot, !snapshot.metadata.isFromCache, !snapshot.metadata.hasPendingWrites else { return }
      shown.add(Participant.contents(snapshot))
    }
  }

  func restart() async throws {
    try await client.terminate()
    client = TestClient.again(client)
    listen()
  }

  func stop() async throws {
    listener?.remove()
    try await client.terminate()
    try await client.clearPersistence()
  }

  /// The documents as text, with sorted fields.
  static func contents(_ snapshot: QuerySnapshot) -> [String: String] {
    var result: [String: String] = [:]
    for document in snapshot.documents {
      result[document.documentID] = document.data().sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        .joined(separator: " ")
    }
    return result
  }
}

private struct Program {
  let seed: UInt64
  let observer: Firestore
  var random: SplitMix
  let collection: String
  var participants: [Participant]

  init(seed: UInt64, port: Int, observer: Firestore) {
    self.seed = seed
    self.observer = observer
    random = SplitMix(seed: seed)
    let collection = "run\(seed)"
    self.collection = collection
    participants = (0..<3).map { _ in Participant(TestClient.make(port: port), collection: collection) }
  }

  mutating func run() async throws {
    for step in 0..<40 {
      let index = Int.random(in: 0..<participants.count, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0: try await participants[index].client.disableNetwork()
      case 1: try await participants[index].client.enableNetwork()
      case 2: try await participants[index].restart()
      default: write(step, with: participants[index].client)
      }
    }
    for participant in participants {
      let client = participant.client
      try await client.enableNetwork()
      try await deadline { try await client.waitForPendingWrites() }
    }
    let (observer, path) = (observer, collection)
    let expected = try await deadline {
      Participant.contents(try await observer.collection(path).getDocuments(source: .server))
    }
    for (number, participant) in participants.enumerated() {
      do {
        _ = try await participant.shown.first(within: 20) { $0 == expected }
      } catch {
        let last = participant.last.change { $0 }
        let state = await participant.client.stateForMessages()
        Issue.record("seed \(seed), client \(number): \(last); \(state); expected \(expected)")
        throw error
      }
      try await participant.stop()
    }
  }

  private mutating func write(_ step: Int, with client: Firestore) {
    func document() -> DocumentReference {
      client.document("\(collection)/d\(Int.random(in: 0..<6, using: &random))")
    }
    let number = Int64.random(in: 0..<5, using: &random)
    switch Int.random(in: 0..<7, using: &random) {
    case 0, 1: document().setData(["n": step, "by": number]) { _ in }
    case 2: document().setData(["list": FieldValue.arrayUnion([number])], merge: true) { _ in }
    // Rejected where the document does not exist.
    case 3: document().updateData(["n": FieldValue.increment(number)]) { _ in }
    case 4: document().updateData(["map.x": number, "by": FieldValue.delete()]) { _ in }
    case 5: document().delete { _ in }
    default:
      let batch = client.batch()
      batch.setData(["n": FieldValue.increment(number)], forDocument: document(), merge: true)
      batch.updateData(["seen": step], forDocument: document())
      batch.commit { _ in }
    }
  }
}
