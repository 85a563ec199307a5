// Handles the watch stream of the sync engine and its targets.
//
// Invariant: `listenTargets` contains the targets that the server should watch. When a stream opens, the
// engine sends all of them with their last resume tokens.

import FirestoreModel

extension SyncEngine {
  mutating func listenRemotely(_ data: TargetData) {
    guard listenTargets[data.id] == nil else { return }
    listenTargets[data.id] = data
    if isNetworkEnabled, !watch.isStarted {
      startWatch()
    } else if watch.isOpen {
      sendWatch(data)
    }
  }

  mutating func unlistenRemotely(_ id: TargetID) {
    guard listenTargets.removeValue(forKey: id) != nil else { return }
    if watch.isOpen { sendUnwatch(id) }
    guard listenTargets.isEmpty else { return }
    if watch.isOpen {
      markIdle(.watch)
    } else if isNetworkEnabled {
      // Without targets the engine would never notice that the server is reachable again.
      setOnline(.unknown)
    }
  }

  mutating func startWatch() {
    aggregator = WatchChangeAggregator()
    start(.watch)
    if online.streamStarted() == .start {
      act(.startTimer(.onlineState, seconds: OnlineStateTracker.timeoutSeconds))
    }
    announceOnlineState()
  }

  private mutating func sendWatch(_ data: TargetData) {
    aggregator?.recordRequest(data.id)
    var data = data
    if !data.resumeToken.isEmpty || data.snapshotVersion > .epoch {
      data.expectedCount = remoteKeys(of: data.id).count
    }
    send(.watch, .addTarget(data))
  }

  private mutating func sendUnwatch(_ id: TargetID) {
    aggregator?.recordRequest(id)
    send(.watch, .removeTarget(id))
  }

  /// Called when the watch stream has opened.
  mutating func watchStreamOpened(_ number: Int) {
    guard watch.opened(number) else { return }
    for data in listenTargets.values.sorted(by: { $0.id < $1.id }) { sendWatch(data) }
  }

  /// Called when the server has sent a message on the watch stream.
  mutating func watchReceived(_ number: Int, _ change: WatchChange) {
    guard watch.number == number, watch.isOpen else { return }
    watch.messageReceived()
    setOnline(.online)
    if case .target(let change) = change, change.kind == .remove, let error = change.cause {
      do throws(PersistenceFailure) {
        for id in change.targets where listenTargets[id] != nil {
          try rejectListen(id, error)
          listenTargets[id] = nil
          aggregator?.remove(id)
        }
      } catch {
        retry(.check, after: error)
      }
      return
    }
    guard var aggregator = aggregator.take() else { return }
    let targets = listenTargets
    aggregator.handle(change, targets: targets) { remoteKeys(of: $0) }
    defer { if watch.isOpen { self.aggregator = self.aggregator ?? aggregator } }
    guard let version = change.snapshotVersion, version != .epoch else { return }
    do throws(PersistenceFailure) {
      guard version >= (try store.lastRemoteVersion()) else { return }
      let event = aggregator.takeEvent(at: version, targets: targets) { remoteKeys(of: $0) }
      self.aggregator = aggregator
      try raiseWatchSnapshot(event)
      recoveryBackoff.reset()
    } catch {
      retry(.check, after: error)
    }
  }

  private mutating func raiseWatchSnapshot(_ event: RemoteEvent) throws(PersistenceFailure) {
    let before = listenTargets
    for (id, change) in event.targetChanges where !change.resumeToken.isEmpty {
      listenTargets[id] = listenTargets[id]?.resuming(with: change.resumeToken, at: event.version)
    }
    for (id, purpose) in event.targetMismatches.sorted(by: { $0.key < $1.key }) {
      guard let data = listenTargets[id] else { continue }
      // The contents after the resume token were wrong. Listens again without a token, with the same target
      // ID.
      listenTargets[id] = data.resuming(with: [], at: data.snapshotVersion)
      sendUnwatch(id)
      sendWatch(TargetData(target: data.target, id: id, purpose: purpose, sequence: data.sequence))
    }
    do throws(PersistenceFailure) {
      try apply(event)
    } catch {
      // With the earlier resume tokens the server sends the changes again that could not be stored.
      listenTargets = before
      throw error
    }
  }

  /// Called when the watch stream has ended.
  mutating func watchStreamClosed(_ number: Int, _ error: FirestoreError) {
    guard watch.number == number, watch.isStarted else { return }
    failed(.watch, error)
    aggregator = nil
    if isNetworkEnabled, !listenTargets.isEmpty {
      let change = online.streamFailed()
      if change == .stop { act(.stopTimer(.onlineState)) }
      warnIfOffline(error)
      announceOnlineState()
      startWatch()
    } else {
      setOnline(.unknown)
    }
  }

  private mutating func warnIfOffline(_ error: FirestoreError) {
    guard online.state == .offline, !hasWarnedOffline else { return }
    hasWarnedOffline = true
    act(
      .warn(
        "Could not reach Cloud Firestore backend. Most recent error: \(error). The client will operate"
          + " in offline mode until it is able to connect to the backend."))
  }
}
