// Provides snapshots as asynchronous sequences.
//
// Invariant: the listener of a sequence is removed when the consuming task ends or the iterator is released.
// If the listener is removed for another reason, such as `terminate()`, the sequence ends.

import Foundation

/// Finishes a sequence when its listener is released. Only the listener's closure retains this object.
private final class SnapshotStream<Element: Sendable>: Sendable {
  private let continuation: AsyncThrowingStream<Element, any Error>.Continuation

  init(_ continuation: AsyncThrowingStream<Element, any Error>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }

  func receive(_ snapshot: Element?, _ error: (any Error)?) {
    if let snapshot {
      continuation.yield(snapshot)
    } else {
      continuation.finish(throwing: error ?? FirestoreErrorCode(.unknown).object)
    }
  }
}

/// Starts a listener and makes the stream of its snapshots. Iterators of both sequence types use it.
private func stream<Element: Sendable>(
  _ listen: (@escaping (Element?, (any Error)?) -> Void) -> any ListenerRegistration
) -> AsyncThrowingStream<Element, any Error> {
  AsyncThrowingStream { continuation in
    let snapshots = SnapshotStream(continuation)
    let registration = AppClosure(call: listen { snapshots.receive($0, $1) })
    continuation.onTermination = { _ in registration.call.remove() }
  }
}

extension Query {
  /// The query's snapshots, beginning with its current result.
  public var snapshots: QuerySnapshotsSequence { snapshots(includeMetadataChanges: false) }

  /// The query's snapshots, and optionally snapshots in which only the metadata changed.
  public func snapshots(includeMetadataChanges: Bool) -> QuerySnapshotsSequence {
    QuerySnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
  }

  /// The snapshots of a query in the order of their arrival. Each iterator has a separate listener. The
  /// sequence throws the listener's error.
  public struct QuerySnapshotsSequence: AsyncSequence, Sendable {
    /// A query's snapshot.
    public typealias Element = QuerySnapshot
    /// The listener's error.
    public typealias Failure = any Error
    /// Receives the snapshots of one listener.
    public typealias AsyncIterator = Iterator

    private let query: Query
    private let includeMetadataChanges: Bool

    /// Makes a sequence. It starts to listen when an iterator is made.
    public init(_ query: Query, includeMetadataChanges: Bool) {
      self.query = query
      self.includeMetadataChanges = includeMetadataChanges
    }

    /// Starts to listen.
    public func makeAsyncIterator() -> Iterator {
      Iterator(
        stream { query.addSnapshotListener(includeMetadataChanges: includeMetadataChanges, listener: $0) })
    }

    /// Receives the snapshots of one listener.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator

      fileprivate init(_ stream: AsyncThrowingStream<QuerySnapshot, any Error>) {
        base = stream.makeAsyncIterator()
      }

      /// The next snapshot; nil after the task was cancelled or the listener was removed.
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

  /// The document's snapshots, and optionally snapshots in which only the metadata changed.
  public func snapshots(includeMetadataChanges: Bool) -> DocumentSnapshotsSequence {
    DocumentSnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
  }

  /// The snapshots of a document in the order of their arrival. Each iterator has a separate listener. The
  /// sequence throws the listener's error.
  public struct DocumentSnapshotsSequence: AsyncSequence, Sendable {
    /// A document's snapshot.
    public typealias Element = DocumentSnapshot
    /// The listener's error.
    public typealias Failure = any Error
    /// Receives the snapshots of one listener.
    public typealias AsyncIterator = Iterator

    private let reference: DocumentReference
    private let includeMetadataChanges: Bool

    /// Makes a sequence. It starts to listen when an iterator is made.
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

    /// Receives the snapshots of one listener.
    public struct Iterator: AsyncIteratorProtocol {
      private var base: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator

      fileprivate init(_ stream: AsyncThrowingStream<DocumentSnapshot, any Error>) {
        base = stream.makeAsyncIterator()
      }

      /// The next snapshot; nil after the task was cancelled or the listener was removed.
      public mutating func next() async throws -> DocumentSnapshot? {
        try await base.next(isolation: #isolation)
      }
    }
  }
}

@available(*, unavailable)
extension DocumentReference.DocumentSnapshotsSequence.Iterator: Sendable {}
