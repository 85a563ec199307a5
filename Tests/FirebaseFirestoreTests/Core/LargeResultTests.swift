// Tests the cost of changes in a large query result: it is proportional to the number of changes, and does
// not depend on the size of the result.

import FirestoreModel
import Testing

@testable import FirebaseFirestore

@Suite("Large results", .serialized, .timeLimit(.minutes(10))) struct LargeResultTests {
  private static let root = ParentName(rootOf: DatabaseName(project: "test"))

  private func document(_ id: Int, at version: Int64) -> WatchChange {
    let name = LargeResultTests.root.collection("c").document("d\(id)")
    let document = CachedDocument(
      found: name, fields: ["v": .integer(version)], version: .init(microseconds: version), createTime: .epoch
    )
    return .document(name, document, updated: [2], removed: [])
  }

  private func update(_ kind: WatchChange.TargetUpdate.Kind, at version: Int64? = nil) -> WatchChange {
    .target(
      .init(
        kind: kind, targets: kind == .noChange ? [] : [2], resumeToken: [1],
        snapshotVersion: version.map { .init(microseconds: $0) }))
  }

  /// Measures the time for one more change of every document of a result.
  private func timeOfChanges(to count: Int) throws -> Duration {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    let query = ClientQuery(ModelQuery(parent: LargeResultTests.root, StructuredQuery(from: [.init("c")])))
    engine.listen(ListenerID(number: 1), to: query, options: ListenerOptions())
    engine.watchStreamOpened(1)
    engine.watchReceived(1, update(.add))
    for id in 0..<count { engine.watchReceived(1, document(id, at: 1)) }
    engine.watchReceived(1, update(.current))
    engine.watchReceived(1, update(.noChange, at: 1))
    #expect(engine.remoteKeys(of: 2).count == count)
    let time = ContinuousClock().measure {
      for id in 0..<count { engine.watchReceived(1, document(id, at: 2)) }
      engine.watchReceived(1, update(.noChange, at: 2))
    }
    let first = try engine.store.read(LargeResultTests.root.collection("c").document("d0"))
    #expect(first.version.microseconds == 2)
    return time
  }

  @Test("the cost of a document change does not depend on the size of the result")
  func costOfChanges() throws {
    // For 6 times the documents, linear cost is 6 times as high, plus sorting; quadratic cost is 36 times as
    // high. The measurement is repeated, because other processes disturb it.
    let isLinear = try (0..<20).contains { _ in try timeOfChanges(to: 3_000) < timeOfChanges(to: 500) * 15 }
    #expect(isLinear)
  }
}
