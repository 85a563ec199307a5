// The elements of a bundle. A bundle is a file of documents and query results that a server prepared in
// advance. It has one metadata element, followed by named queries and documents. The metadata of each
// document precedes it.

import FirestoreModel

/// The metadata of a bundle.
struct BundleMetadata: Equatable, Sendable {
  let id: String
  let version: UInt32
  let createTime: ModelTimestamp
  let totalDocuments: Int
  /// The number of bytes after the metadata element.
  let totalBytes: Int
}

/// A query with a name. The bundle contains its result at `readTime`.
struct NamedQuery: Equatable, Sendable {
  let name: String
  /// The query in the app's form.
  let query: ModelQuery
  /// Whether the limit selects the last documents.
  let isLimitToLast: Bool
  let readTime: ModelTimestamp

  var clientQuery: ClientQuery { ClientQuery(query, isLimitToLast: isLimitToLast) }
}

/// The metadata of a document in a bundle.
struct BundledDocumentMetadata: Equatable, Sendable {
  let name: DocumentName
  /// The time at which the document was read or found missing.
  let readTime: ModelTimestamp
  let exists: Bool
  /// The names of the bundle's queries that contain the document.
  let queries: [String]
}

enum BundleElement: Equatable, Sendable {
  case metadata(BundleMetadata)
  case namedQuery(NamedQuery)
  case documentMetadata(BundledDocumentMetadata)
  case document(CachedDocument)
}

/// A bundle that was read completely and is consistent.
struct Bundle: Equatable, Sendable {
  let metadata: BundleMetadata
  let queries: [NamedQuery]
  let documents: [DocumentName: CachedDocument]
  /// The documents in the result of each named query.
  let documentsOfQuery: [String: Set<DocumentName>]
}

extension FirestoreError {
  /// The error for a bundle that is damaged or belongs to another database.
  static func damagedBundle(_ message: String) -> FirestoreError { FirestoreError(.dataLoss, message) }
}
