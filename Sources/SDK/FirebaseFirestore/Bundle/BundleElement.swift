// The elements of a bundle, a file of documents and query results that a server made in advance. A bundle has one
// metadata element, then named queries and documents, each document preceded by its metadata.

import FirestoreModel

/// The metadata of a bundle.
struct BundleMetadata: Equatable, Sendable {
  let id: String
  let version: UInt32
  let createTime: ModelTimestamp
  let totalDocuments: Int
  /// The size of everything after the metadata element, in bytes.
  let totalBytes: Int
}

/// A query with a name, whose result at `readTime` the bundle holds.
struct NamedQuery: Equatable, Sendable {
  let name: String
  /// The query as the app stated it.
  let query: ModelQuery
  /// Whether its limit takes the last documents.
  let isLimitToLast: Bool
  let readTime: ModelTimestamp

  var clientQuery: ClientQuery { ClientQuery(query, isLimitToLast: isLimitToLast) }
}

/// The metadata of a document in a bundle.
struct BundledDocumentMetadata: Equatable, Sendable {
  let name: DocumentName
  /// When the document was read, or found missing.
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
  /// The documents that each named query shows.
  let documentsOfQuery: [String: Set<DocumentName>]
}

extension FirestoreError {
  /// The error for a bundle that is damaged, or not meant for this database.
  static func damagedBundle(_ message: String) -> FirestoreError { FirestoreError(.dataLoss, message) }
}
