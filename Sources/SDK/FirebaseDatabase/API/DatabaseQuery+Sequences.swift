// Provides the events of a query as an asynchronous sequence.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseQuery {
  /// The snapshots of the query's events as an asynchronous sequence. The sequence throws an error if the
  /// server ends the observation. It ends without an error when the app is deleted.
  ///
  /// ```swift
  /// for try await snapshot in ref.values() { print(snapshot.value ?? "") }
  /// for try await comment in ref.values(of: .childAdded) { print(comment.key) }
  /// ```
  ///
  /// The observation begins with the call and ends with the iteration. For a slow consumer, the sequence buffers
  /// all child events, but only the newest value event.
  ///
  /// - Parameter eventType: the kind of events to observe.
  public func values(
    of eventType: DataEventType = .value
  ) -> AsyncThrowingStream<DataSnapshot, any Error> {
    let policy: AsyncThrowingStream<DataSnapshot, any Error>.Continuation.BufferingPolicy =
      eventType == .value ? .bufferingNewest(1) : .unbounded
    return AsyncThrowingStream(bufferingPolicy: policy) { continuation in
      let events = EventStream(continuation)
      let handle = register(
        eventType, isSingle: false, { snapshot, _ in events.continuation.yield(snapshot) },
        { events.continuation.finish(throwing: $0) })
      continuation.onTermination = { [self] _ in removeObserver(withHandle: handle) }
    }
  }
}

/// Finishes a sequence when no event can arrive any more. Only the observer's blocks retain this object, so
/// it is released with them.
private final class EventStream: Sendable {
  let continuation: AsyncThrowingStream<DataSnapshot, any Error>.Continuation

  init(_ continuation: AsyncThrowingStream<DataSnapshot, any Error>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }
}
