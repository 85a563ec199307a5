// The change of one document between two snapshots of a query.

import FirestoreModel
public import Foundation

/// The type of a document's change in a query's result.
@frozen
public enum DocumentChangeType: Int, Sendable {
  /// The document was added to the result.
  case added = 0
  /// The document changed, and its position may have changed.
  case modified = 1
  /// The document was removed from the result.
  case removed = 2
}

/// The change of one document between two snapshots of a query.
open class DocumentChange: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// The type of the change.
  public let type: DocumentChangeType
  /// The document; for a removed document, its last state.
  public let document: QueryDocumentSnapshot
  /// The index of the document before this change and after all earlier changes of the list; `NSNotFound` for
  /// an added document.
  public let oldIndex: UInt
  /// The index of the document after this change; `NSNotFound` for a removed document.
  public let newIndex: UInt

  init(type: DocumentChangeType, document: QueryDocumentSnapshot, oldIndex: Int?, newIndex: Int?) {
    self.type = type
    self.document = document
    self.oldIndex = UInt(oldIndex ?? NSNotFound)
    self.newIndex = UInt(newIndex ?? NSNotFound)
  }

  /// Whether the type, document and indexes are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? DocumentChange else { return false }
    return type == other.type && document == other.document && oldIndex == other.oldIndex
      && newIndex == other.newIndex
  }

  /// Hashes the type, document and indexes.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(type)
    hasher.combine(document)
    hasher.combine(oldIndex)
    hasher.combine(newIndex)
    return hasher.finalize()
  }

  /// The changes of a snapshot. Their indexes assume that the changes are applied in order.
  static func all(
    of snapshot: ViewSnapshot, includeMetadataChanges: Bool, make: (CachedDocument) -> QueryDocumentSnapshot
  ) -> [DocumentChange] {
    if snapshot.oldDocuments.isEmpty {
      // In the first snapshot every document is added, in order.
      return snapshot.changes.enumerated().map { index, change in
        DocumentChange(type: .added, document: make(change.document), oldIndex: nil, newIndex: index)
      }
    }
    var documents = snapshot.oldDocuments
    return snapshot.changes.compactMap { change in
      if change.kind == .metadata && !includeMetadataChanges { return nil }
      let name = change.document.name
      let old = change.kind == .added ? nil : documents.index(of: name)
      if change.kind != .added { documents.remove(name) }
      if change.kind != .removed { documents.insert(ShownDocument(change.document, isPending: false)) }
      let new = change.kind == .removed ? nil : documents.index(of: name)
      let type: DocumentChangeType =
        switch change.kind {
        case .added: .added
        case .removed: .removed
        case .modified, .metadata: .modified
        }
      return DocumentChange(type: type, document: make(change.document), oldIndex: old, newIndex: new)
    }
  }
}
