// Encodes Codable values as documents, and decodes documents.

import Foundation

extension DocumentReference {
  /// Reads the document and decodes it. A missing document is decoded as null.
  public func getDocument<T: Decodable>(
    as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
    decoder: Firestore.Decoder = .init(), source: FirestoreSource = .default,
    completion: @escaping (Result<T, any Error>) -> Void
  ) {
    let app = AppClosure(call: { (snapshot: DocumentSnapshot?, error: (any Error)?) in
      guard let snapshot else {
        completion(.failure(error ?? FirestoreErrorCode(.unknown).object))
        return
      }
      completion(Result { try snapshot.data(as: type, with: serverTimestampBehavior, decoder: decoder) })
    })
    getDocument(source: source) { snapshot, error in app.call(snapshot, error) }
  }

  /// Reads the document and decodes it. A missing document is decoded as null.
  public func getDocument<T: Decodable>(
    as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
    decoder: Firestore.Decoder = .init(), source: FirestoreSource = .default
  ) async throws -> T {
    try await getDocument(source: source).data(as: type, with: serverTimestampBehavior, decoder: decoder)
  }

  /// Encodes a value and replaces the document with it.
  ///
  /// - Throws: encoding errors. The completion receives the errors of the server.
  public func setData<T: Encodable>(
    from value: T, encoder: Firestore.Encoder = Firestore.Encoder(),
    completion: (((any Error)?) -> Void)? = nil
  ) throws {
    setData(try encoder.encode(value), completion: sendable(completion))
  }

  /// Encodes a value and replaces the document with it, or merges it into the document.
  public func setData<T: Encodable>(
    from value: T, merge: Bool, encoder: Firestore.Encoder = Firestore.Encoder(),
    completion: (((any Error)?) -> Void)? = nil
  ) throws {
    setData(try encoder.encode(value), merge: merge, completion: sendable(completion))
  }

  /// Encodes a value and merges the named fields into the document.
  public func setData<T: Encodable>(
    from value: T, mergeFields: [Any], encoder: Firestore.Encoder = Firestore.Encoder(),
    completion: (((any Error)?) -> Void)? = nil
  ) throws {
    setData(try encoder.encode(value), mergeFields: mergeFields, completion: sendable(completion))
  }
}

extension CollectionReference {
  /// Encodes a value and adds it as a document with a new ID.
  ///
  /// - Returns: the new document's reference, without waiting for the server.
  /// - Throws: encoding errors. The completion receives the errors of the server.
  @discardableResult
  public func addDocument<T: Encodable>(
    from value: T, encoder: Firestore.Encoder = Firestore.Encoder(),
    completion: (((any Error)?) -> Void)? = nil
  ) throws -> DocumentReference {
    addDocument(data: try encoder.encode(value), completion: completion)
  }
}

extension Transaction {
  /// Encodes a value and replaces the document with it when the transaction commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> Transaction {
    setData(try encoder.encode(value), forDocument: doc)
  }

  /// Encodes a value and replaces the document with it, or merges it, when the transaction commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, merge: Bool,
    encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> Transaction {
    setData(try encoder.encode(value), forDocument: doc, merge: merge)
  }

  /// Encodes a value and merges the named fields when the transaction commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, mergeFields: [Any],
    encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> Transaction {
    setData(try encoder.encode(value), forDocument: doc, mergeFields: mergeFields)
  }
}

extension WriteBatch {
  /// Encodes a value and replaces the document with it when the batch commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> WriteBatch {
    setData(try encoder.encode(value), forDocument: doc)
  }

  /// Encodes a value and replaces the document with it, or merges it, when the batch commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, merge: Bool,
    encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> WriteBatch {
    setData(try encoder.encode(value), forDocument: doc, merge: merge)
  }

  /// Encodes a value and merges the named fields when the batch commits.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, forDocument doc: DocumentReference, mergeFields: [Any],
    encoder: Firestore.Encoder = Firestore.Encoder()
  ) throws -> WriteBatch {
    setData(try encoder.encode(value), forDocument: doc, mergeFields: mergeFields)
  }
}

/// Wraps an app's completion so that it can be passed between threads. It is called on the callback queue.
func sendable(_ completion: (((any Error)?) -> Void)?) -> (@Sendable ((any Error)?) -> Void)? {
  guard let completion else { return nil }
  let app = AppClosure(call: completion)
  return { error in app.call(error) }
}
