// The network functions of the sync engine: its two streams, the online state and the timers.

import FirestoreModel

extension SyncEngine {
  static let idleSeconds = 60.0

  // MARK: Switching the network

  mutating func enableNetwork() {
    offlineCauses.remove(.app)
    if isNetworkEnabled { openStreams() }
  }

  mutating func disableNetwork() { goOffline(.app) }

  mutating func openStreams() {
    if !listenTargets.isEmpty {
      if !watch.isStarted { startWatch() }
    } else {
      setOnline(.unknown)
    }
    fillPipeline()
  }

  mutating func closeStreams() {
    stop(.write)
    stop(.watch)
    aggregator = nil
  }

  /// Stops the streams and timers, and removes and returns the listeners. They receive no more events.
  mutating func shutDown() -> [ListenerID] {
    offlineCauses.insert(.ended)
    closeStreams()
    if online.set(.unknown) == .stop { act(.stopTimer(.onlineState)) }
    for waiter in pendingWriteWaiters.values.joined() {
      act(.completed(waiter, FirestoreError(.cancelled, "The client has been terminated.")))
    }
    pendingWriteWaiters = [:]
    return events.removeAll()
  }

  mutating func setOnline(_ state: OnlineState) {
    if state == .online { hasWarnedOffline = false }
    if online.set(state) == .stop { act(.stopTimer(.onlineState)) }
    announceOnlineState()
  }

  // MARK: Streams

  private mutating func change<T>(_ kind: StreamKind, _ body: (inout StreamState) -> T) -> T {
    switch kind {
    case .watch: body(&watch)
    case .write: body(&writing)
    }
  }

  private mutating func perform(_ actions: [EngineAction]) {
    for action in actions { act(action) }
  }

  mutating func start(_ kind: StreamKind) { perform(change(kind) { $0.start() }) }

  mutating func stop(_ kind: StreamKind) { perform(change(kind) { $0.stop() }) }

  mutating func failed(_ kind: StreamKind, _ error: FirestoreError) {
    perform(change(kind) { $0.failed(error) })
  }

  mutating func markIdle(_ kind: StreamKind) { perform(change(kind) { $0.markIdle() }) }

  mutating func send(_ kind: StreamKind, _ request: StreamRequest) {
    perform(change(kind) { $0.cancelIdle() })
    act(.send(kind, request))
  }

  // MARK: Timers

  static let firstCollectionDelay = 60.0
  static let collectionInterval = 300.0
  /// The share of the unused documents that each collection evicts.
  static let evictedShare = 0.1

  /// Starts periodic garbage collections, which keep the cache close to a maximum size in bytes.
  mutating func startGarbageCollection(above size: Int) {
    cacheSize = size
    act(.startTimer(.garbage, seconds: SyncEngine.firstCollectionDelay))
  }

  mutating func timerFired(_ timer: EngineTimer) {
    switch timer {
    case .idle(let kind):
      perform(change(kind) { $0.idleTimeout() })
    case .backoff(let kind):
      perform(change(kind) { $0.backoffDone() })
    case .garbage:
      guard let cacheSize else { return }
      do throws(PersistenceFailure) {
        try store.collectGarbage(above: cacheSize, share: SyncEngine.evictedShare)
      } catch {
        report(error)
      }
      act(.startTimer(.garbage, seconds: SyncEngine.collectionInterval))
    case .recovery: repeatOutstanding()
    case .lostWrites: removeLostWritesFromViews()
    case .repair: repairCache()
    case .onlineState:
      online.timedOut()
      if online.state == .offline, !hasWarnedOffline {
        hasWarnedOffline = true
        act(
          .warn(
            "Could not reach Cloud Firestore backend within \(Int(OnlineStateTracker.timeoutSeconds))"
              + " seconds. The client will operate in offline mode until it is able to connect."))
      }
      announceOnlineState()
    }
  }
}
