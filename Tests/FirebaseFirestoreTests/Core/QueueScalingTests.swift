// Tests how the queue of writes scales: with a listener, the cost of a queued write does not depend on the length of
// the queue.

import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

/// Drives an engine with a listener to one collection, and stores the snapshots that it raises.
private struct ListenedQueue {
  static let root = ParentName(rootOf: DatabaseName(project: "test"))
  var engine: SyncEngine
  var snapshots: [ViewSnapshot] = []
  private var version: Int64 = 1

  init(_ cache: CacheFixture) throws {
    engine = SyncEngine(persistence: try cache.open(), seed: 1)
    engine.store.createsIndexes = false
    engine.enableNetwork()
    let query = ClientQuery(ModelQuery(parent: ListenedQueue.root, StructuredQuery(from: [.init("c")])))
    engine.listen(ListenerID(number: 1), to: query, options: ListenerOptions(includeMetadataChanges: true))
    engine.watchStreamOpened(1)
    engine.watchReceived(1, .target(.init(kind: .add, targets: [2])))
    engine.watchReceived(1, .target(.init(kind: .current, targets: [2], resumeToken: [1])))
    endSnapshot()
  }

  private func name(_ id: Int) -> DocumentName { ListenedQueue.root.collection("c").document("d\(id)") }

  private func fields(_ id: Int) -> MapValue {
    ["n": .integer(Int64(id)), "text": .string("document \(id)")]
  }

  private mutating func endSnapshot() {
    version += 1
    engine.watchReceived(
      1, .target(.init(kind: .noChange, targets: [], snapshotVersion: .init(microseconds: version))))
    collect()
  }

  private mutating func collect() {
    for case .snapshot(_, let view) in engine.takeActions() { snapshots.append(view) }
  }

  /// Queues a write that creates a document.
  mutating func add(_ id: Int) {
    engine.write([Write(.update(name(id), fields: fields(id)))], at: .epoch, completion: nil)
    collect()
  }

  mutating func openWriteStream() {
    engine.writeStreamOpened(1)
    engine.writeHandshakeDone(1)
    _ = engine.takeActions()
  }

  /// Acknowledges the first write of the queue, and delivers its document.
  mutating func acknowledge(_ id: Int) {
    version += 1
    let time = ModelTimestamp(microseconds: version)
    engine.writeAcknowledged(1, results: [WriteResult(updateTime: time)], commitTime: time)
    let document = CachedDocument(found: name(id), fields: fields(id), version: time, createTime: time)
    engine.watchReceived(1, .document(name(id), document, updated: [2], removed: []))
    endSnapshot()
  }
}

@Suite("Long queues", .timeLimit(.minutes(5))) struct QueueScalingTests {
  /// Measures the time of a range of steps.
  private func time(_ ids: Range<Int>, _ step: (Int) -> Void) -> Duration {
    ContinuousClock().measure { for id in ids { step(id) } }
  }

  @Test(
    "with a listener, the cost of queueing and sending a write does not depend on the queue's length",
    arguments: CacheKind.allCases)
  func constantCost(kind: CacheKind) throws {
    // If the cost grew with the length, it would be 15 times as high in the last part as in the first. The
    // measurement is repeated, because other processes disturb it.
    let (count, part) = (4_000, 500)
    var isConstant = false
    for _ in 0..<5 where !isConstant {
      let cache = CacheFixture(kind)
      var queue = try ListenedQueue(cache)
      defer { queue.engine.store.persistence.close() }
      let firstWrites = time(0..<part) { queue.add($0) }
      for id in part..<(count - part) { queue.add(id) }
      let lastWrites = time((count - part)..<count) { queue.add($0) }
      queue.openWriteStream()
      let firstAcks = time(0..<part) { queue.acknowledge($0) }
      for id in part..<(count - part) { queue.acknowledge(id) }
      let lastAcks = time((count - part)..<count) { queue.acknowledge($0) }
      print("queue on \(kind.rawValue): writes \(firstWrites) \(lastWrites), acks \(firstAcks) \(lastAcks)")
      #expect(queue.snapshots.last?.documents.count == count)
      #expect(queue.snapshots.last?.hasPendingWrites == false)
      isConstant = lastWrites < firstWrites * 4 && lastAcks < firstAcks * 4 && firstAcks < lastAcks * 4
    }
    #expect(isConstant)
  }
}
