// A document name is the full name of a document. This file also defines full names of collections and of their parents.
//
// Invariant: the path of a `DocumentName` has an even, non-zero number of segments. The path of a `CollectionName` has
// an odd number, the path of a `ParentName` an even number.

/// The full name of a document: `projects/P/databases/D/documents/books/b1`.
public struct DocumentName: Hashable, Sendable {
  /// The database that the document belongs to.
  public let database: DatabaseName
  /// The path below `documents`: an even, non-zero number of segments.
  public let path: ResourcePath

  /// Makes a name; nil unless the path is a document's. Ids are not checked.
  public init?(database: DatabaseName, path: ResourcePath) {
    guard path.isDocument else { return nil }
    self.database = database
    self.path = path
  }

  /// Makes a name whose path is known to be a document's.
  init(unchecked database: DatabaseName, _ path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// Parses and validates a full name.
  ///
  /// - Throws: INVALID_ARGUMENT with Cloud Firestore's error message.
  public init(parsing name: String) throws(FirestoreError) {
    var parser = NameParser(name, kind: "Document name")
    database = try parser.database()
    path = try parser.documents()
    guard path.isDocument else {
      throw .invalidArgument("Document name \"\(name.echoed)\" lacks \"/\" at index \(name.utf8.count).")
    }
    try parser.checkLimits(of: path)
  }

  /// The document's id.
  public var id: String { path.id ?? "" }
  /// The collection that holds the document.
  public var collection: CollectionName {
    CollectionName(unchecked: database, ResourcePath(Array(path.segments.dropLast())))
  }
  /// The document as a parent of collections.
  public var asParent: ParentName { ParentName(unchecked: database, path) }

  /// Compares by project, database, then path segment by segment.
  public static func compare(_ a: DocumentName, _ b: DocumentName) -> ComparisonOrder {
    let database = DatabaseName.compare(a.database, b.database)
    return database != .same ? database : ResourcePath.compare(a.path, b.path)
  }
}

extension DocumentName: Comparable, CustomStringConvertible {
  /// Orders as `compare`.
  public static func < (a: DocumentName, b: DocumentName) -> Bool { compare(a, b) == .ascending }

  /// The full name.
  public var description: String { "\(database)/documents/\(path)" }
}

/// The full name of a collection: `projects/P/databases/D/documents/books`.
public struct CollectionName: Hashable, Sendable, CustomStringConvertible {
  /// The database that the collection belongs to.
  public let database: DatabaseName
  /// The path below `documents`: an odd number of segments.
  public let path: ResourcePath

  /// Makes a name; nil unless the path is a collection's. Ids are not checked.
  public init?(database: DatabaseName, path: ResourcePath) {
    guard path.isCollection else { return nil }
    self.database = database
    self.path = path
  }

  init(unchecked database: DatabaseName, _ path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// The collection's id, which names its collection group.
  public var id: String { path.id ?? "" }
  /// The root or document that holds the collection.
  public var parent: ParentName { ParentName(unchecked: database, path.parent ?? .root) }
  /// The name of a document in this collection; its id is not checked.
  public func document(_ id: String) -> DocumentName { DocumentName(unchecked: database, path.appending(id)) }
  /// The full name.
  public var description: String { "\(database)/documents/\(path)" }
}

/// A parent of collections: a database's root (`…/documents`) or a document. The document need not exist.
public struct ParentName: Hashable, Sendable, CustomStringConvertible {
  /// The database.
  public let database: DatabaseName
  /// The path of a document; empty for the root.
  public let path: ResourcePath

  /// Makes a name; nil if the path is a collection's. Ids are not checked.
  public init?(database: DatabaseName, path: ResourcePath) {
    guard !path.isCollection else { return nil }
    self.database = database
    self.path = path
  }

  init(unchecked database: DatabaseName, _ path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// The root of a database.
  public init(rootOf database: DatabaseName) { self.init(unchecked: database, .root) }

  /// Parses and validates a parent's full name.
  ///
  /// - Throws: INVALID_ARGUMENT with Cloud Firestore's error message.
  public init(parsing name: String) throws(FirestoreError) {
    var parser = NameParser(name, kind: "Document parent name")
    database = try parser.database()
    path = try parser.documents()
    guard !path.isCollection else {
      throw .invalidArgument(
        "Document parent name \"\(name.echoed)\" lacks \"/\" at index \(name.utf8.count).")
    }
    try parser.checkLimits(of: path)
  }

  /// The document; nil for the root.
  public var document: DocumentName? { path.isDocument ? DocumentName(unchecked: database, path) : nil }
  /// A collection under this parent; its id is not checked.
  public func collection(_ id: String) -> CollectionName {
    CollectionName(unchecked: database, path.appending(id))
  }
  /// The full name.
  public var description: String {
    path.isEmpty ? "\(database)/documents" : "\(database)/documents/\(path)"
  }
}
