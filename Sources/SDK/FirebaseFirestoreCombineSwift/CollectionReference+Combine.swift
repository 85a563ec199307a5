// Adds documents to a collection with futures.

public import FirebaseFirestore
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension CollectionReference {
  /// Adds a document with a new ID. The write starts with the call.
  ///
  /// - Parameter data: the fields.
  /// - Returns: a future of the new reference. It completes when the server has accepted or rejected the
  ///   write, so it does not complete while offline.
  @discardableResult
  public func addDocument(data: [String: Any]) -> Future<DocumentReference, any Error> {
    .starting { completion in
      let reference = document()
      reference.setData(data) { error in
        if let error { completion.fail(error) } else { completion.succeed(reference) }
      }
    }
  }

  /// Encodes a value and adds it as a document with a new ID. The write starts with the call.
  ///
  /// - Parameters:
  ///   - value: the value. If it cannot be encoded, the future fails.
  ///   - encoder: the encoder.
  /// - Returns: a future of the new reference. It completes when the server has accepted or rejected the
  ///   write, so it does not complete while offline.
  @discardableResult
  public func addDocument<T: Encodable>(
    from value: T, encoder: Firestore.Encoder = Firestore.Encoder()
  ) -> Future<DocumentReference, any Error> {
    .starting { completion in
      let reference = document()
      try reference.setData(from: value, encoder: encoder) { error in
        if let error { completion.fail(error) } else { completion.succeed(reference) }
      }
    }
  }
}
