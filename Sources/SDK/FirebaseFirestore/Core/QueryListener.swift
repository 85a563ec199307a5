// A query listener: decides which snapshots of the view the app receives.

import FirestoreModel

/// Identifies a listener.
struct ListenerID: Hashable, Sendable {
  let number: Int
}

struct ListenerOptions: Equatable, Sendable {
  var includeMetadataChanges = false
  /// Whether to defer the first snapshot until the server has confirmed it, unless the client is offline.
  var waitForSyncWhenOnline = false
  /// Whether to read the cache only and send no request to the server.
  var cacheOnly = false
}

struct QueryListener {
  let id: ListenerID
  let query: ClientQuery
  let options: ListenerOptions
  private var hasRaised = false
  private var last: ViewSnapshot?
  private var onlineState = OnlineState.unknown

  init(id: ListenerID, query: ClientQuery, options: ListenerOptions) {
    self.id = id
    self.query = query
    self.options = options
  }

  /// Returns the snapshot for the listener; nil if the listener does not receive it.
  mutating func receive(_ snapshot: ViewSnapshot) -> ViewSnapshot? {
    var snapshot = snapshot
    if !options.includeMetadataChanges {
      snapshot.changes.removeAll { $0.kind == .metadata }
      snapshot.excludesMetadataChanges = true
    }
    defer { last = snapshot }
    guard hasRaised else {
      return mayRaiseInitial(snapshot) ? initial(snapshot) : nil
    }
    if !snapshot.changes.isEmpty { return snapshot }
    let pendingChanged = last.map { $0.hasPendingWrites != snapshot.hasPendingWrites } ?? false
    return (snapshot.syncStateChanged || pendingChanged) && options.includeMetadataChanges ? snapshot : nil
  }

  mutating func receive(_ state: OnlineState) -> ViewSnapshot? {
    onlineState = state
    guard !hasRaised, let last, mayRaiseInitial(last) else { return nil }
    return initial(last)
  }

  private func mayRaiseInitial(_ snapshot: ViewSnapshot) -> Bool {
    if !snapshot.fromCache || options.cacheOnly { return true }
    if options.waitForSyncWhenOnline && onlineState != .offline { return false }
    return !snapshot.documents.isEmpty || snapshot.hasCachedResults || onlineState == .offline
  }

  private mutating func initial(_ snapshot: ViewSnapshot) -> ViewSnapshot {
    hasRaised = true
    return .initial(
      query: snapshot.query, documents: snapshot.documents,
      fromCache: snapshot.fromCache, hasCachedResults: snapshot.hasCachedResults,
      excludesMetadataChanges: snapshot.excludesMetadataChanges)
  }
}
