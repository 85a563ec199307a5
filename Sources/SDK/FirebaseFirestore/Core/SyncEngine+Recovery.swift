// Recovers from failures of the cache. The network stays off while an event of the server could not be stored; the
// event is repeated with back-off until the cache accepts it, and the streams then open again.
//
// Invariant: failed operations are repeated in their order, and the network is off while one of them is outstanding.

import FirestoreModel

/// Why the engine does not use the network.
enum OfflineCause: Hashable, Sendable {
  /// The app disabled the network.
  case app
  /// The client has ended.
  case ended
  /// An operation of the cache is outstanding.
  case cache
}

/// An operation that the cache refused.
enum OutstandingOperation: Sendable {
  case acknowledge(MutationBatch, [WriteResult], ModelTimestamp)
  case reject(MutationBatch, FirestoreError)
  case become(UserID)
  /// Finds out whether the cache can be read again.
  case check
}

extension SyncEngine {
  var isNetworkEnabled: Bool { offlineCauses.isEmpty }

  /// Turns the network off until an operation succeeds, which is repeated from now on.
  mutating func retry(_ operation: OutstandingOperation, after failure: PersistenceFailure) {
    report(failure)
    outstanding.append(operation)
    goOffline(.cache)
    guard outstanding.count == 1 else { return }
    act(.startTimer(.recovery, seconds: recoveryBackoff.next()))
  }

  /// Stops the streams for a reason. The views become uncertain.
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
    recoveryBackoff.reset()
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
    case .become(let user): try switchQueue(to: user)
    case .check: _ = try store.lastRemoteVersion()
    }
  }

  /// Logs a failure. A damaged cache is empty now, so that every target starts again.
  mutating func report(_ failure: PersistenceFailure) {
    act(.warn("\(failure.error.message)"))
    guard failure.isDamage else { return }
    store.restartTargets()
    listenTargets = listenTargets.mapValues { $0.resuming(with: [], at: .epoch) }
    guard isNetworkEnabled, watch.isStarted else { return }
    stop(.watch)
    aggregator = nil
    if !listenTargets.isEmpty { startWatch() }
  }
}
