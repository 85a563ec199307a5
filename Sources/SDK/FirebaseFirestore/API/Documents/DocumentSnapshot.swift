// A document snapshot: the contents of a document at one moment.

import FirestoreModel
public import Foundation

/// The value of a server timestamp in a snapshot before the server has set it.
public enum ServerTimestampBehavior: Int, Sendable {
  /// As null.
  case none = 0
  /// As the local time of the write.
  case estimate = 1
  /// As the field's value before the write; null if there was none.
  case previous = 2
}

/// The contents of a document at one moment. The document may not exist.
///
/// Numbers are `NSNumber` objects, so they can be converted to any Swift number type that can represent them.
open class DocumentSnapshot: NSObject, @unchecked Sendable {
  // Safe to share: constants only.
  private let name: DocumentName
  let document: CachedDocument?
  private let firestore: Firestore

  /// The metadata of the snapshot: whether it has pending writes, and whether it comes from the cache.
  public let metadata: SnapshotMetadata

  init(name: DocumentName, document: CachedDocument?, firestore: Firestore, metadata: SnapshotMetadata) {
    self.name = name
    self.document = document.flatMap { $0.isFound ? $0 : nil }
    self.firestore = firestore
    self.metadata = metadata
  }

  /// Whether the document exists.
  open var exists: Bool { document != nil }
  /// The document's reference.
  open var reference: DocumentReference { DocumentReference(name, firestore) }
  /// The document's ID.
  open var documentID: String { name.id }

  /// All fields; nil if the document does not exist. Pending server timestamps read as null.
  @discardableResult
  open func data() -> [String: Any]? { fields(.none) }

  /// All fields; nil if the document does not exist.
  @discardableResult
  open func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any]? {
    fields(serverTimestampBehavior)
  }

  func fields(_ behavior: ServerTimestampBehavior) -> [String: Any]? {
    document.map { UserDataWriter(firestore: firestore, serverTimestamps: behavior).map($0.fields) }
  }

  /// The value of one field, given by a dotted name or a `FieldPath`; nil if it is missing.
  @discardableResult
  open func get(_ field: Any) -> Any? { get(field, serverTimestampBehavior: .none) }

  /// The value of one field, given by a dotted name or a `FieldPath`; nil if it is missing.
  @discardableResult
  open func get(_ field: Any, serverTimestampBehavior: ServerTimestampBehavior) -> Any? {
    let path = FieldPath.parse(field, in: "get(_:)")
    if path.isDocumentID { return exists ? reference : nil }
    let writer = UserDataWriter(firestore: firestore, serverTimestamps: serverTimestampBehavior)
    return document?.fields.value(at: path).map { writer.value($0) }
  }

  /// The value of one field, given by a dotted name or a `FieldPath`; nil if it is missing.
  open subscript(key: Any) -> Any? { self.get(key) }

  /// Decodes the document.
  ///
  /// A missing document is decoded as null: an optional type gives nil, and other types throw
  /// `DecodingError.valueNotFound`.
  ///
  /// - Throws: `DecodingError` if the fields do not match the type.
  open func data<T: Decodable>(
    as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
    decoder: Firestore.Decoder = .init()
  ) throws -> T {
    try decoder.decode(type, from: fields(serverTimestampBehavior) ?? NSNull(), in: reference)
  }

  /// Whether the documents, contents and metadata are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? DocumentSnapshot else { return false }
    return name == other.name && document?.fields == other.document?.fields && metadata == other.metadata
      && firestore === other.firestore
  }

  /// Hashes the document's name and contents.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(document?.fields)
    return hasher.finalize()
  }
}

/// A document in the result of a query. It always exists.
open class QueryDocumentSnapshot: DocumentSnapshot, @unchecked Sendable {
  // Safe to share: it adds no state to its superclass.

  /// All fields. Pending server timestamps read as null.
  @discardableResult
  open override func data() -> [String: Any] { fields(.none) ?? [:] }

  /// All fields.
  @discardableResult
  open override func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any] {
    fields(serverTimestampBehavior) ?? [:]
  }
}
