// A reference to a collection: a query for all its documents, which also adds documents.

import FirestoreModel
import Foundation

/// A collection of documents. It exists as soon as it contains one.
open class CollectionReference: Query, @unchecked Sendable {
  // Safe to share: constants only, as its superclass.
  private let name: CollectionName

  init(_ name: CollectionName, _ firestore: Firestore) {
    self.name = name
    let query = ModelQuery(parent: name.parent, StructuredQuery(from: [.init(name.id)]))
    super.init(query, firestore: firestore)
  }

  /// The collection's own ID.
  open var collectionID: String { name.id }
  /// The document above the collection, nil at the top.
  open var parent: DocumentReference? {
    name.parent.document.map { DocumentReference($0, firestore) }
  }
  /// The path below the database, `books`.
  open var path: String { name.path.description }

  /// A reference to a new document with a random ID.
  @discardableResult
  open func document() -> DocumentReference {
    var random = SystemRandomNumberGenerator()
    return DocumentReference(name.document(AutoID.make(using: &random)), firestore)
  }

  /// A reference to a document of the collection, or deeper down. Stops the program for the path of
  /// a collection.
  @discardableResult
  open func document(_ documentPath: String) -> DocumentReference {
    firestore.document(name.path.appending(PathReader.parse(documentPath)), documentPath)
  }

  /// Adds a document with a random ID. Works offline: the reference is returned immediately.
  @discardableResult
  open func addDocument(data: [String: Any]) -> DocumentReference {
    addDocument(data: data, completion: nil)
  }

  /// Adds a document; the completion is called when the server has accepted or rejected it.
  @discardableResult
  open func addDocument(
    data: [String: Any], completion: (((any Error)?) -> Void)? = nil
  ) -> DocumentReference {
    let reference = document()
    reference.setData(data, completion: sendable(completion))
    return reference
  }

  /// Adds a document; returns when the server has accepted it.
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

/// Reads the paths that apps write.
enum PathReader {
  /// Splits at slashes; a slash at either end is ignored. Stops the program for empty paths and
  /// empty parts.
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
