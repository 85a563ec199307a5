// Snapshots as asynchronous sequences.
//
// Invariant: the listener of a sequence is removed when the reading task ends or the iterator is released. A sequence
// whose listener was removed, as by `terminate()`, ends.

import Foundation

/// Ends a sequence when its listener is released. Only the listener's closure holds this object.
private final class Feed<Element: Sendable>: Sendable {
  private let continuation: AsyncThrowingStream<Element, any Error>.Continuation

  init(_ continuation: AsyncThrowingStream<Element, any Error>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }

  func take(_ snapshot: Element?, _ error: (any Error)?) {
    if let snapshot {
      continuation.yield(snapshot)
    } else {
      continuation.finish(throwing: error ?? FirestoreErrorCode(.unknown).object)
    }
  }
}

/// Builds the stream behind both sequences.
private func stream<Element: Sendable>(
  _ listen: (@escaping (Element?, (any Error)?) -> Void) -> any ListenerRegistration
) -> AsyncThrowingStream<Element, any Error> {
  AsyncThrowingStream { continuation in
    let feed = Feed(continuation)
    let registration = AppClosure(call: listen { feed.take($0, $1) })
    continuation.onTermination = { _ in registration.call.remove() }
  }
}

extension Query {
  /// The query's snapshots, beginning with its current result.
  public var snapshots: QuerySnapshotsSequence { snapshots(includeMetadataChanges: false) }

  /// The query's snapshots, on request also those of metadata alone.
  public func snapshots(includeMetadataChanges: Bool) -> QuerySnapshotsSequence {
    QuerySnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
  }

  /// A query's snapshots in the order of their arrival. Each iterator has a separate listener. Ends with the
  /// listener's error.
  public struct QuerySnapshotsSequence: AsyncSequence, Sendable {
    /// A query's snapshot.
    public typealias Element = QuerySnapshot
    /// The listener's error.
    public typealias Failure = any Error
    /// Reads one listener's snapshots.
    public typealias AsyncIterator = Iterator

    private let query: Query
    private let includeMetadataChanges: Bool

    /// Makes a sequence; it listens from the first iterator on.
    public init(_ query: Query, includeMetadataChanges: Bool) {
      self.query = query
      self.includeMetadataChanges = includeMetadataChanges
    }

    /// Starts to listen.
    public func makeAsyncIterator() -> Iterator {
      Iterator(
        stream { query.addSnapshotListener(includeMetadataChanges: includeMetadataChanges, listener: $0) })
    }

    /// Reads one listener's snapshots.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator

      fileprivate init(_ stream: AsyncThrowingStream<QuerySnapshot, any Error>) {
        base = stream.makeAsyncIterator()
      }

      /// The next snapshot; nil when the task was cancelled.
      public mutating func next() async throws -> QuerySnapshot? {
        try await base.next(isolation: #isolation)
      }
    }
  }
}

@available(*, unavailable)
extension Query.QuerySnapshotsSequence.Iterator: Sendable {}

extension DocumentReference {
  /// The document's snapshots, beginning with its current state.
  public var snapshots: DocumentSnapshotsSequence { snapshots(includeMetadataChanges: false) }

  /// The document's snapshots, on request also those of metadata alone.
  public func snapshots(includeMetadataChanges: Bool) -> DocumentSnapshotsSequence {
    DocumentSnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
  }

  /// A document's snapshots in the order of their arrival. Each iterator has a separate listener. Ends with
  /// the listener's error.
  public struct DocumentSnapshotsSequence: AsyncSequence, Sendable {
    /// A document's snapshot.
    public typealias Element = DocumentSnapshot
    /// The listener's error.
    public typealias Failure = any Error
    /// Reads one listener's snapshots.
    public typealias AsyncIterator = Iterator

    private let reference: DocumentReference
    private let includeMetadataChanges: Bool

    /// Makes a sequence; it listens from the first iterator on.
    public init(_ documentReference: DocumentReference, includeMetadataChanges: Bool) {
      reference = documentReference
      self.includeMetadataChanges = includeMetadataChanges
    }

    /// Starts to listen.
    public func makeAsyncIterator() -> Iterator {
      Iterator(
        stream {
          reference.addSnapshotListener(includeMetadataChanges: includeMetadataChanges, listener: $0)
        })
    }

    /// Reads one listener's snapshots.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator

      fileprivate init(_ stream: AsyncThrowingStream<DocumentSnapshot, any Error>) {
        base = stream.makeAsyncIterator()
      }

      /// The next snapshot; nil when the task was cancelled.
      public mutating func next() async throws -> DocumentSnapshot? {
        try await base.next(isolation: #isolation)
      }
    }
  }
}

@available(*, unavailable)
extension DocumentReference.DocumentSnapshotsSequence.Iterator: Sendable {}
