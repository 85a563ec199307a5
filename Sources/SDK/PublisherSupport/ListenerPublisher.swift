// Publishes the events of a listener.
//
// Each subscription adds a listener, so that every subscriber receives the current state first. Events that the subscriber
// has not requested yet wait in their order, because the changes of a query relate to the snapshot before.
//
// Invariant: the listener is removed when the subscription is cancelled, and after an error.

import Foundation

#if canImport(Combine)
  package import Combine
#else
  package import OpenCombine
#endif

/// Adds a listener for each subscriber.
package struct ListenerPublisher<Output, Failure: Error>: Publisher {
  package typealias Receive = (Result<Output, Failure>) -> Void

  /// Adds a listener; returns its removal.
  private let listen: (@escaping Receive) -> () -> Void

  package init(_ listen: @escaping (@escaping Receive) -> () -> Void) { self.listen = listen }

  package func receive<Downstream: Subscriber>(subscriber: Downstream)
  where Downstream.Input == Output, Downstream.Failure == Failure {
    let subscription = ListenerSubscription(subscriber)
    subscriber.receive(subscription: subscription)
    subscription.start(listen)
  }
}

/// Delivers events to one subscriber as it requests them.
// SAFETY: the state is read and written under the lock only; the subscriber is called outside of it by one thread at a time.
private final class ListenerSubscription<Downstream: Subscriber>: Subscription, @unchecked Sendable {
  private let lock = NSLock()
  /// Nil after the end.
  private var subscriber: Downstream?
  private var remove: (() -> Void)?
  private var demand = Subscribers.Demand.none
  private var waiting: [Downstream.Input] = []
  private var error: Downstream.Failure?
  private var isDelivering = false

  init(_ subscriber: Downstream) { self.subscriber = subscriber }

  func start(_ listen: (@escaping (Result<Downstream.Input, Downstream.Failure>) -> Void) -> () -> Void) {
    let remove = listen { event in
      self.lock.withLock {
        switch event {
        case .success(let output): self.waiting.append(output)
        case .failure(let error): self.error = error
        }
      }
      self.deliver()
    }
    let isActive = lock.withLock {
      if subscriber != nil { self.remove = remove }
      return subscriber != nil
    }
    // The subscriber cancelled before the listener existed, or received an error.
    if !isActive { remove() }
  }

  func request(_ additional: Subscribers.Demand) {
    lock.withLock { demand += additional }
    deliver()
  }

  func cancel() { end()?() }

  /// Releases the subscriber and returns the removal of the listener.
  private func end() -> (() -> Void)? {
    lock.withLock {
      defer { remove = nil }
      subscriber = nil
      waiting = []
      return remove
    }
  }

  private enum Delivery {
    case output(Downstream.Input, Downstream)
    case error(Downstream.Failure, Downstream)
  }

  /// Takes the next delivery; ends the work of this thread if there is none.
  private func next() -> Delivery? {
    lock.withLock {
      if let subscriber, !waiting.isEmpty, demand > .none {
        demand -= 1
        return .output(waiting.removeFirst(), subscriber)
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
      case .output(let output, let subscriber):
        let more = subscriber.receive(output)
        lock.withLock { demand += more }
      case .error(let error, let subscriber):
        end()?()
        subscriber.receive(completion: .failure(error))
      }
    }
  }
}
