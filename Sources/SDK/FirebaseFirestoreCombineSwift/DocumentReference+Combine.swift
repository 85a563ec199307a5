// Writes, reads and listens to a document with futures and publishers.

public import FirebaseFirestore
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension DocumentReference {
  /// Replaces the document, or creates it. The write starts with the call.
  ///
  /// - Parameter documentData: the fields.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData(_ documentData: [String: Any]) -> Future<Void, any Error> {
    startingWrite { setData(documentData, completion: $0) }
  }

  /// Replaces the document, or merges the fields into it. The write starts with the call.
  ///
  /// - Parameters:
  ///   - documentData: the fields.
  ///   - merge: whether the document's other fields are kept.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData(_ documentData: [String: Any], merge: Bool) -> Future<Void, any Error> {
    startingWrite { setData(documentData, merge: merge, completion: $0) }
  }

  /// Merges the named fields into the document. The write starts with the call.
  ///
  /// - Parameters:
  ///   - documentData: the fields.
  ///   - mergeFields: dotted names or `FieldPath`s. The program stops if the data does not contain one of
  ///     them.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData(_ documentData: [String: Any], mergeFields: [Any]) -> Future<Void, any Error> {
    startingWrite { setData(documentData, mergeFields: mergeFields, completion: $0) }
  }

  /// Encodes a value and replaces the document with it. The write starts with the call.
  ///
  /// - Parameters:
  ///   - value: the value. If it cannot be encoded, the future fails.
  ///   - encoder: the encoder.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, encoder: Firestore.Encoder = Firestore.Encoder()
  ) -> Future<Void, any Error> {
    startingWrite { try setData(from: value, encoder: encoder, completion: $0) }
  }

  /// Encodes a value and replaces the document with it, or merges it into the document. The write starts with
  /// the call.
  ///
  /// - Parameters:
  ///   - value: the value. If it cannot be encoded, the future fails.
  ///   - merge: whether the document's other fields are kept.
  ///   - encoder: the encoder.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, merge: Bool, encoder: Firestore.Encoder = Firestore.Encoder()
  ) -> Future<Void, any Error> {
    startingWrite { try setData(from: value, merge: merge, encoder: encoder, completion: $0) }
  }

  /// Encodes a value and merges its named fields into the document. The write starts with the call.
  ///
  /// - Parameters:
  ///   - value: the value. If it cannot be encoded, the future fails.
  ///   - mergeFields: dotted names or `FieldPath`s. The program stops if the value does not contain one of
  ///     them.
  ///   - encoder: the encoder.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func setData<T: Encodable>(
    from value: T, mergeFields: [Any], encoder: Firestore.Encoder = Firestore.Encoder()
  ) -> Future<Void, any Error> {
    startingWrite { try setData(from: value, mergeFields: mergeFields, encoder: encoder, completion: $0) }
  }

  /// Changes fields of an existing document. The write starts with the call.
  ///
  /// - Parameter documentData: the fields by dotted name.
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while
  ///   offline. It fails with `notFound` if the document does not exist.
  @discardableResult
  public func updateData(_ documentData: [String: Any]) -> Future<Void, any Error> {
    startingWrite { updateData(documentData, completion: $0) }
  }

  /// Deletes the document. The write starts with the call.
  ///
  /// - Returns: a future that completes when the server has accepted or rejected the write, not while offline.
  @discardableResult
  public func delete() -> Future<Void, any Error> {
    startingWrite { delete(completion: $0) }
  }

  /// Reads the document. The read starts with the call.
  ///
  /// - Parameter source: the source of the document; by default the server, or the cache while offline.
  /// - Returns: a future of the document. It fails with `unavailable` if the source does not have it.
  public func getDocument(source: FirestoreSource = .default) -> Future<DocumentSnapshot, any Error> {
    .starting { completion in getDocument(source: source) { completion.complete($0, $1) } }
  }

  /// Listens to the document for each subscriber, until the subscriber cancels.
  ///
  /// - Parameter includeMetadataChanges: whether snapshots are published in which only the metadata changed.
  /// - Returns: a publisher of snapshots, beginning with the current one, on the queue of the settings. It fails with the
  ///   listener's error.
  public func snapshotPublisher(
    includeMetadataChanges: Bool = false
  ) -> AnyPublisher<DocumentSnapshot, any Error> {
    ListenerPublisher<DocumentSnapshot, any Error>(on: self.firestore.settings.dispatchQueue) { receive in
      let listener = self.addSnapshotListener(includeMetadataChanges: includeMetadataChanges) {
        snapshot, error in
        receive(snapshot.map { .success($0) } ?? .failure(error ?? FirestoreErrorCode(.unknown)))
      }
      return { listener.remove() }
    }.eraseToAnyPublisher()
  }

  /// Starts a write, and completes a future with its result.
  private func startingWrite(
    _ write: (@escaping @Sendable ((any Error)?) -> Void) throws -> Void
  ) -> Future<Void, any Error> {
    .starting { completion in try write { completion.complete($0) } }
  }
}
