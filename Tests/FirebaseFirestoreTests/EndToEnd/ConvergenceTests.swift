// Tests that clients converge with the server. Each seed makes a program, a random sequence of steps on several
// clients. The server or its
// rules reject some writes, and clients go offline or restart from their caches. At the end all clients must
// show the server's documents.
//
// The environment variable HEARTH_CONVERGENCE sets the number of programs, and HEARTH_CONVERGENCE_SEED the first
// seed. `make convergence` runs many programs.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

/// Rules whose decisions depend on the write, on the stored document and on the document's name.
private let rules = """
  rules_version = '2';
  service cloud.firestore {
    match /databases/{database}/documents/{collection}/{document} {
      allow read: if true;
      allow create: if request.resource.data.get('by', 0) != 3;
      // The rules allow updates of missing documents, which the server must reject.
      allow update: if resource == null
        || request.resource.data.get('by', 0) != 3 && resource.data.get('by', 0) != 4;
      allow delete: if document != 'd5';
    }
  }
  """

@Suite("Convergence", .serialized, .timeLimit(.minutes(60))) struct ConvergenceTests {
  private static let concurrentPrograms = 4

  private static func environmentNumber(_ name: String, _ fallback: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? fallback
  }

  @Test("clients converge to the server's documents despite rejected writes, offline periods and restarts")
  func convergence() async throws {
    let (runs, first) = (
      Self.environmentNumber("HEARTH_CONVERGENCE", 12), Self.environmentNumber("HEARTH_CONVERGENCE_SEED", 1)
    )
    let errors = Locked<[FirestoreErrorCode.Code: Int]>([:])
    try await withServer(rules: rules) { _, port in
      let observer = TestClient.make(port: port)
      // Programs run concurrently, because they spend most of their time waiting, for instance until a client
      // reconnects.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, seed) in (first..<(first + runs)).enumerated() {
          if number >= ConvergenceTests.concurrentPrograms { try await group.next() }
          group.addTask {
            var program = Program(seed: UInt64(seed), port: port, observer: observer, errors: errors)
            try await program.run()
          }
        }
        try await group.waitForAll()
      }
      try await observer.terminate()
    }
    let (denied, absent) = errors.change { ($0[.permissionDenied] ?? 0, $0[.notFound] ?? 0) }
    print("convergence: \(runs) programs, \(denied) writes denied by rules, \(absent) of absent documents")
    #expect(denied > 0 && absent > 0)
  }
}

/// A client with a listener. It can restart with the same cache.
private final class Participant {
  private(set) var client: Firestore
  private(set) var shown = Recorder<[String: String]>()
  /// The last snapshot or error, for failure messages.
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
    client = TestClient.reopen(client)
    listen()
  }

  func stop() async throws {
    listener?.remove()
    try await client.terminate()
    try await client.clearPersistence()
  }

  /// The documents as strings, with sorted fields.
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
  /// The number of rejected writes by error code.
  let errors: Locked<[FirestoreErrorCode.Code: Int]>
  var random: SplitMix
  let collection: String
  var participants: [Participant]

  init(seed: UInt64, port: Int, observer: Firestore, errors: Locked<[FirestoreErrorCode.Code: Int]>) {
    self.seed = seed
    self.observer = observer
    self.errors = errors
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
    let recordError = { @Sendable [errors] (error: (any Error)?) in
      guard let error, let code = FirestoreErrorCode.Code(rawValue: (error as NSError).code) else { return }
      errors.change { $0[code, default: 0] += 1 }
    }
    let number = Int64.random(in: 0..<5, using: &random)
    switch Int.random(in: 0..<7, using: &random) {
    case 0, 1: document().setData(["n": step, "by": number], completion: recordError)
    case 2:
      document().setData(["list": FieldValue.arrayUnion([number])], merge: true, completion: recordError)
    // The server rejects these writes if the document does not exist.
    case 3: document().updateData(["n": FieldValue.increment(number)], completion: recordError)
    case 4: document().updateData(["map.x": number, "by": FieldValue.delete()], completion: recordError)
    case 5: document().delete(completion: recordError)
    default:
      let batch = client.batch()
      batch.setData(["n": FieldValue.increment(number)], forDocument: document(), merge: true)
      batch.updateData(["seen": step], forDocument: document())
      batch.commit(completion: recordError)
    }
  }
}
