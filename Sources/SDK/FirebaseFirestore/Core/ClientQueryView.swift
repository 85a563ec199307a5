// The view of one query: its documents, the documents that the server has confirmed, and the snapshots for
// listeners.
//
// A document is in limbo if its cached contents match the query, although the server did not report it for the
// query's target.
//
// Invariant: a view is in sync only if its target is current and is not being reset, and none of its
// documents is in limbo.

import FirestoreModel

/// A document that entered or left limbo.
enum LimboChange: Equatable {
  case entered(DocumentName)
  case left(DocumentName)
}

/// Changes of a view that were computed but not yet applied.
struct PendingViewChanges {
  var documents: DocumentSet
  var changes = ViewChangeSet()
  /// The documents whose writes the server acknowledged, with the versions of the snapshots that must confirm
  /// them.
  var acknowledged: [DocumentName: ModelTimestamp] = [:]
  /// Whether the query must run again, because a document left the result of a query with a limit.
  var needsRefill = false
}

struct ClientQueryView {
  let query: ClientQuery
  private var documents: DocumentSet
  private var limbo: Set<DocumentName> = []
  /// The documents of the view whose writes the server acknowledged, with the versions of the snapshots that
  /// must confirm them. If such a snapshot does not contain the document, another client has changed it in
  /// the meantime. The document is then in limbo.
  private var acknowledged: [DocumentName: ModelTimestamp] = [:]
  /// The version of the last snapshot of the server.
  private var snapshotVersion = ModelTimestamp.epoch
  /// Whether `limbo` must be computed again from all documents, because some changes were not applied to it.
  private var isLimboStale = true
  private(set) var isCurrent = false
  private var hasCachedResults = false
  /// Whether the last snapshot was in sync; nil before the first.
  private var wasSynced: Bool?
  /// The documents that belong to the target on the server.
  private(set) var remoteKeys: Set<DocumentName>

  init(query: ClientQuery, remoteKeys: Set<DocumentName>) {
    self.query = query
    self.remoteKeys = remoteKeys
    documents = DocumentSet(query: query)
  }

  // MARK: Computing

  /// Computes the changes of the view for changed documents, without applying them.
  ///
  /// - Parameter isAcknowledgement: whether the documents changed because the server acknowledged writes to them.
  func compute(
    _ changed: DocumentChanges, after previous: PendingViewChanges? = nil, isAcknowledgement: Bool = false
  ) -> PendingViewChanges {
    var result = previous ?? PendingViewChanges(documents: documents)
    result.needsRefill = false
    let old = result.documents
    let isFull = query.limit.map { old.count == $0 } ?? false
    let lastInLimit = isFull && !query.isLimitToLast ? old.last : nil
    let firstInLimit = isFull && query.isLimitToLast ? old.first : nil
    var removed: Set<DocumentName> = []
    var inserted: [ShownDocument] = []
    for (name, document) in changed {
      let before = old[name]
      let after = query.matches(document) ? document : nil
      let wasPending = before != nil && documents.isPending(name)
      let isPending =
        after.map { $0.hasLocalChanges || (documents.isPending(name) && $0.hasCommittedChanges) } ?? false
      switch (before, after) {
      case (nil, nil): continue
      case (let before?, let after?):
        if before.fields != after.fields {
          // The server acknowledged the write. The listener receives the document with the watch snapshot
          // that confirms the write.
          if before.hasLocalChanges, after.hasCommittedChanges {
            result.acknowledged[name] = confirmingVersion(of: after, isAcknowledgement)
            continue
          }
          result.changes.track(.modified, after)
          if let last = lastInLimit, query.compare(after, last) == .descending { result.needsRefill = true }
          if let first = firstInLimit, query.compare(after, first) == .ascending { result.needsRefill = true }
        } else if wasPending != isPending {
          result.changes.track(.metadata, after)
        } else {
          if before.hasLocalChanges, after.hasCommittedChanges {
            result.acknowledged[name] = confirmingVersion(of: after, isAcknowledgement)
          }
          continue
        }
        inserted.append(ShownDocument(after, isPending: isPending, snapshotVersion: snapshotVersion))
      case (nil, let after?):
        result.changes.track(.added, after)
        inserted.append(ShownDocument(after, isPending: isPending, snapshotVersion: snapshotVersion))
      case (let before?, nil):
        result.changes.track(.removed, before)
        removed.insert(name)
        if isFull { result.needsRefill = true }
      }
    }
    result.documents.apply(removed: removed, inserted: inserted)
    if let limit = query.limit {
      while result.documents.count > limit,
        let surplus = query.isLimitToLast ? result.documents.first : result.documents.last
      {
        result.documents.remove(surplus.name)
        result.changes.track(.removed, surplus)
      }
    }
    return result
  }

  /// The version of the snapshot that must report the committed contents of a document: the version of these
  /// contents. Watch may already have delivered this snapshot, for instance if a later write to the document was
  /// rejected or changed nothing. In this case the view does not wait for another snapshot, because an idle
  /// server would not send one.
  ///
  /// The commit time, which is the document's `readTime`, may precede the last snapshot before the write. Then it
  /// cannot be compared with snapshots, and the next snapshot must report the contents.
  private func confirmingVersion(of document: CachedDocument, _ isAcknowledgement: Bool) -> ModelTimestamp {
    let previousVersion = documents.shown(document.name)?.snapshotVersion ?? .epoch
    if !isAcknowledgement || document.readTime > previousVersion { return document.version }
    let (next, isLast) = snapshotVersion.microseconds.addingReportingOverflow(1)
    return isLast ? snapshotVersion : ModelTimestamp(microseconds: next)
  }

  // MARK: Applying

  /// Applies computed changes, and the changes of the target that watch reported.
  ///
  /// - Returns: the snapshot to raise, or nil if nothing changed; and the documents that entered or left
  ///   limbo.
  mutating func apply(
    _ pending: PendingViewChanges, targetChange: TargetChange? = nil, isPendingReset: Bool = false,
    at version: ModelTimestamp? = nil, resolvesLimbo: Bool = true
  ) -> (snapshot: ViewSnapshot?, limbo: [LimboChange]) {
    let old = documents
    documents = pending.documents
    for name in pending.changes.changes.keys { acknowledged[name] = nil }
    acknowledged.merge(pending.acknowledged) { $1 }
    if let version { snapshotVersion = max(snapshotVersion, version) }
    if let change = targetChange {
      remoteKeys.formUnion(change.added)
      remoteKeys.subtract(change.removed)
      isCurrent = change.isCurrent
      hasCachedResults = !change.resumeToken.isEmpty
    }
    var limboChanges: [LimboChange] = []
    if resolvesLimbo, !isPendingReset, isCurrent {
      limboChanges = updateLimbo(of: pending, targetChange)
    } else {
      isLimboStale = true
    }
    let isSynced = limbo.isEmpty && isCurrent && !isPendingReset
    let syncStateChanged = isSynced != wasSynced
    wasSynced = isSynced
    let changes = pending.changes.sorted(by: query)
    guard !changes.isEmpty || syncStateChanged else { return (nil, limboChanges) }
    let snapshot = ViewSnapshot(
      query: query, documents: documents, oldDocuments: old, changes: changes,
      fromCache: !isSynced, syncStateChanged: syncStateChanged, excludesMetadataChanges: false,
      hasCachedResults: targetChange.map { !$0.resumeToken.isEmpty } ?? false)
    return (snapshot, limboChanges)
  }

  /// Applies a change of the online state. While offline, the view is not in sync.
  mutating func applyOnlineState(_ state: OnlineState) -> ViewSnapshot? {
    guard isCurrent, state == .offline else { return nil }
    isCurrent = false
    let unchanged = PendingViewChanges(documents: documents)
    return apply(unchanged, resolvesLimbo: false).snapshot
  }

  /// The first snapshot for a listener that is added to an existing view.
  var initialSnapshot: ViewSnapshot {
    .initial(
      query: query, documents: documents, fromCache: wasSynced != true, hasCachedResults: hasCachedResults)
  }

  /// The documents of the view with writes that watch has not confirmed.
  var pendingDocuments: [DocumentName] {
    documents.pendingCount == 0 ? [] : documents.shown.filter(\.isPending).map(\.document.name)
  }

  // MARK: Limbo

  /// Updates limbo for the documents that changed, and for those that were added to or removed from the
  /// target.
  private mutating func updateLimbo(
    of pending: PendingViewChanges, _ targetChange: TargetChange?
  ) -> [LimboChange] {
    var names = Set(pending.changes.changes.keys)
    if let targetChange { names.formUnion(targetChange.added.union(targetChange.removed)) }
    for (name, version) in acknowledged where version <= snapshotVersion { names.insert(name) }
    if isLimboStale { names = limbo.union(documents.ordered.map(\.name)) }
    isLimboStale = false
    var left: [DocumentName] = []
    var entered: [DocumentName] = []
    for name in names {
      let isConfirmationOverdue = acknowledged[name].map { $0 <= snapshotVersion } ?? false
      let isInLimbo =
        documents[name].map { !remoteKeys.contains(name) && (!$0.hasLocalChanges || isConfirmationOverdue) }
        ?? false
      if isInLimbo, limbo.insert(name).inserted { entered.append(name) }
      if !isInLimbo, limbo.remove(name) != nil { left.append(name) }
    }
    return left.sorted().map(LimboChange.left) + entered.sorted().map(LimboChange.entered)
  }
}
