// Publishes the events of a listener.
//
// Each subscription adds a listener, so that every subscriber receives the current state first. Events that the subscriber
// has not requested yet wait in their order, because the changes of a query relate to the snapshot before.
//
// Invariant: the listener is removed when the subscription is cancelled, and after an error. The subscriber receives
// everything on the listener's queue.

package import Dispatch
import Foundation

#if canImport(Combine)
  package import Combine
#else
  package import OpenCombine
#endif

/// Adds a listener for each subscriber.
package struct ListenerPublisher<Output, Failure: Error>: Publisher {
  package typealias Receive = (Result<Output, Failure>) -> Void

  /// The queue on which the listener is called.
  private let queue: () -> DispatchQueue
  /// Adds a listener; returns its removal.
  private let listen: (@escaping Receive) -> () -> Void

  /// - Parameters:
  ///   - queue: the queue on which the listener is called, read at each subscription.
  ///   - listen: adds a listener; returns its removal.
  package init(
    on queue: @escaping @autoclosure () -> DispatchQueue,
    _ listen: @escaping (@escaping Receive) -> () -> Void
  ) {
    self.queue = queue
    self.listen = listen
  }

  package func receive<Downstream: Subscriber>(subscriber: Downstream)
  where Downstream.Input == Output, Downstream.Failure == Failure {
    let subscription = ListenerSubscription(subscriber, on: queue())
    subscriber.receive(subscription: subscription)
    subscription.start(listen)
  }
}

/// Events that a subscriber has not received, whatever its type.
private protocol WaitingEvents: Sendable {
  func deliver()
}

/// Delivers events to one subscriber as it requests them.
// SAFETY: the state is read and written under the lock only; the subscriber is called outside of it by one thread at a time.
private final class ListenerSubscription<Downstream: Subscriber>: Subscription, WaitingEvents,
  @unchecked Sendable
{
  private let lock = NSLock()
  private let queue: DispatchQueue
  /// Nil after the end.
  private var subscriber: Downstream?
  private var remove: (() -> Void)?
  private var demand = Subscribers.Demand.none
  private var waiting: [Downstream.Input] = []
  private var error: Downstream.Failure?
  private var isDelivering = false

  init(_ subscriber: Downstream, on queue: DispatchQueue) {
    self.subscriber = subscriber
    self.queue = queue
  }

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
    let isWaiting = lock.withLock {
      demand += additional
      return !waiting.isEmpty
    }
    // Any thread may request; only the listener's queue delivers.
    guard isWaiting else { return }
    let events: any WaitingEvents = self
    queue.async { events.deliver() }
  }

  func cancel() { end()?() }

  /// Releases the subscriber and returns the removal of the listener.
  private func end() -> (() -> Void)? {
    let ended = lock.withLock {
      defer { (remove, subscriber, waiting) = (nil, nil, []) }
      return (remove: remove, subscriber: subscriber, waiting: waiting)
    }
    // The subscriber and its events may end here. Their `deinit` may cancel again, which takes the lock.
    return withExtendedLifetime(ended) { ended.remove }
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

  func deliver() {
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
