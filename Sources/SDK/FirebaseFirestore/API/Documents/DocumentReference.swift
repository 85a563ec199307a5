// A reference to a document: writes, reads and listens to it.

import FirestoreModel
public import Foundation

/// The location of a document, which may or may not exist.
open class DocumentReference: NSObject, @unchecked Sendable, Codable {
  // SAFETY: constants of Sendable types only.
  let name: DocumentName

  /// The instance that the reference belongs to.
  public let firestore: Firestore

  init(_ name: DocumentName, _ firestore: Firestore) {
    self.name = name
    self.firestore = firestore
  }

  /// The document's ID within its collection.
  open var documentID: String { name.id }
  /// The collection that contains the document.
  open var parent: CollectionReference { CollectionReference(name.collection, firestore) }
  /// The path relative to the database, for instance `books/b1`.
  open var path: String { name.path.description }

  /// A collection below this document. Stops the program for the path of a document.
  @discardableResult
  open func collection(_ collectionPath: String) -> CollectionReference {
    firestore.collection(name.path.appending(PathReader.parse(collectionPath)), collectionPath)
  }

  // MARK: Writing

  private func write(_ writes: [Write], _ completion: (@Sendable ((any Error)?) -> Void)?) {
    firestore.write(writes, completion: completion)
  }

  private func write(_ write: Write) async throws { try await firestore.write([write]) }

  /// Replaces the document, or creates it.
  open func setData(_ documentData: [String: Any]) { setData(documentData, completion: nil) }

  /// Replaces the document, or merges the given fields into it. Creates the document if it does not exist.
  open func setData(_ documentData: [String: Any], merge: Bool) {
    setData(documentData, merge: merge, completion: nil)
  }

  /// Merges the named fields into the document. A name is a dotted string or a `FieldPath`. Stops the program
  /// if the data does not contain a named field.
  open func setData(_ documentData: [String: Any], mergeFields: [Any]) {
    setData(documentData, mergeFields: mergeFields, completion: nil)
  }

  /// Replaces the document. The completion is called when the server has accepted or rejected the write, so
  /// it is not called while the client is offline.
  @preconcurrency
  open func setData(
    _ documentData: [String: Any], completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    write([.set(documentData, name)], completion)
  }

  /// Replaces the document, and waits until the server has accepted the write. While the client is offline,
  /// it keeps waiting.
  open func setData(_ documentData: [String: Any]) async throws {
    try await write(.set(documentData, name))
  }

  /// Replaces the document, or merges the given fields into it.
  @preconcurrency
  open func setData(
    _ documentData: [String: Any], merge: Bool, completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    write([merge ? .merge(documentData, nil, name) : .set(documentData, name)], completion)
  }

  /// Replaces the document or merges the given fields into it, and waits until the server has accepted the
  /// write.
  open func setData(_ documentData: [String: Any], merge: Bool) async throws {
    try await write(merge ? .merge(documentData, nil, name) : .set(documentData, name))
  }

  /// Merges the named fields into the document.
  @preconcurrency
  open func setData(
    _ documentData: [String: Any], mergeFields: [Any],
    completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    write([.merge(documentData, mergeFields, name)], completion)
  }

  /// Merges the named fields into the document, and waits until the server has accepted the write.
  open func setData(_ documentData: [String: Any], mergeFields: [Any]) async throws {
    try await write(.merge(documentData, mergeFields, name))
  }

  /// Changes the given fields of an existing document. A field is a dotted name or a `FieldPath`.
  open func updateData(_ fields: [AnyHashable: Any]) { updateData(fields, completion: nil) }

  /// Changes the given fields of an existing document; fails with `notFound` if it does not exist.
  @preconcurrency
  open func updateData(
    _ fields: [AnyHashable: Any], completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    write([.patch(fields, name)], completion)
  }

  /// Changes the given fields of an existing document, and waits until the server has accepted the write.
  open func updateData(_ fields: [AnyHashable: Any]) async throws { try await write(.patch(fields, name)) }

  /// Deletes the document, but not the collections below it.
  open func delete() { delete(completion: nil) }

  /// Deletes the document. The completion is called when the server has accepted or rejected the deletion.
  @preconcurrency
  open func delete(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    write([Write(.delete(name))], completion)
  }

  /// Deletes the document, and waits until the server has accepted the deletion.
  open func delete() async throws { try await write(Write(.delete(name))) }

  // MARK: Reading

  /// Reads the document from the server, or from the cache while offline.
  @preconcurrency
  open func getDocument(completion: @escaping @Sendable (DocumentSnapshot?, (any Error)?) -> Void) {
    getDocument(source: .default, completion: completion)
  }

  /// Reads the document from the server, or from the cache while offline.
  @discardableResult
  open func getDocument() async throws -> DocumentSnapshot { try await getDocument(source: .default) }

  /// Reads the document from the source. Fails with `unavailable` if the source does not have it.
  @preconcurrency
  open func getDocument(
    source: FirestoreSource, completion: @escaping @Sendable (DocumentSnapshot?, (any Error)?) -> Void
  ) {
    firestore.client.get(document: name, source: source) { [firestore, name] result in
      switch result {
      case .success(let (document, metadata)):
        completion(
          DocumentSnapshot(name: name, document: document, firestore: firestore, metadata: metadata), nil)
      case .failure(let error): completion(nil, error.object)
      }
    }
  }

  /// Reads the document from the source. Throws `unavailable` if the source does not have it.
  @discardableResult
  open func getDocument(source: FirestoreSource) async throws -> DocumentSnapshot {
    try await Continuations.waitForResult { done in getDocument(source: source, completion: done) }
  }

  // MARK: Listening

  /// Listens to the document. The listener is called on the settings' queue, first with the current document. After an
  /// error it receives no more events.
  @discardableResult
  open func addSnapshotListener(
    _ listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    addSnapshotListener(includeMetadataChanges: false, listener: listener)
  }

  /// Listens to the document, and optionally to changes of its metadata only.
  @discardableResult
  open func addSnapshotListener(
    includeMetadataChanges: Bool, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    let options = SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges)
    return addSnapshotListener(options: options, listener: listener)
  }

  /// Listens to the document with these options.
  @discardableResult
  open func addSnapshotListener(
    options: SnapshotListenOptions, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
  ) -> any ListenerRegistration {
    let app = AppClosure(call: listener)
    return firestore.client.listen(
      ClientQuery(document: name), options: options.internalOptions
    ) { [firestore, name] result in
      switch result {
      case .success(let view):
        let document = view.documents[name]
        let metadata = SnapshotMetadata(
          hasPendingWrites: view.documents.isPending(name), isFromCache: view.fromCache)
        app.call(
          DocumentSnapshot(name: name, document: document, firestore: firestore, metadata: metadata), nil)
      case .failure(let error): app.call(nil, error.object)
      }
    }
  }

  // MARK: Identity

  /// Whether the paths and the instances are the same.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? DocumentReference else { return false }
    return name == other.name && firestore === other.firestore
  }

  /// Hashes the path.
  open override var hash: Int { name.hashValue }

  /// Always throws, because only Firestore's decoder can decode a reference.
  public required init(from decoder: any Swift.Decoder) throws {
    throw FirestoreDecodingError.decodingIsNotSupported(
      "DocumentReference values can only be decoded with Firestore.Decoder")
  }

  /// Always throws, because only Firestore's encoder can encode a reference.
  open func encode(to encoder: any Swift.Encoder) throws {
    throw FirestoreEncodingError.encodingIsNotSupported(
      "DocumentReference values can only be encoded with Firestore.Encoder")
  }
}

/// The source from which a read takes its result.
public enum FirestoreSource: UInt, Sendable {
  /// From the server, or from the cache while offline.
  case `default` = 0
  /// From the server only.
  case server = 1
  /// From the cache only.
  case cache = 2
}
