// A query snapshot: the result of a query at one moment.

import FirestoreModel
public import Foundation
import Locking

/// The result of a query at one moment, and its changes since the previous snapshot.
open class QuerySnapshot: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// Values that are computed at the first access and cached.
  private struct CachedValues {
    var documents: [QueryDocumentSnapshot]?
    var changes: [Bool: [DocumentChange]] = [:]
  }

  private let snapshot: ViewSnapshot
  private let cachedValues = Guarded(CachedValues())
  private let firestore: Firestore

  /// The query.
  public let query: Query
  /// The metadata of the snapshot: whether it has pending writes, and whether it comes from the cache.
  public let metadata: SnapshotMetadata

  init(query: Query, snapshot: ViewSnapshot) {
    self.query = query
    self.snapshot = snapshot
    firestore = query.firestore
    metadata = SnapshotMetadata(
      hasPendingWrites: snapshot.hasPendingWrites, isFromCache: snapshot.fromCache)
  }

  /// Whether the result contains no documents.
  open var isEmpty: Bool { snapshot.documents.isEmpty }
  /// The number of documents.
  open var count: Int { snapshot.documents.count }
  /// The documents in the query's order.
  open var documents: [QueryDocumentSnapshot] {
    cachedValues.withLock { cachedValues in
      if let documents = cachedValues.documents { return documents }
      let documents = snapshot.documents.shown.map { make($0.document, isPending: $0.isPending) }
      cachedValues.documents = documents
      return documents
    }
  }

  private func make(_ document: CachedDocument, isPending: Bool) -> QueryDocumentSnapshot {
    QueryDocumentSnapshot(
      name: document.name, document: document, firestore: firestore,
      metadata: SnapshotMetadata(hasPendingWrites: isPending, isFromCache: snapshot.fromCache))
  }

  /// The changes since the previous snapshot: removed, then added, then modified documents. In the first
  /// snapshot every document is added.
  open var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

  /// The changes since the previous snapshot, and optionally changes of metadata only.
  ///
  /// Stops the program if metadata changes are requested but the listener does not receive them.
  @discardableResult
  open func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
    if includeMetadataChanges && snapshot.excludesMetadataChanges {
      failInvalidArgument(
        "To include metadata changes with your document changes, you must call"
          + " addSnapshotListener(includeMetadataChanges: true).")
    }
    return cachedValues.withLock { cachedValues in
      if let changes = cachedValues.changes[includeMetadataChanges] { return changes }
      let changes = DocumentChange.all(of: snapshot, includeMetadataChanges: includeMetadataChanges) {
        make($0, isPending: snapshot.documents.isPending($0.name))
      }
      cachedValues.changes[includeMetadataChanges] = changes
      return changes
    }
  }

  /// Whether the query, documents, changes and metadata are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? QuerySnapshot else { return false }
    return firestore === other.firestore && snapshot == other.snapshot
  }

  /// Hashes the query, the number of documents and the metadata.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(query)
    hasher.combine(count)
    hasher.combine(metadata)
    return hasher.finalize()
  }
}
