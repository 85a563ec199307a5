// A sync point: a location with at least one observed query.
//
// Invariant: a sync point has one view for each query, and every view has an observer.

import RealtimeModel

/// The views of one location.
final class SyncPoint {
  private(set) var views: [SyncView] = []

  var isEmpty: Bool { views.isEmpty }

  /// The first view that loads all data of the location.
  var completeView: SyncView? { views.first { $0.query.showsAll } }

  /// The views that load only a part of the location.
  var filteredViews: [SyncView] { views.filter { !$0.query.showsAll } }

  /// The view of exactly this query.
  func view(of query: QuerySpec) -> SyncView? {
    views.first { $0.query == query }
  }

  func add(_ view: SyncView) {
    views.append(view)
  }

  /// Applies an operation to every view that it affects.
  func apply(_ operation: SyncOperation, writes: WriteTreeReference, completeServerNode: Node?) -> [DataEvent]
  {
    if case .query(let query) = operation.source {
      return view(of: query)?.apply(operation, writes: writes, completeServerNode: completeServerNode) ?? []
    }
    return views.flatMap { $0.apply(operation, writes: writes, completeServerNode: completeServerNode) }
  }

  /// The server's complete value at a descendant path, if a view knows it.
  func completeServerNode(at relative: Path) -> Node? {
    for view in views {
      if let node = view.completeServerNode(at: relative) { return node }
    }
    return nil
  }

  /// Removes observers.
  ///
  /// - Parameters:
  ///   - query: the query. The default query means every query of the location. If its listen failed, only
  ///     the views that depended on that listen are removed.
  ///   - registration: the observer; nil for all observers.
  /// - Returns: the queries that have lost their last observer, and the events for observers.
  func remove(
    _ query: QuerySpec, _ registration: ObserverRegistration?, error: RealtimeError?
  ) -> (queries: [QuerySpec], events: [DataEvent]) {
    let affectedViews = views.filter { view in
      if error != nil { return query.showsAll ? view.query.showsAll : view.query == query }
      return query.isDefault || view.query == query
    }
    var events: [DataEvent] = []
    for view in affectedViews { events += view.remove(registration, error: error) }
    let unobserved = affectedViews.filter(\.registrations.isEmpty)
    views.removeAll { view in unobserved.contains { $0 === view } }
    return (unobserved.map(\.query), events)
  }
}
