// A collection reference: a query for all documents of a collection, with methods that add documents.

import FirestoreModel
import Foundation

/// A collection of documents. It exists while it contains a document.
open class CollectionReference: Query, @unchecked Sendable {
  // Safe to share: it has only constants, as its superclass has.
  private let name: CollectionName

  init(_ name: CollectionName, _ firestore: Firestore) {
    self.name = name
    let query = ModelQuery(parent: name.parent, StructuredQuery(from: [.init(name.id)]))
    super.init(query, firestore: firestore)
  }

  /// The ID of the collection.
  open var collectionID: String { name.id }
  /// The document that contains the collection; nil for a root collection.
  open var parent: DocumentReference? {
    name.parent.document.map { DocumentReference($0, firestore) }
  }
  /// The path relative to the database, for instance `books`.
  open var path: String { name.path.description }

  /// A reference to a new document with a random ID.
  @discardableResult
  open func document() -> DocumentReference {
    var random = SystemRandomNumberGenerator()
    return DocumentReference(name.document(AutoID.make(using: &random)), firestore)
  }

  /// A reference to a document of the collection or of a collection below it. Stops the program for the path
  /// of a collection.
  @discardableResult
  open func document(_ documentPath: String) -> DocumentReference {
    firestore.document(name.path.appending(PathReader.parse(documentPath)), documentPath)
  }

  /// Adds a document with a random ID and returns its reference at once, also while offline.
  @discardableResult
  open func addDocument(data: [String: Any]) -> DocumentReference {
    addDocument(data: data, completion: nil)
  }

  /// Adds a document. The completion is called when the server has accepted or rejected it.
  @discardableResult
  open func addDocument(
    data: [String: Any], completion: (((any Error)?) -> Void)? = nil
  ) -> DocumentReference {
    let reference = document()
    reference.setData(data, completion: sendable(completion))
    return reference
  }

  /// Adds a document, and waits until the server has accepted it.
  @discardableResult
  open func addDocument(data: [String: Any]) async throws -> DocumentReference {
    let reference = document()
    try await reference.setData(data)
    return reference
  }

  /// Whether the paths and the instances are the same.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CollectionReference else { return false }
    return name == other.name && firestore === other.firestore
  }

  /// Hashes the path.
  open override var hash: Int { name.hashValue }
}

/// Parses the paths that an app passes to the SDK.
enum PathReader {
  /// Splits a path at slashes. Ignores a slash at either end. Stops the program for an empty path or an empty
  /// segment.
  static func parse(_ text: String) -> ResourcePath {
    if text.isEmpty { failInvalidArgument("Path must not be empty.") }
    var names = ResourcePath(splitting: text).segments
    if names.first?.isEmpty == true { names.removeFirst() }
    if names.last?.isEmpty == true { names.removeLast() }
    if names.isEmpty || names.contains(where: \.isEmpty) {
      failInvalidArgument("Invalid path (\(text)). Paths must not contain // in them.")
    }
    return ResourcePath(names)
  }
}
