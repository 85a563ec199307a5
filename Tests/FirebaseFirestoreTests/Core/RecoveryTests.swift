// Tests the recovery of the sync engine: operations that failed in the cache are repeated with back-off, and
// lost writes are completed with an error.

import FirestoreModel
import Foundation
import GRDB
import Testing

@testable import FirebaseFirestore

@Suite("Recovery", .timeLimit(.minutes(2))) struct RecoveryTests {
  private let name = ParentName(rootOf: DatabaseName(project: "test")).collection("c").document("a")
  private let failing = Locked<StoreOperation?>(nil)

  private func engine() -> SyncEngine {
    var persistence = FailingPersistence(MemoryPersistence(isEager: true))
    persistence.fails = { [failing] operation in failing.change { $0 == operation } }
    var engine = SyncEngine(persistence: persistence, seed: 1)
    engine.enableNetwork()
    return engine
  }

  private func write(_ value: Int64) -> [Write] { [Write(.update(name, fields: ["n": .integer(value)]))] }

  private func recoveryDelay(_ actions: [EngineAction]) -> Double? {
    actions.compactMap { if case .startTimer(.recovery, let seconds) = $0 { seconds } else { nil } }.last
  }

  private func completions(_ actions: [EngineAction]) -> [Int: StatusCode?] {
    var result: [Int: StatusCode?] = [:]
    for case .completed(let id, let error) in actions { result[id.number] = .some(error?.code) }
    return result
  }

  @Test("reading the queue is repeated with growing delays, and the network stays off until it succeeds")
  func unreadableQueue() throws {
    var engine = engine()
    failing.change { $0 = .nextBatch }
    engine.write(write(1), at: .epoch, completion: CompletionID(number: 1))
    var delays: [Double] = []
    for _ in 0..<8 {
      let actions = engine.takeActions()
      #expect(!actions.contains { if case .connect = $0 { true } else { false } })
      delays.append(try #require(recoveryDelay(actions)))
      engine.timerFired(.recovery)
    }
    #expect(delays.dropFirst().allSatisfy { $0 >= 0.5 } && (delays.last ?? 0) > 2)
    failing.change { $0 = nil }
    _ = engine.takeActions()
    engine.timerFired(.recovery)
    #expect(engine.takeActions().contains(.connect(.write, 1)))
  }

  @Test("snapshots that cannot be stored are requested again with growing delays")
  func unstorableSnapshots() throws {
    var engine = engine()
    let query = ClientQuery(document: name)
    engine.listen(ListenerID(number: 1), to: query, options: .init())
    failing.change { $0 = .applyRemoteEvent }
    var delays: [Double] = []
    for number in 1...6 {
      engine.watchStreamOpened(number)
      engine.watchReceived(
        number, .target(.init(kind: .noChange, targets: [], snapshotVersion: .init(microseconds: 5))))
      delays.append(try #require(recoveryDelay(engine.takeActions())))
      engine.timerFired(.recovery)
    }
    #expect(delays.dropFirst().allSatisfy { $0 >= 0.5 } && (delays.last ?? 0) > 2)
  }

  @Test(
    "a write fails while the new user's queue cannot be opened, and later writes belong to that user")
  func writeDuringUserChange() {
    var engine = engine()
    failing.change { $0 = .changeUser }
    engine.switchUser(to: "bob")
    engine.write(write(1), at: .epoch, completion: CompletionID(number: 1))
    #expect(completions(engine.takeActions()) == [1: .unavailable])
    failing.change { $0 = nil }
    engine.timerFired(.recovery)
    engine.write(write(2), at: .epoch, completion: CompletionID(number: 2))
    #expect(completions(engine.takeActions()).isEmpty)
    #expect(engine.store.persistence.allBatches.map(\.writes) == [write(2)])
    engine.switchUser(to: nil)
    #expect(engine.store.persistence.allBatches.isEmpty)
    engine.switchUser(to: "bob")
    #expect(engine.store.persistence.allBatches.map(\.writes) == [write(2)])
  }

  /// An engine on disk with two queued writes. The first one was sent, but has no response.
  private func engineOnDisk(_ cache: CacheFixture) throws -> SyncEngine {
    var engine = SyncEngine(persistence: try cache.open(), seed: 1)
    engine.enableNetwork()
    engine.listen(ListenerID(number: 1), to: ClientQuery(document: name), options: .init())
    for number in 1...2 {
      engine.write(write(Int64(number)), at: .epoch, completion: CompletionID(number: number))
    }
    engine.waitForPendingWrites(CompletionID(number: 3))
    engine.writeStreamOpened(1)
    engine.writeHandshakeDone(1)
    _ = engine.takeActions()
    let persistence = try #require(engine.store.persistence as? DiskPersistence)
    persistence.use { try $0.execute(sql: "UPDATE overlays SET body = x'00'") }
    return engine
  }

  @Test("queued writes that a damaged cache has lost fail and are removed from the views")
  func lostWrites() throws {
    let cache = CacheFixture(.disk)
    var engine = try engineOnDisk(cache)
    engine.write(write(3), at: .epoch, completion: CompletionID(number: 4))
    var actions = engine.takeActions()
    #expect(
      completions(actions) == [1: .dataLoss, 2: .dataLoss, 3: .dataLoss, 4: .dataLoss])
    #expect(engine.pipeline.isEmpty && engine.store.persistence.allBatches.isEmpty)
    #expect(actions.contains(.startTimer(.lostWrites, seconds: 0)))
    engine.timerFired(.lostWrites)
    actions = engine.takeActions()
    let shown = actions.compactMap { action -> Int? in
      if case .snapshot(ListenerID(number: 1), let snapshot) = action {
        snapshot.documents.count
      } else {
        nil
      }
    }
    #expect(shown == [0])
    // Later writes are queued and sent again.
    engine.write(write(5), at: .epoch, completion: CompletionID(number: 5))
    #expect(engine.takeActions().contains(.connect(.write, 2)) && engine.pipeline.count == 1)
    engine.store.persistence.close()
  }

  @Test("an acknowledged write succeeds even if storing the acknowledgement finds the cache damaged")
  func acknowledgedBeforeLoss() throws {
    let cache = CacheFixture(.disk)
    var engine = try engineOnDisk(cache)
    engine.writeAcknowledged(
      1, results: [WriteResult(updateTime: .init(microseconds: 9), transformResults: [])],
      commitTime: .init(microseconds: 9))
    #expect(completions(engine.takeActions()) == [2: .dataLoss, 3: .dataLoss])
    engine.timerFired(.recovery)
    #expect(completions(engine.takeActions()) == [1: nil])
    engine.store.persistence.close()
  }
}
