// Handles the writes of the sync engine: a write is queued and shown at once, sent in order, and then
// acknowledged or rolled back.
//
// Invariant: batches are sent in the order of the queue, and at most `pipelineDepth` are in flight. The next
// response always belongs to the first batch of the pipeline.

import FirestoreModel

extension SyncEngine {
  static let pipelineDepth = 10

  /// Queues writes. The completion is called when the server has accepted or rejected them.
  mutating func write(_ writes: [Write], at time: ModelTimestamp, completion: CompletionID?) {
    let isSwitching = outstanding.contains { if case .switchUser = $0 { true } else { false } }
    if isSwitching {
      // The queue still belongs to the previous user.
      if let completion { act(.completed(completion, .unavailable("The cache is switching users."))) }
      return
    }
    let queued: (batch: BatchID, changes: DocumentChanges)
    do throws(PersistenceFailure) {
      queued = try store.write(writes, at: time)
    } catch {
      report(error)
      if let completion { act(.completed(completion, error.error)) }
      return
    }
    if let completion { writeCompletions[queued.batch] = completion }
    raise(queued.changes)
    fillPipeline()
  }

  /// Calls the completion when the server has accepted or rejected every write that is queued now.
  mutating func waitForPendingWrites(_ completion: CompletionID) {
    do throws(PersistenceFailure) {
      if let last = try store.transaction(.nextBatch, { $0.persistence.lastBatch }) {
        pendingWriteWaiters[last, default: []].append(completion)
      } else {
        act(.completed(completion, nil))
      }
    } catch {
      report(error)
      act(.completed(completion, error.error))
    }
  }

  private mutating func finish(_ batch: BatchID, _ error: FirestoreError?) {
    if let completion = writeCompletions.removeValue(forKey: batch) { act(.completed(completion, error)) }
    for waiter in pendingWriteWaiters.removeValue(forKey: batch) ?? [] { act(.completed(waiter, nil)) }
  }

  // MARK: The pipeline

  mutating func fillPipeline() {
    var last = pipeline.last?.id
    while isNetworkEnabled, pipeline.count < SyncEngine.pipelineDepth {
      let found: MutationBatch?
      do throws(PersistenceFailure) { found = try store.nextBatch(after: last) } catch {
        retry(.check, after: error)
        return
      }
      guard let next = found else {
        if pipeline.isEmpty { markIdle(.write) }
        break
      }
      pipeline.append(next)
      last = next.id
      if writing.isOpen, writing.hasHandshake { send(.write, .writes(next.writes)) }
    }
    if isNetworkEnabled, !pipeline.isEmpty, !writing.isStarted { start(.write) }
  }

  /// Called when the write stream has opened.
  mutating func writeStreamOpened(_ number: Int) {
    guard writing.opened(number) else { return }
    send(.write, .handshake)
  }

  /// Called when the server has responded to the handshake.
  mutating func writeHandshakeDone(_ number: Int) {
    guard writing.number == number, writing.isOpen else { return }
    writing.handshakeDone()
    for batch in pipeline { send(.write, .writes(batch.writes)) }
  }

  /// Called when the server has committed the first batch of the pipeline.
  mutating func writeAcknowledged(_ number: Int, results: [WriteResult], commitTime: ModelTimestamp) {
    guard writing.number == number, writing.isOpen, !pipeline.isEmpty else { return }
    writing.messageReceived()
    let batch = pipeline.removeFirst()
    do throws(PersistenceFailure) {
      try acknowledge(batch, results, commitTime)
      recoveryBackoff.reset()
      fillPipeline()
    } catch {
      retry(.acknowledge(batch, results, commitTime), after: error)
    }
  }

  /// Stores the server's acknowledgement, and then calls the completion.
  mutating func acknowledge(
    _ batch: MutationBatch, _ results: [WriteResult], _ commitTime: ModelTimestamp
  ) throws(PersistenceFailure) {
    let changes = try store.acknowledge(batch, results: results, commitTime: commitTime)
    finish(batch.id, nil)
    raise(changes, isAcknowledgement: true)
  }

  /// Removes a batch that the server rejected, and then calls the completion with the error.
  mutating func reject(_ batch: MutationBatch, _ error: FirestoreError) throws(PersistenceFailure) {
    let changes = try store.reject(batch)
    finish(batch.id, error)
    raise(changes)
  }

  /// Called when the write stream has ended.
  mutating func writeStreamClosed(_ number: Int, _ error: FirestoreError) {
    guard writing.number == number, writing.isStarted else { return }
    let hadHandshake = writing.hasHandshake
    failed(.write, error)
    if hadHandshake, error.code.isPermanentForWrites, let batch = pipeline.first {
      // The server rejected this batch permanently. It has not applied the batches that follow.
      pipeline.removeFirst()
      writing.skipBackoff()
      do throws(PersistenceFailure) {
        try reject(batch, error)
        fillPipeline()
      } catch let failure {
        retry(.reject(batch, error), after: failure)
      }
    }
    if isNetworkEnabled, !pipeline.isEmpty, !writing.isStarted { start(.write) }
  }
}

extension StatusCode {
  /// Whether a repetition of the request would fail again.
  var isPermanent: Bool {
    switch self {
    case .cancelled, .unknown, .deadlineExceeded, .resourceExhausted, .internalError, .unavailable,
      .unauthenticated:
      false
    default: rawValue <= StatusCode.unauthenticated.rawValue
    }
  }

  /// Whether a write that failed with this code is never sent again. A write that failed because of
  /// contention is sent again.
  var isPermanentForWrites: Bool { isPermanent && self != .aborted }
}
