// Tests the write stream: errors that reject a batch (the writes of one call), errors that end only the stream, stream
// tokens, and closing when idle.

import FirebaseCore
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Write stream") struct WriteStreamTests {
  private let name = ParentName(rootOf: DatabaseName(project: "test")).collection("c").document("a")

  private func write(_ value: Int64) -> [Write] { [Write(.update(name, fields: ["n": .integer(value)]))] }

  /// Returns an engine with two batches in flight on an open stream.
  private func engineWithTwoBatches() -> SyncEngine {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    for number in 1...2 {
      engine.write(write(Int64(number)), at: .epoch, completion: CompletionID(number: number))
    }
    engine.writeStreamOpened(1)
    engine.writeHandshakeDone(1)
    _ = engine.takeActions()
    return engine
  }

  private func completed(_ actions: [EngineAction]) -> [Int] {
    actions.compactMap { if case .completed(let id, _) = $0 { id.number } else { nil } }
  }

  private func startsBackoff(_ actions: [EngineAction]) -> Bool {
    actions.contains { if case .startTimer(.backoff(.write), _) = $0 { true } else { false } }
  }

  @Test("a permanent error rejects the first batch, and the next one is sent immediately")
  func permanentError() {
    for code in [3, 5, 6, 7, 9, 11, 12, 15] as [Int32] {
      var engine = engineWithTwoBatches()
      engine.writeStreamClosed(1, FirestoreError(StatusCode(rawValue: code), "no"))
      let actions = engine.takeActions()
      #expect(completed(actions) == [1], "code \(code)")
      #expect(actions.contains(.connect(.write, 2)) && !startsBackoff(actions))
      #expect(engine.pipeline.map(\.writes) == [write(2)])
    }
  }

  @Test("a transient error rejects no batch, and all batches are sent again after the back-off")
  func transientError() {
    // These gRPC codes are transient. ABORTED (10) means contention and is retried.
    for code in [1, 2, 4, 8, 10, 13, 14, 16] as [Int32] {
      var engine = engineWithTwoBatches()
      engine.writeStreamClosed(1, FirestoreError(StatusCode(rawValue: code), "later"))
      var actions = engine.takeActions()
      #expect(completed(actions).isEmpty && startsBackoff(actions), "code \(code)")
      engine.timerFired(.backoff(.write))
      engine.writeStreamOpened(2)
      #expect(engine.takeActions().suffix(2) == [.connect(.write, 2), .send(.write, .handshake)])
      engine.writeHandshakeDone(2)
      actions = engine.takeActions()
      #expect(actions == [.send(.write, .writes(write(1))), .send(.write, .writes(write(2)))])
    }
  }

  @Test("an error before the handshake rejects no batch")
  func errorBeforeHandshake() {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    engine.write(write(1), at: .epoch, completion: CompletionID(number: 1))
    engine.writeStreamOpened(1)
    engine.writeStreamClosed(1, FirestoreError(.permissionDenied, "no"))
    let actions = engine.takeActions()
    #expect(completed(actions).isEmpty && startsBackoff(actions))
    #expect(engine.pipeline.count == 1)
  }

  @Test("an idle write stream is closed after one minute, and the next write opens it again")
  func idleStream() {
    var engine = engineWithTwoBatches()
    for _ in 1...2 {
      engine.writeAcknowledged(1, results: [WriteResult(updateTime: nil)], commitTime: .init(seconds: 1))
    }
    #expect(engine.takeActions().contains(.startTimer(.idle(.write), seconds: 60)))
    engine.timerFired(.idle(.write))
    #expect(engine.takeActions() == [.send(.write, .writes([])), .disconnect(.write, 1)])
    engine.write(write(3), at: .epoch, completion: nil)
    #expect(engine.takeActions().contains(.connect(.write, 2)))
  }

  @Test("each request contains the last stream token, and a handshake contains none")
  func streamTokens() {
    var requests = WriteRequests()
    func response(_ token: String) -> Google_Firestore_V1_WriteResponse {
      var response = Google_Firestore_V1_WriteResponse()
      response.streamToken = Data(token.utf8)
      return response
    }
    let database = name.database
    let first = requests.handshake(with: database)
    #expect(first.database == database.description && first.streamToken.isEmpty && first.writes.isEmpty)
    requests.recordResponse(response("1"))
    #expect(requests.batch(write(1)).streamToken == Data("1".utf8))
    requests.recordResponse(response("2"))
    let batch = requests.batch(write(2))
    #expect(batch.streamToken == Data("2".utf8) && batch.writes.count == 1 && batch.database.isEmpty)
    #expect(requests.handshake(with: database).streamToken.isEmpty)
    #expect(requests.batch([]).streamToken.isEmpty, "a token of another stream is not sent")
  }
}
