// Observes a query: with and without the key of the preceding sibling, once, and as a sequence.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseQuery {
  /// Observes until removed.
  ///
  /// - Parameters:
  ///   - eventType: the kind of events to observe.
  ///   - block: called on the callback queue with a snapshot of the value, or of the child.
  ///   - cancelBlock: called once if the server ends the observation, for instance because the rules
  ///     do not allow it.
  /// - Returns: the handle for `removeObserver(withHandle:)`.
  @discardableResult
  public func observe(
    _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) -> DatabaseHandle {
    register(eventType, isSingle: false, { snapshot, _ in block(snapshot) }, cancelBlock)
  }

  /// Observes until removed. Each event has the key of the preceding sibling in the query's order.
  ///
  /// - Returns: the handle for `removeObserver(withHandle:)`.
  @discardableResult
  public func observe(
    _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) -> DatabaseHandle {
    register(eventType, isSingle: false, block, cancelBlock)
  }

  /// Observes one event, the first.
  public func observeSingleEvent(
    of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) {
    _ = register(eventType, isSingle: true, { snapshot, _ in block(snapshot) }, cancelBlock)
  }

  /// Observes one event, the first, with the key of the sibling before.
  public func observeSingleEvent(
    of eventType: DataEventType,
    andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) {
    _ = register(eventType, isSingle: true, block, cancelBlock)
  }

  /// Waits for one event, the first, with the key of the sibling before.
  ///
  /// If the server denies the observation, or the app is deleted before the first event, the snapshot has no value.
  @discardableResult
  public func observeSingleEventAndPreviousSiblingKey(
    of eventType: DataEventType
  ) async -> (DataSnapshot, String?) {
    let nothing = SnapshotEvent(
      snapshot: DataSnapshot(
        node: .empty, path: path, ordering: spec.ordering, repository: optionalRepository),
      previousKey: nil)
    let event = await OneShotContinuation.wait(fallback: nothing) { continuation in
      _ = register(
        eventType, isSingle: true,
        { continuation.resume(returning: SnapshotEvent(snapshot: $0, previousKey: $1)) },
        { _ in continuation.resume(returning: nothing) })
    }
    return (event.snapshot, event.previousKey)
  }

  /// The snapshots of the query's events as a sequence. It ends with an error if the server ends the observation, and
  /// without one when the app is deleted.
  ///
  /// ```swift
  /// for try await snapshot in ref.values() { print(snapshot.value ?? "") }
  /// for try await comment in ref.values(of: .childAdded) { print(comment.key) }
  /// ```
  ///
  /// Observing begins with the call and ends with the iteration. For a slow consumer, only the newest value is
  /// buffered, but all events of children.
  ///
  /// - Parameter eventType: the kind of events to observe.
  public func values(
    of eventType: DataEventType = .value
  ) -> AsyncThrowingStream<DataSnapshot, any Error> {
    let policy: AsyncThrowingStream<DataSnapshot, any Error>.Continuation.BufferingPolicy =
      eventType == .value ? .bufferingNewest(1) : .unbounded
    return AsyncThrowingStream(bufferingPolicy: policy) { continuation in
      let feed = Feed(continuation)
      let handle = register(
        eventType, isSingle: false, { snapshot, _ in feed.continuation.yield(snapshot) },
        { feed.continuation.finish(throwing: $0) })
      continuation.onTermination = { [self] _ in removeObserver(withHandle: handle) }
    }
  }
}

/// Ends a sequence when its observer is released. Only the observer's blocks hold this object.
private final class Feed: Sendable {
  let continuation: AsyncThrowingStream<DataSnapshot, any Error>.Continuation

  init(_ continuation: AsyncThrowingStream<DataSnapshot, any Error>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }
}
