// A snapshot of a query's result.

import FirestoreModel
public import Foundation
import Locking

/// A query's result at one moment, and what changed since the snapshot before.
open class QuerySnapshot: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// The values that the first access makes.
  private struct Made {
    var documents: [QueryDocumentSnapshot]?
    var changes: [Bool: [DocumentChange]] = [:]
  }

  private let snapshot: ViewSnapshot
  private let made = Guarded(Made())
  private let firestore: Firestore

  /// The query.
  public let query: Query
  /// Where the snapshot comes from.
  public let metadata: SnapshotMetadata

  init(query: Query, snapshot: ViewSnapshot) {
    self.query = query
    self.snapshot = snapshot
    firestore = query.firestore
    metadata = SnapshotMetadata(
      hasPendingWrites: snapshot.hasPendingWrites, isFromCache: snapshot.fromCache)
  }

  /// Whether there are no documents.
  open var isEmpty: Bool { snapshot.documents.isEmpty }
  /// The number of documents.
  open var count: Int { snapshot.documents.count }
  /// The documents in the query's order.
  open var documents: [QueryDocumentSnapshot] {
    made.withLock { made in
      if let documents = made.documents { return documents }
      let documents = snapshot.documents.shown.map { make($0.document, isPending: $0.isPending) }
      made.documents = documents
      return documents
    }
  }

  private func make(_ document: CachedDocument, isPending: Bool) -> QueryDocumentSnapshot {
    QueryDocumentSnapshot(
      name: document.name, document: document, firestore: firestore,
      metadata: SnapshotMetadata(hasPendingWrites: isPending, isFromCache: snapshot.fromCache))
  }

  /// The changes since the snapshot before: removed, then added, then modified documents. In the
  /// first snapshot every document is added.
  open var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

  /// The changes since the snapshot before, on request with those of metadata alone.
  ///
  /// Stops the program if metadata changes are requested and the listener does not receive them.
  @discardableResult
  open func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
    if includeMetadataChanges && snapshot.excludesMetadataChanges {
      failInvalidArgument(
        "To include metadata changes with your document changes, you must call"
          + " addSnapshotListener(includeMetadataChanges: true).")
    }
    return made.withLock { made in
      if let changes = made.changes[includeMetadataChanges] { return changes }
      let changes = DocumentChange.all(of: snapshot, includeMetadataChanges: includeMetadataChanges) {
        make($0, isPending: snapshot.documents.isPending($0.name))
      }
      made.changes[includeMetadataChanges] = changes
      return changes
    }
  }

  /// Whether query, documents, changes and metadata are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? QuerySnapshot else { return false }
    return firestore === other.firestore && snapshot == other.snapshot
  }

  /// Hashes query, size and metadata.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(query)
    hasher.combine(count)
    hasher.combine(metadata)
    return hasher.finalize()
  }
}
