// Publishes the snapshots of a document or query.
//
// Each subscription adds a listener, so that every subscriber receives the current snapshot first. Snapshots that the
// subscriber has not requested yet wait in their order, because the changes of a query relate to the snapshot before.
//
// Invariant: the listener is removed when the subscription is cancelled, and after an error.

import FirebaseFirestore
import Foundation

#if canImport(Combine)
  import Combine
#else
  import OpenCombine
#endif

/// Adds a listener for each subscriber.
struct SnapshotPublisher<Output>: Publisher {
  typealias Failure = any Error
  typealias Listener = (Output?, (any Error)?) -> Void

  /// Adds a listener.
  let listen: (@escaping Listener) -> any ListenerRegistration

  func receive<Downstream: Subscriber>(subscriber: Downstream)
  where Downstream.Input == Output, Downstream.Failure == any Error {
    let subscription = SnapshotSubscription(subscriber)
    subscriber.receive(subscription: subscription)
    subscription.start(listen)
  }
}

/// Delivers snapshots to one subscriber as it requests them.
// SAFETY: the state is read and written under the lock only; the subscriber is called outside of it by one thread at a time.
private final class SnapshotSubscription<Downstream: Subscriber>: Subscription, @unchecked Sendable
where Downstream.Failure == any Error {
  private let lock = NSLock()
  /// Nil after the end.
  private var subscriber: Downstream?
  private var registration: (any ListenerRegistration)?
  private var demand = Subscribers.Demand.none
  private var waiting: [Downstream.Input] = []
  private var error: (any Error)?
  private var isDelivering = false

  init(_ subscriber: Downstream) { self.subscriber = subscriber }

  func start(_ listen: (@escaping (Downstream.Input?, (any Error)?) -> Void) -> any ListenerRegistration) {
    let registration = listen { snapshot, error in
      self.lock.withLock {
        if let snapshot {
          self.waiting.append(snapshot)
        } else {
          self.error = error ?? FirestoreErrorCode(.unknown)
        }
      }
      self.deliver()
    }
    let isActive = lock.withLock {
      if subscriber != nil { self.registration = registration }
      return subscriber != nil
    }
    // The subscriber cancelled before the listener existed, or received an error.
    if !isActive { registration.remove() }
  }

  func request(_ additional: Subscribers.Demand) {
    lock.withLock { demand += additional }
    deliver()
  }

  func cancel() { end()?.remove() }

  /// Releases the subscriber and returns the listener to remove.
  private func end() -> (any ListenerRegistration)? {
    lock.withLock {
      defer { registration = nil }
      subscriber = nil
      waiting = []
      return registration
    }
  }

  private enum Delivery {
    case snapshot(Downstream.Input, Downstream)
    case error(any Error, Downstream)
  }

  /// Takes the next delivery; ends the work of this thread if there is none.
  private func next() -> Delivery? {
    lock.withLock {
      if let subscriber, !waiting.isEmpty, demand > .none {
        demand -= 1
        return .snapshot(waiting.removeFirst(), subscriber)
      }
      if let subscriber, waiting.isEmpty, let error { return .error(error, subscriber) }
      isDelivering = false
      return nil
    }
  }

  private func deliver() {
    let isFree = lock.withLock {
      defer { isDelivering = true }
      return !isDelivering
    }
    guard isFree else { return }
    while let delivery = next() {
      switch delivery {
      case .snapshot(let snapshot, let subscriber):
        let more = subscriber.receive(snapshot)
        lock.withLock { demand += more }
      case .error(let error, let subscriber):
        end()?.remove()
        subscriber.receive(completion: .failure(error))
      }
    }
  }
}
