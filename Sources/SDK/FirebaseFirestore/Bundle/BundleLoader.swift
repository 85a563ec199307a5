// The bundle loader: collects the elements of a bundle and checks that they are consistent.
//
// Invariant: the bundle is used only after all of it was read and checked.

import FirestoreModel

struct BundleLoader {
  private let decoder: BundleDecoder
  private var reader = BundleReader()
  private(set) var metadata: BundleMetadata?
  private var queries: [NamedQuery] = []
  private var documents: [DocumentName: CachedDocument] = [:]
  private var documentMetadata: [DocumentName: BundledDocumentMetadata] = [:]
  /// The metadata of the document that must follow next.
  private var pendingMetadata: BundledDocumentMetadata?
  private(set) var bytesLoaded = 0

  init(database: DatabaseName) { decoder = BundleDecoder(database: database) }

  var documentsLoaded: Int { documents.count }

  mutating func append(_ bytes: some Sequence<UInt8>) { reader.append(bytes) }

  /// Reads the next element. Returns false if more bytes are needed.
  mutating func step() throws(FirestoreError) -> Bool {
    guard let (json, size) = try reader.next() else { return false }
    let element = try decoder.decode(json)
    if metadata == nil {
      guard case .metadata(let first) = element else {
        throw .damagedBundle("The bundle is damaged: its first element must be its metadata.")
      }
      metadata = first
      return true
    }
    try add(element)
    bytesLoaded += size
    return true
  }

  private mutating func add(_ element: BundleElement) throws(FirestoreError) {
    switch element {
    case .metadata: throw .damagedBundle("The bundle is damaged: it has metadata twice.")
    case .namedQuery(let query): queries.append(query)
    case .documentMetadata(let entry):
      if documentMetadata[entry.name] == nil { documentMetadata[entry.name] = entry }
      pendingMetadata = entry.exists ? entry : nil
      if !entry.exists {
        var missing = CachedDocument(missing: entry.name, version: entry.readTime)
        missing.readTime = entry.readTime
        documents[entry.name] = missing
      }
    case .document(var document):
      guard let entry = pendingMetadata, entry.name == document.name else {
        throw .invalidArgument("The document being added does not match the stored metadata.")
      }
      document.readTime = max(entry.readTime, document.version)
      documents[document.name] = document
      pendingMetadata = nil
    }
  }

  /// Returns the complete bundle. The caller must have appended the last byte and read all elements.
  func finish() throws(FirestoreError) -> Bundle {
    try reader.finish()
    // Google's SDK uses this code for an empty bundle.
    guard let metadata else {
      throw FirestoreError(.unknown, "Failed to get bundle metadata: the bundle is empty.")
    }
    if pendingMetadata != nil {
      throw .invalidArgument("Bundled documents end with a document metadata element instead of a document.")
    }
    guard documents.count == metadata.totalDocuments else {
      throw .invalidArgument(
        "The bundle contains \(documents.count) documents, but its metadata declares \(metadata.totalDocuments)."
      )
    }
    var documentsOfQuery: [String: Set<DocumentName>] = [:]
    for (name, metadata) in documentMetadata {
      for query in metadata.queries { documentsOfQuery[query, default: []].insert(name) }
    }
    return Bundle(
      metadata: metadata, queries: queries, documents: documents, documentsOfQuery: documentsOfQuery)
  }
}
