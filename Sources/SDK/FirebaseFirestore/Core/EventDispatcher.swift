// The event dispatcher: passes snapshots of views to their listeners.
//
// Invariant: a listener receives no events after it was removed or failed.

import FirestoreModel

struct EventDispatcher {
  /// An event for a listener.
  enum Output: Equatable {
    case snapshot(ListenerID, ViewSnapshot)
    case failure(ListenerID, FirestoreError)
    case inSync(ListenerID)
  }

  /// The source that the listeners of a query need. The sync engine starts or stops a view or a target when
  /// it changes.
  enum Interest { case none, cache, server }

  private struct QueryInfo {
    var listeners: [QueryListener] = []
    var snapshot: ViewSnapshot?

    var interest: Interest {
      if listeners.isEmpty { return .none }
      return listeners.contains { !$0.options.cacheOnly } ? .server : .cache
    }
  }

  private var queries: [ClientQuery: QueryInfo] = [:]
  private var order: [ClientQuery] = []
  private var queryOfListener: [ListenerID: ClientQuery] = [:]
  private var inSyncListeners: [ListenerID] = []
  private var onlineState = OnlineState.unknown

  func interest(in query: ClientQuery) -> Interest { queries[query]?.interest ?? .none }

  /// Adds a listener. `snapshot` is the current snapshot of its view, if the engine has just computed it.
  mutating func add(_ listener: QueryListener, snapshot: ViewSnapshot?) -> [Output] {
    var listener = listener
    let query = listener.query
    queryOfListener[listener.id] = query
    if queries[query] == nil { order.append(query) }
    var info = queries[query] ?? QueryInfo()
    if let snapshot { info.snapshot = snapshot }
    var outputs: [Output] = []
    _ = listener.receive(onlineState)
    if let current = info.snapshot, let raised = listener.receive(current) {
      outputs.append(.snapshot(listener.id, raised))
    }
    info.listeners.append(listener)
    queries[query] = info
    return outputs.isEmpty ? [] : outputs + inSync
  }

  /// Removes a listener and returns its query; nil if it was removed before.
  mutating func remove(_ id: ListenerID) -> ClientQuery? {
    guard let query = queryOfListener.removeValue(forKey: id) else { return nil }
    queries[query]?.listeners.removeAll { $0.id == id }
    if queries[query]?.listeners.isEmpty == true { removeQuery(query) }
    return query
  }

  private mutating func removeQuery(_ query: ClientQuery) {
    queries[query] = nil
    order.removeAll { $0 == query }
  }

  mutating func receive(_ snapshots: [ViewSnapshot]) -> [Output] {
    var outputs: [Output] = []
    for snapshot in snapshots {
      guard var info = queries.removeValue(forKey: snapshot.query) else { continue }
      for index in info.listeners.indices {
        if let raised = info.listeners[index].receive(snapshot) {
          outputs.append(.snapshot(info.listeners[index].id, raised))
        }
      }
      info.snapshot = snapshot
      queries[snapshot.query] = info
    }
    return outputs.isEmpty ? [] : outputs + inSync
  }

  mutating func fail(_ query: ClientQuery, _ error: FirestoreError) -> [Output] {
    let listeners = queries[query]?.listeners ?? []
    removeQuery(query)
    for listener in listeners { queryOfListener[listener.id] = nil }
    return listeners.map { .failure($0.id, error) }
  }

  mutating func receive(_ state: OnlineState) -> [Output] {
    onlineState = state
    var outputs: [Output] = []
    for query in order {
      guard var info = queries.removeValue(forKey: query) else { continue }
      for index in info.listeners.indices {
        if let raised = info.listeners[index].receive(state) {
          outputs.append(.snapshot(info.listeners[index].id, raised))
        }
      }
      queries[query] = info
    }
    return outputs.isEmpty ? [] : outputs + inSync
  }

  /// Removes all listeners and returns them, so that they can be notified that the client ends.
  mutating func removeAll() -> [ListenerID] {
    let all = Array(queryOfListener.keys) + inSyncListeners
    self = EventDispatcher()
    return all
  }

  // MARK: Snapshots-in-sync listeners

  mutating func addInSync(_ id: ListenerID) -> [Output] {
    inSyncListeners.append(id)
    return [.inSync(id)]
  }

  mutating func removeInSync(_ id: ListenerID) { inSyncListeners.removeAll { $0 == id } }

  private var inSync: [Output] { inSyncListeners.map(Output.inSync) }
}
