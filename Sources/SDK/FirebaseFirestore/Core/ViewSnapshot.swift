// A view snapshot: the documents of a view, and the changes since the previous snapshot.

import FirestoreModel

struct ViewSnapshot: Equatable, Sendable {
  let query: ClientQuery
  let documents: DocumentSet
  let oldDocuments: DocumentSet
  var changes: [ViewChange]
  let fromCache: Bool
  let syncStateChanged: Bool
  var excludesMetadataChanges: Bool
  /// Whether the target has been listened to before.
  let hasCachedResults: Bool

  /// Whether a document has writes that watch has not confirmed.
  var hasPendingWrites: Bool { documents.pendingCount > 0 }

  /// The first snapshot of a listener, in which every document is added.
  static func initial(
    query: ClientQuery, documents: DocumentSet, fromCache: Bool, hasCachedResults: Bool,
    excludesMetadataChanges: Bool = false
  ) -> ViewSnapshot {
    ViewSnapshot(
      query: query, documents: documents, oldDocuments: DocumentSet(query: query),
      changes: documents.ordered.map { ViewChange(kind: .added, document: $0) }, fromCache: fromCache,
      syncStateChanged: true, excludesMetadataChanges: excludesMetadataChanges,
      hasCachedResults: hasCachedResults)
  }
}
