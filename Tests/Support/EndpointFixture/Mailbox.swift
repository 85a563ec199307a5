// A mailbox is a queue of received events. A test waits for the next event with a deadline, instead of
// sleeping for a fixed time.

import NIOConcurrencyHelpers
import NIOCore

struct DeadlinePassed: Error {}

/// A queue between an event loop and a test.
final class Mailbox<Element: Sendable>: Sendable {
  private struct State {
    var elements: [Element] = []
    var waiters: [(id: Int, promise: EventLoopPromise<Element>)] = []
    var lastID = 0
  }

  private let eventLoop: any EventLoop
  private let state = NIOLockedValueBox(State())

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  func put(_ element: Element) {
    let waiter = state.withLockedValue { state -> EventLoopPromise<Element>? in
      if state.waiters.isEmpty {
        state.elements.append(element)
        return nil
      }
      return state.waiters.removeFirst().promise
    }
    waiter?.succeed(element)
  }

  /// Whether the queue is empty.
  var isEmpty: Bool { state.withLockedValue { $0.elements.isEmpty } }

  /// Removes and returns all elements, without waiting.
  func removeAll() -> [Element] {
    state.withLockedValue { state in
      defer { state.elements = [] }
      return state.elements
    }
  }

  func next(within deadline: TimeAmount = .seconds(60)) async throws -> Element {
    let promise = eventLoop.makePromise(of: Element.self)
    let (ready, id) = state.withLockedValue { state -> (Element?, Int) in
      guard state.elements.isEmpty else { return (state.elements.removeFirst(), 0) }
      state.lastID += 1
      state.waiters.append((state.lastID, promise))
      return (nil, state.lastID)
    }
    if let ready { promise.succeed(ready) }
    let timer = eventLoop.scheduleTask(in: deadline) { [state] in
      let isWaiting = state.withLockedValue { state in
        guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return false }
        state.waiters.remove(at: index)
        return true
      }
      if isWaiting { promise.fail(DeadlinePassed()) }
    }
    defer { timer.cancel() }
    return try await promise.futureResult.get()
  }
}
