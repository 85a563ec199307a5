// The listener publisher: publishes the events of a listener.
//
// Each subscription adds a listener, so that every subscriber receives the current state first. Events that a
// subscriber has not requested yet are queued in order and never dropped, because the changes in a query
// snapshot relate to the previous snapshot.
//
// Invariant: the listener is removed when the subscription is cancelled and after an error. The subscriber is
// called only on the listener's queue.

package import Dispatch
import Foundation

#if canImport(Combine)
  package import Combine
#else
  package import OpenCombine
#endif

/// Publishes events, with one listener for each subscriber.
package struct ListenerPublisher<Output, Failure: Error>: Publisher {
  package typealias Receive = (Result<Output, Failure>) -> Void

  /// The queue on which the listener is called.
  private let queue: () -> DispatchQueue
  /// Adds a listener, and returns a closure that removes it.
  private let listen: (@escaping Receive) -> () -> Void

  /// - Parameters:
  ///   - queue: the queue on which the listener is called. It is read at each subscription.
  ///   - listen: adds a listener, and returns a closure that removes it.
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

/// A subscription without the type of its subscriber, so that a closure of a queue can retain it.
private protocol WaitingEvents: Sendable {
  func deliver()
}

/// Delivers events to one subscriber when it requests them.
// SAFETY: the state is used only under the lock. The subscriber is called outside the lock, by one thread at
// a time.
private final class ListenerSubscription<Downstream: Subscriber>: Subscription, WaitingEvents,
  @unchecked Sendable
{
  private let lock = NSLock()
  private let queue: DispatchQueue
  /// The subscriber; nil after the subscription has ended.
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
    // The subscriber has cancelled or has received an error before the listener was stored.
    if !isActive { remove() }
  }

  func request(_ additional: Subscribers.Demand) {
    let isWaiting = lock.withLock {
      demand += additional
      return !waiting.isEmpty
    }
    // Any thread may request events, but only the listener's queue delivers them.
    guard isWaiting else { return }
    let events: any WaitingEvents = self
    queue.async { events.deliver() }
  }

  func cancel() { end()?() }

  /// Releases the subscriber and returns the closure that removes the listener.
  private func end() -> (() -> Void)? {
    let ended = lock.withLock {
      defer { (remove, subscriber, waiting) = (nil, nil, []) }
      return (remove: remove, subscriber: subscriber, waiting: waiting)
    }
    // The subscriber and its events may be released here, outside the lock. Their `deinit` may call `cancel`,
    // which takes the lock.
    return withExtendedLifetime(ended) { ended.remove }
  }

  private enum Delivery {
    case output(Downstream.Input, Downstream)
    case error(Downstream.Failure, Downstream)
  }

  /// Returns the next delivery. If there is none, this thread stops delivering.
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
