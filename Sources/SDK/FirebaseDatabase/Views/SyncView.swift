// The sync view of one query at one location: its caches and its observers.
//
// Invariant: the events that an observer has received transform an empty value to the event cache. The order
// of the events of one operation is removed, added, moved, changed, value.

import RealtimeModel

/// The state of one query at one location.
final class SyncView {
  let path: Path
  let query: QuerySpec
  private(set) var cache: ViewCache
  private(set) var registrations: [ObserverRegistration] = []
  private let filter: ViewFilter
  private let storage: any ClientStorage
  private var order: SiblingOrder

  /// Makes a view from the cached data at its location.
  init(
    path: Path, query: QuerySpec, writes: WriteTreeReference, storage: any ClientStorage, server: CacheNode
  ) {
    self.path = path
    self.query = query
    self.storage = storage
    filter = ViewFilter(query: query)
    order = SiblingOrder(ordering: query.ordering)
    let isWindow = server.isComplete && server.isFiltered
    // Only children inside the window are complete. Writes inside other children cannot be applied, because
    // their values are unknown.
    let complete =
      isWindow
      ? writes.completeChildren(over: server.node)
      : writes.completeNode(over: server.isComplete ? server.node : nil)
    var ignored = ChangeAccumulator()
    let event = complete ?? writes.completeChildren(over: server.node)
    cache = ViewCache(
      event: CacheNode(
        node: filter.replacing(.empty, with: event, &ignored), isComplete: complete != nil,
        isFiltered: filter.filtersNodes),
      server: server)
  }

  /// Stores the keys of the children in the window of a filtered query.
  func storeWindow() {
    if !query.showsAll { storage.setWindow(cache.event.node.childKeys, of: query, at: path) }
  }

  /// The server's complete value at a path below the view, if the view knows it.
  func completeServerNode(at relative: Path) -> Node? {
    guard let node = cache.completeServerNode else { return nil }
    // A window contains complete children, so everything below a child in the window is known.
    if query.showsAll { return node.descendant(relative) }
    guard let key = relative.first, !node.child(key).isEmpty else { return nil }
    return node.descendant(relative)
  }

  // MARK: Observers

  /// Adds an observer.
  ///
  /// - Returns: its initial events.
  func add(_ registration: ObserverRegistration) -> [DataEvent] {
    registrations.append(registration)
    var changes: [(key: ChildKey, change: ChildChange)] = []
    if !registration.interest.isDisjoint(with: .childAdded) {
      cache.event.node.forEachChild { key, node in
        changes.append((key, .added(node)))
        return true
      }
    }
    return events(for: changes, showsValue: cache.event.isComplete, to: [registration])
  }

  /// Removes an observer, or all of them. With an error, they receive a cancel event.
  func remove(_ registration: ObserverRegistration?, error: RealtimeError?) -> [DataEvent] {
    let removed = registrations.filter { registration == nil || $0.id == registration?.id }
    registrations.removeAll { registration == nil || $0.id == registration?.id }
    guard let error else { return [] }
    return removed.map {
      DataEvent(registration: $0, path: path, ordering: query.ordering, content: .cancelled(error))
    }
  }

  // MARK: Data

  /// Applies an operation.
  ///
  /// - Returns: the events for the observers.
  func apply(_ operation: SyncOperation, writes: WriteTreeReference, completeServerNode: Node?) -> [DataEvent]
  {
    let before = cache
    var processor = ViewProcessor(
      filter: filter, writes: writes, completeServerNode: completeServerNode, cache: cache)
    processor.apply(operation)
    cache = processor.cache
    let changes = processor.changes.changes
    order.apply(changes, to: cache.event.node)
    if !query.showsAll, !changes.isEmpty { updateStoredWindow(changes) }
    return events(for: changes, showsValue: showsValue(before, changes.isEmpty), to: registrations)
  }

  private func updateStoredWindow(_ changes: [(key: ChildKey, change: ChildChange)]) {
    var added: [ChildKey] = []
    var removed: [ChildKey] = []
    for (key, change) in changes {
      switch change {
      case .added: added.append(key)
      case .removed: removed.append(key)
      case .changed: break
      }
    }
    guard !added.isEmpty || !removed.isEmpty else { return }
    storage.updateWindow(adding: added, removing: removed, of: query, at: path)
  }

  /// Whether observers of the `value` event receive an event.
  private func showsValue(_ before: ViewCache, _ noChildChanged: Bool) -> Bool {
    guard cache.event.isComplete else { return false }
    if !noChildChanged || !before.event.isComplete { return true }
    let (old, new) = (before.event.node, cache.event.node)
    if new.isLeaf || new.isEmpty, new != old { return true }
    return new.priority != old.priority
  }

  private func events(
    for changes: [(key: ChildKey, change: ChildChange)], showsValue: Bool,
    to observers: [ObserverRegistration]
  ) -> [DataEvent] {
    var events: [DataEvent] = []
    let wanted = observers.reduce(into: EventInterest()) { $0.formUnion($1.interest) }
    if !changes.isEmpty, wanted != .value {
      for kind in [EventInterest.childRemoved, .childAdded, .childMoved, .childChanged]
      where wanted.contains(kind) {
        for (key, change) in sorted(changes.filter { matches($0.change, kind) }) {
          let previous =
            kind == .childRemoved ? nil : order.predecessor(of: key, change.node, in: cache.event.node)
          for observer in observers where observer.interest.contains(kind) {
            events.append(event(observer, .child(kind, key, change.node, previous: previous)))
          }
        }
      }
    }
    if showsValue {
      for observer in observers where observer.interest.contains(.value) {
        events.append(event(observer, .value(cache.event.node)))
      }
    }
    return events
  }

  private func event(_ observer: ObserverRegistration, _ content: DataEvent.Content) -> DataEvent {
    DataEvent(registration: observer, path: path, ordering: query.ordering, content: content)
  }

  private func matches(_ change: ChildChange, _ kind: EventInterest) -> Bool {
    switch change {
    case .removed: kind == .childRemoved
    case .added: kind == .childAdded
    case .changed(let new, let old):
      kind == .childChanged
        || (kind == .childMoved && query.ordering.value(of: new) != query.ordering.value(of: old))
    }
  }

  private func sorted(
    _ changes: [(key: ChildKey, change: ChildChange)]
  ) -> [(key: ChildKey, change: ChildChange)] {
    guard changes.count > 1, query.ordering != .key else { return changes }
    let sortKeys = changes.map { SortKey(of: $0.key, $0.change.node, in: query.ordering) }
    return changes.indices.sorted { sortKeys[$0] < sortKeys[$1] }.map { changes[$0] }
  }
}
