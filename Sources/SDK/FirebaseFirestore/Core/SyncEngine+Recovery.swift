// Recovers from failures of the cache. If the cache cannot store an event of the server, the engine closes its
// streams and repeats the event with back-off until the cache stores it. Then it opens the streams again.
//
// Invariant: failed operations are repeated in their order. The network is off while a failed operation is
// outstanding.

import FirestoreModel

/// A reason why the engine does not use the network.
enum OfflineCause: Hashable, Sendable {
  /// The app disabled the network.
  case app
  /// The client has ended.
  case ended
  /// An operation of the cache is outstanding.
  case cache
}

/// An operation that failed in the cache.
enum OutstandingOperation: Sendable {
  case acknowledge(MutationBatch, [WriteResult], ModelTimestamp)
  case reject(MutationBatch, FirestoreError)
  case switchUser(UserID)
  /// Tests whether the cache can be read again.
  case check
}

extension SyncEngine {
  var isNetworkEnabled: Bool { offlineCauses.isEmpty }

  /// Disables the network, and repeats an operation until it succeeds.
  mutating func retry(_ operation: OutstandingOperation, after failure: PersistenceFailure) {
    // The operation is appended before `report` runs. For a damaged cache `report` fails all queued writes
    // except those with an outstanding operation.
    outstanding.append(operation)
    report(failure)
    goOffline(.cache)
    guard outstanding.count == 1 else { return }
    act(.startTimer(.recovery, seconds: recoveryBackoff.next()))
  }

  /// Closes the streams for a reason. The views are then not in sync.
  mutating func goOffline(_ cause: OfflineCause) {
    offlineCauses.insert(cause)
    closeStreams()
    pipeline = []
    setOnline(.offline)
  }

  /// Repeats the oldest outstanding operation.
  mutating func repeatOutstanding() {
    guard let operation = outstanding.first else { return }
    do throws(PersistenceFailure) {
      try perform(operation)
    } catch {
      report(error)
      act(.startTimer(.recovery, seconds: recoveryBackoff.next()))
      return
    }
    outstanding.removeFirst()
    // A successful check does not reset the back-off, because the next operation may fail again.
    if case .check = operation {} else { recoveryBackoff.reset() }
    if !outstanding.isEmpty {
      act(.startTimer(.recovery, seconds: 0))
      return
    }
    guard offlineCauses.remove(.cache) != nil, isNetworkEnabled else { return }
    openStreams()
  }

  private mutating func perform(_ operation: OutstandingOperation) throws(PersistenceFailure) {
    switch operation {
    case .acknowledge(let batch, let results, let commitTime):
      try acknowledge(batch, results, commitTime)
    case .reject(let batch, let error): try reject(batch, error)
    case .switchUser(let user): try switchQueue(to: user)
    case .check:
      _ = try store.lastRemoteVersion()
      _ = try store.nextBatch(after: nil)
    }
  }

  /// Called when a sync of the cache has failed. Schedules a copy of the cache to a new file.
  mutating func cacheSyncFailed() { act(.startTimer(.repair, seconds: repairBackoff.next())) }

  /// Copies the cache to a new file after a failed sync. If that fails, it schedules another attempt.
  mutating func repairCache() {
    do throws(PersistenceFailure) {
      try store.persistence.repair()
    } catch {
      report(error)
      if !error.isDamage { cacheSyncFailed() }
    }
  }

  /// Logs a failure. A damaged cache is now empty: every target starts again, and the queued writes are lost.
  mutating func report(_ failure: PersistenceFailure) {
    act(.warn("\(failure.error.message)"))
    guard failure.isDamage else { return }
    failLostWrites(failure.error)
    store.restartTargets()
    listenTargets = listenTargets.mapValues { $0.resuming(with: [], at: .epoch) }
    guard isNetworkEnabled, watch.isStarted else { return }
    stop(.watch)
    aggregator = nil
    if !listenTargets.isEmpty { startWatch() }
  }

  /// Fails the completions of queued writes that were lost with a damaged cache. The server may have
  /// committed batches in flight.
  private mutating func failLostWrites(_ error: FirestoreError) {
    var outstandingBatches: Set<BatchID> = []
    for operation in outstanding {
      switch operation {
      case .acknowledge(let batch, _, _), .reject(let batch, _): outstandingBatches.insert(batch.id)
      case .switchUser, .check: break
      }
    }
    for (batch, completion) in writeCompletions.sorted(by: { $0.key < $1.key })
    where !outstandingBatches.contains(batch) {
      writeCompletions[batch] = nil
      act(.completed(completion, error))
    }
    for (batch, waiters) in pendingWriteWaiters.sorted(by: { $0.key < $1.key })
    where !outstandingBatches.contains(batch) {
      pendingWriteWaiters[batch] = nil
      for waiter in waiters { act(.completed(waiter, error)) }
    }
    stop(.write)
    pipeline = []
    // Deferred, because a failure may be reported while the views are being changed.
    act(.startTimer(.lostWrites, seconds: 0))
  }

  /// Removes lost writes from the views: their documents have no local changes any more.
  mutating func removeLostWritesFromViews() {
    var changes: DocumentChanges = [:]
    do throws(PersistenceFailure) {
      for name in Set(views.values.flatMap(\.pendingDocuments)) { changes[name] = try store.read(name) }
    } catch {
      // If this fails because of damage, the report starts the timer again.
      report(error)
      if !error.isDamage { act(.startTimer(.lostWrites, seconds: recoveryBackoff.next())) }
      return
    }
    raise(changes)
  }
}
