// The sync engine: a deterministic state machine that connects listeners, the cache and the two streams. Each
// method handles an event, and appends the resulting actions to `actions`.
//
//   listeners ── EventDispatcher ── views ── LocalStore
//                                     │
//                       watch stream ─┴─ write stream
//
// Invariant: views, cache and listeners change together. An event is applied to the cache, then to every
// view, and then delivered to the listeners. Only then is the next event handled.

import FirebaseCore
import FirestoreModel

struct SyncEngine {
  struct LimboResolution {
    let name: DocumentName
    /// Whether the server has sent the document, so that the client must not infer that it was deleted.
    var received = false
  }

  var store: LocalStore
  var events = EventDispatcher()
  /// The pending actions, oldest first.
  private(set) var actions: [EngineAction] = []

  // Views.
  private(set) var views: [ClientQuery: ClientQueryView] = [:]
  private(set) var targetOfQuery: [ClientQuery: TargetID] = [:]
  private(set) var queriesOfTarget: [TargetID: [ClientQuery]] = [:]
  private var viewOrder: [ClientQuery] = []

  // Limbo.
  let maxLimboResolutions: Int
  var limboReferences: [DocumentName: Set<TargetID>] = [:]
  var enqueuedLimbo: [DocumentName] = []
  var limboTargets: [DocumentName: TargetID] = [:]
  var limboResolutions: [TargetID: LimboResolution] = [:]
  var lastLimboTarget: TargetID = -1

  // Writes.
  var writeCompletions: [BatchID: CompletionID] = [:]
  var pendingWriteWaiters: [BatchID: [CompletionID]] = [:]
  var pipeline: [MutationBatch] = []

  // Network.
  /// The reasons why the network is off. `enableNetwork` removes the initial one.
  var offlineCauses: Set<OfflineCause> = [.app]
  /// The operations that failed in the cache, oldest first.
  var outstanding: [OutstandingOperation] = []
  var recoveryBackoff: Backoff
  /// The delays between attempts to copy the cache to a new file. Only a restart resets them, because each
  /// copy writes everything.
  var repairBackoff: Backoff
  var listenTargets: [TargetID: TargetData] = [:]
  var aggregator: WatchChangeAggregator?
  var watch: StreamState
  var writing: StreamState
  var online = OnlineStateTracker()
  var announcedOnlineState = OnlineState.unknown
  var hasWarnedOffline = false

  /// The cache size in bytes above which unused documents are evicted; nil if this engine does not evict.
  var cacheSize: Int?

  init(persistence: any Persistence, seed: UInt64, maxLimboResolutions: Int = 100) {
    store = LocalStore(persistence: persistence)
    self.maxLimboResolutions = maxLimboResolutions
    watch = StreamState(.watch, seed: seed)
    writing = StreamState(.write, seed: seed &+ 1)
    recoveryBackoff = .firestore(seed: seed &+ 2)
    repairBackoff = .firestore(seed: seed &+ 3)
  }

  mutating func act(_ action: EngineAction) { actions.append(action) }

  /// Removes and returns the pending actions.
  mutating func takeActions() -> [EngineAction] {
    defer { actions = [] }
    return actions
  }

  mutating func deliver(_ outputs: [EventDispatcher.Output]) {
    for output in outputs {
      switch output {
      case .snapshot(let id, let snapshot): act(.snapshot(id, snapshot))
      case .failure(let id, let error): act(.failure(id, error))
      case .inSync(let id): act(.inSync(id))
      }
    }
  }

  // MARK: Listening

  mutating func listen(_ id: ListenerID, to query: ClientQuery, options: ListenerOptions) {
    let listener = QueryListener(id: id, query: query, options: options)
    do throws(PersistenceFailure) {
      try listen(listener)
    } catch {
      report(error)
      act(.failure(id, error.error))
    }
  }

  private mutating func listen(_ listener: QueryListener) throws(PersistenceFailure) {
    let query = listener.query
    let before = events.interest(in: query)
    var snapshot: ViewSnapshot?
    if before == .none { snapshot = views[query]?.initialSnapshot }
    var start: TargetData?
    if before == .none {
      let data = try store.allocate(query.target)
      if views[query] == nil { snapshot = try addView(of: query, target: data) }
      if !listener.options.cacheOnly { start = data }
    } else if before == .cache, !listener.options.cacheOnly {
      start = try store.allocate(query.target)
    }
    deliver(events.add(listener, snapshot: snapshot))
    if let start { listenRemotely(start) }
  }

  private mutating func addView(
    of query: ClientQuery, target: TargetData
  ) throws(PersistenceFailure) -> ViewSnapshot? {
    let result = try store.execute(query, usePreviousResults: true)
    var view = ClientQueryView(query: query, remoteKeys: result.remoteKeys)
    let pending = view.compute(Dictionary(result.documents.map { ($0.name, $0) }) { first, _ in first })
    // Another query can have the same target, because a limit to the last documents is sent as a limit to the
    // first ones in reversed order. Its view may already be in sync.
    let isCurrent = (queriesOfTarget[target.id] ?? []).contains { views[$0]?.isCurrent == true }
    let change = TargetChange(resumeToken: target.resumeToken, isCurrent: isCurrent)
    let applied = view.apply(pending, targetChange: change)
    views[query] = view
    viewOrder.append(query)
    targetOfQuery[query] = target.id
    queriesOfTarget[target.id, default: []].append(query)
    trackLimbo(applied.limbo, of: target.id)
    return applied.snapshot
  }

  mutating func unlisten(_ id: ListenerID) {
    let query = events.remove(id)
    guard let query, let target = targetOfQuery[query] else { return }
    switch events.interest(in: query) {
    case .server: return
    case .cache:
      if (queriesOfTarget[target] ?? []).count == 1 { unlistenRemotely(target) }
    case .none:
      let others = (queriesOfTarget[target] ?? []).filter { $0 != query }
      if others.isEmpty {
        release(target)
        unlistenRemotely(target)
        removeTarget(target, error: nil)
      } else {
        queriesOfTarget[target] = others
        removeView(query)
      }
    }
  }

  /// Ends the use of a target. If the cache cannot store that, the target stays marked as used.
  private mutating func release(_ target: TargetID) {
    do throws(PersistenceFailure) { try store.release(target) } catch { report(error) }
  }

  private mutating func removeView(_ query: ClientQuery) {
    views[query] = nil
    targetOfQuery[query] = nil
    viewOrder.removeAll { $0 == query }
  }

  /// Removes the views of a target. If there is an error, their listeners receive it.
  private mutating func removeTarget(_ target: TargetID, error: FirestoreError?) {
    for query in queriesOfTarget.removeValue(forKey: target) ?? [] {
      removeView(query)
      if let error { deliver(events.fail(query, error)) }
    }
    dropLimboReferences(of: target)
  }

  /// Called when the server has rejected a target.
  mutating func rejectListen(_ target: TargetID, _ error: FirestoreError) throws(PersistenceFailure) {
    if let resolution = limboResolutions[target] {
      // A document that the user may not read is treated as missing for this user.
      var event = RemoteEvent(version: .epoch)
      event.documents[resolution.name] = CachedDocument(missing: resolution.name, version: .epoch)
      event.resolvedLimbo = [resolution.name]
      // A resolution that could not be stored is repeated with the other targets when the streams open again.
      try apply(event)
      limboTargets[resolution.name] = nil
      limboResolutions[target] = nil
      startLimboResolutions()
      return
    }
    release(target)
    removeTarget(target, error: error)
  }

  // MARK: Changes

  /// Applies a snapshot of the server.
  mutating func apply(_ event: RemoteEvent) throws(PersistenceFailure) {
    for (target, change) in event.targetChanges {
      guard limboResolutions[target] != nil else { continue }
      if !change.added.isEmpty {
        limboResolutions[target]?.received = true
      } else if !change.removed.isEmpty {
        limboResolutions[target]?.received = false
      }
    }
    store.limboPins = Set(limboTargets.keys).subtracting(event.resolvedLimbo)
    raise(try store.apply(event), event: event)
  }

  /// Applies changed documents to every view and notifies the listeners.
  ///
  /// - Parameters:
  ///   - event: the snapshot of the server that changed the documents; nil for other changes.
  ///   - isAcknowledgement: whether the documents changed because the server acknowledged writes to them.
  mutating func raise(
    _ changes: DocumentChanges, event: RemoteEvent? = nil, isAcknowledgement: Bool = false
  ) {
    var snapshots: [ViewSnapshot] = []
    for query in viewOrder {
      // The view is removed from the dictionary first, so that its sets are not copied when they change.
      guard let target = targetOfQuery[query], var view = views.removeValue(forKey: query) else { continue }
      var pending = view.compute(changes, isAcknowledgement: isAcknowledgement)
      if pending.needsRefill, let documents = refill(query) {
        pending = view.compute(
          Dictionary(documents.map { ($0.name, $0) }) { first, _ in first }, after: pending,
          isAcknowledgement: isAcknowledgement)
      }
      let applied = view.apply(
        pending, targetChange: event?.targetChanges[target],
        isPendingReset: event?.targetMismatches[target] != nil, at: event?.version)
      views[query] = view
      trackLimbo(applied.limbo, of: target)
      if let snapshot = applied.snapshot { snapshots.append(snapshot) }
    }
    deliver(events.receive(snapshots))
    for snapshot in snapshots {
      guard let target = targetOfQuery[snapshot.query] else { continue }
      do throws(PersistenceFailure) {
        try store.recordView(
          target: target, shows: snapshot.changes.filter { $0.kind == .added }.map(\.document.name),
          hides: snapshot.changes.filter { $0.kind == .removed }.map(\.document.name),
          fromCache: snapshot.fromCache)
      } catch {
        report(error)
      }
    }
  }

  /// Runs a query again because a document left its limited result. Returns nil if the cache cannot be read;
  /// the view then has fewer documents than the limit.
  private mutating func refill(_ query: ClientQuery) -> [CachedDocument]? {
    do throws(PersistenceFailure) {
      return try store.execute(query, usePreviousResults: false).documents
    } catch {
      report(error)
      return nil
    }
  }

  /// Notifies views and listeners of a change of the online state.
  mutating func announceOnlineState() {
    let state = online.state
    guard state != announcedOnlineState else { return }
    announcedOnlineState = state
    var snapshots: [ViewSnapshot] = []
    for query in viewOrder {
      if let snapshot = views[query]?.applyOnlineState(state) { snapshots.append(snapshot) }
    }
    deliver(events.receive(state))
    deliver(events.receive(snapshots))
  }

  /// The documents that belong to a target on the server.
  func remoteKeys(of target: TargetID) -> Set<DocumentName> {
    if let resolution = limboResolutions[target] {
      return resolution.received ? [resolution.name] : []
    }
    let queries = queriesOfTarget[target] ?? []
    // This method is called for every document that arrives. For a target with one query, the set is not
    // copied.
    if queries.count == 1, let query = queries.first { return views[query]?.remoteKeys ?? [] }
    var keys: Set<DocumentName> = []
    for query in queries { keys.formUnion(views[query]?.remoteKeys ?? []) }
    return keys
  }

  // MARK: Other requests of the app

  mutating func addInSyncListener(_ id: ListenerID) { deliver(events.addInSync(id)) }
  mutating func removeInSyncListener(_ id: ListenerID) { events.removeInSync(id) }

  /// Called when another user has signed in, or the user has signed out.
  mutating func switchUser(to user: UserID) {
    closeStreams()
    pipeline = []
    if isNetworkEnabled { setOnline(.unknown) }
    if outstanding.isEmpty {
      do throws(PersistenceFailure) {
        try switchQueue(to: user)
        if isNetworkEnabled { openStreams() }
        return
      } catch {
        report(error)
      }
    }
    // The streams stay closed until the queue of the new user is in use. Operations that failed earlier come
    // first.
    offlineCauses.insert(.cache)
    outstanding.append(.switchUser(user))
    if outstanding.count == 1 { act(.startTimer(.recovery, seconds: recoveryBackoff.next())) }
  }

  mutating func switchQueue(to user: UserID) throws(PersistenceFailure) {
    let changes = try store.switchUser(to: user)
    for waiters in pendingWriteWaiters.sorted(by: { $0.key < $1.key }) {
      for waiter in waiters.value {
        let reason = "'waitForPendingWrites' promise is rejected due to a user change."
        act(.completed(waiter, FirestoreError(.cancelled, reason)))
      }
    }
    pendingWriteWaiters = [:]
    raise(changes)
  }
}
