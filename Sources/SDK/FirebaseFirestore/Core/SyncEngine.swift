// The sync engine: a deterministic state machine between listeners, the cache and the two streams. Each method is an
// event; the resulting actions are in `actions`.
//
//   listeners ── EventDispatcher ── views ── LocalStore
//                                     │
//                       watch stream ─┴─ write stream
//
// Invariant: views, cache and listeners change together. An event is applied to the cache, then to every view, then
// delivered to the listeners, before the next event is handled.

import FirestoreModel

struct SyncEngine {
  struct LimboResolution {
    let name: DocumentName
    /// Whether the server has shown the document, so that it must not be inferred as deleted.
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
  var isNetworkEnabled = false
  var listenTargets: [TargetID: TargetData] = [:]
  var aggregator: WatchChangeAggregator?
  var watch: StreamState
  var writing: StreamState
  var online = OnlineStateTracker()
  var announcedOnlineState = OnlineState.unknown
  var hasWarnedOffline = false

  /// The cache size above which unused documents are evicted, in bytes; nil if this engine does not evict.
  var cacheSize: Int?

  init(persistence: any Persistence, seed: UInt64, maxLimboResolutions: Int = 100) {
    store = LocalStore(persistence: persistence)
    self.maxLimboResolutions = maxLimboResolutions
    watch = StreamState(.watch, seed: seed)
    writing = StreamState(.write, seed: seed &+ 1)
  }

  mutating func act(_ action: EngineAction) { actions.append(action) }

  /// Removes and returns the pending actions.
  mutating func takeActions() -> [EngineAction] {
    defer { actions = [] }
    return actions
  }

  mutating func tell(_ outputs: [EventDispatcher.Output]) {
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
    let before = events.interest(in: query)
    var snapshot: ViewSnapshot?
    if views[query] != nil {
      snapshot = before == .none ? views[query]?.initialSnapshot : nil
    }
    var start: TargetData?
    if before == .none {
      let data = store.allocate(query.target)
      if views[query] == nil { snapshot = addView(of: query, target: data) }
      if !options.cacheOnly { start = data }
    } else if before == .cache, !options.cacheOnly {
      start = store.allocate(query.target)
    }
    tell(events.add(listener, snapshot: snapshot))
    if let start { listenRemotely(start) }
  }

  private mutating func addView(of query: ClientQuery, target: TargetData) -> ViewSnapshot? {
    let result = store.execute(query, usePreviousResults: true)
    var view = ClientQueryView(query: query, remoteKeys: result.remoteKeys)
    let pending = view.compute(Dictionary(result.documents.map { ($0.name, $0) }) { first, _ in first })
    // Another query for the same target (a limit counted from the other side) may be in sync.
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
        store.release(target)
        unlistenRemotely(target)
        removeTarget(target, error: nil)
      } else {
        queriesOfTarget[target] = others
        removeView(query)
      }
    }
  }

  private mutating func removeView(_ query: ClientQuery) {
    views[query] = nil
    targetOfQuery[query] = nil
    viewOrder.removeAll { $0 == query }
  }

  /// Removes a target's views. With an error, their listeners receive it.
  private mutating func removeTarget(_ target: TargetID, error: FirestoreError?) {
    for query in queriesOfTarget.removeValue(forKey: target) ?? [] {
      removeView(query)
      if let error { tell(events.fail(query, error)) }
    }
    dropLimboReferences(of: target)
  }

  /// The server refuses a target.
  mutating func rejectListen(_ target: TargetID, _ error: FirestoreError) {
    if let resolution = limboResolutions[target] {
      // Not allowed to see it means: it does not exist for this user.
      var event = RemoteEvent(version: .epoch)
      event.documents[resolution.name] = CachedDocument(missing: resolution.name, version: .epoch)
      event.resolvedLimbo = [resolution.name]
      apply(event)
      limboTargets[resolution.name] = nil
      limboResolutions[target] = nil
      startLimboResolutions()
      return
    }
    store.release(target)
    removeTarget(target, error: error)
  }

  // MARK: Changes

  /// Applies a snapshot of the server.
  mutating func apply(_ event: RemoteEvent) {
    for (target, change) in event.targetChanges {
      guard limboResolutions[target] != nil else { continue }
      if !change.added.isEmpty {
        limboResolutions[target]?.received = true
      } else if !change.removed.isEmpty {
        limboResolutions[target]?.received = false
      }
    }
    store.limboPins = Set(limboTargets.keys).subtracting(event.resolvedLimbo)
    let changes = store.apply(event)
    raise(changes, event: event)
  }

  /// Applies changed documents to every view and notifies the listeners.
  mutating func raise(_ changes: DocumentChanges, event: RemoteEvent? = nil) {
    var snapshots: [ViewSnapshot] = []
    for query in viewOrder {
      guard var view = views[query], let target = targetOfQuery[query] else { continue }
      var pending = view.compute(changes)
      if pending.needsRefill {
        let again = store.execute(query, usePreviousResults: false)
        pending = view.compute(
          Dictionary(again.documents.map { ($0.name, $0) }) { first, _ in first }, after: pending)
      }
      let applied = view.apply(
        pending, targetChange: event?.targetChanges[target],
        isPendingReset: event?.targetMismatches[target] != nil)
      views[query] = view
      trackLimbo(applied.limbo, of: target)
      if let snapshot = applied.snapshot { snapshots.append(snapshot) }
    }
    tell(events.receive(snapshots))
    for snapshot in snapshots {
      guard let target = targetOfQuery[snapshot.query] else { continue }
      store.note(
        target: target, shows: snapshot.changes.filter { $0.kind == .added }.map(\.document.name),
        hides: snapshot.changes.filter { $0.kind == .removed }.map(\.document.name),
        fromCache: snapshot.fromCache)
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
    tell(events.receive(state))
    tell(events.receive(snapshots))
  }

  /// The documents that the server counts to a target.
  func remoteKeys(of target: TargetID) -> Set<DocumentName> {
    if let resolution = limboResolutions[target] {
      return resolution.received ? [resolution.name] : []
    }
    let queries = queriesOfTarget[target] ?? []
    // Asked for with every document that arrives, so that the usual case must not copy the set.
    if queries.count == 1, let query = queries.first { return views[query]?.synced ?? [] }
    var keys: Set<DocumentName> = []
    for query in queries { keys.formUnion(views[query]?.synced ?? []) }
    return keys
  }

  // MARK: The app's other wishes

  mutating func addInSyncListener(_ id: ListenerID) { tell(events.addInSync(id)) }
  mutating func removeInSyncListener(_ id: ListenerID) { events.removeInSync(id) }

  /// Another user signed in or out.
  mutating func become(user: UserID) {
    closeStreams()
    pipeline = []
    if isNetworkEnabled { setOnline(.unknown) }
    let switched = store.become(user: user)
    for waiters in pendingWriteWaiters.sorted(by: { $0.key < $1.key }) {
      for waiter in waiters.value {
        let reason = "'waitForPendingWrites' promise is rejected due to a user change."
        act(.completed(waiter, FirestoreError(.cancelled, reason)))
      }
    }
    pendingWriteWaiters = [:]
    raise(switched.changes)
    if isNetworkEnabled { openStreams() }
  }
}
