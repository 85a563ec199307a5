// Reads and listens to a query with futures and publishers.

public import FirebaseFirestore
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension Query {
  /// Reads the result. The read starts with the call.
  ///
  /// - Parameter source: the source of the result; by default the server, or the cache while offline.
  /// - Returns: a future of the result. It fails with `unavailable` if the source cannot be reached.
  public func getDocuments(source: FirestoreSource = .default) -> Future<QuerySnapshot, any Error> {
    .starting { completion in getDocuments(source: source) { completion.complete($0, $1) } }
  }

  /// Listens to the result for each subscriber, until the subscriber cancels.
  ///
  /// ```swift
  /// let cancellable = query.snapshotPublisher()
  ///   .map { $0.documents.map(\.documentID) }
  ///   .sink(receiveCompletion: { _ in }, receiveValue: { print($0) })
  /// ```
  ///
  /// - Parameter includeMetadataChanges: whether snapshots are published in which only the metadata changed.
  /// - Returns: a publisher of snapshots, beginning with the current one, on the queue of the settings. It fails with the
  ///   listener's error.
  public func snapshotPublisher(
    includeMetadataChanges: Bool = false
  ) -> AnyPublisher<QuerySnapshot, any Error> {
    ListenerPublisher<QuerySnapshot, any Error>(on: self.firestore.settings.dispatchQueue) { receive in
      let listener = self.addSnapshotListener(includeMetadataChanges: includeMetadataChanges) {
        snapshot, error in
        receive(snapshot.map { .success($0) } ?? .failure(error ?? FirestoreErrorCode(.unknown)))
      }
      return { listener.remove() }
    }.eraseToAnyPublisher()
  }
}
