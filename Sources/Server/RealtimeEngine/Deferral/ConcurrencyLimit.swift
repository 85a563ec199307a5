// Limits how many tasks of all namespaces do one kind of work at a time.
//
// Invariant: tasks begin in the order of their arrival, and at most `maximum` tasks work at the same time.

import Locking

/// A limit of concurrent work.
final class ConcurrencyLimit: Sendable {
  private struct State {
    var free: Int
    var waiting: [Promise<Void>] = []
  }

  private let state: Guarded<State>

  /// - Parameter maximum: the maximum number of concurrent tasks.
  init(_ maximum: Int) { state = Guarded(State(free: maximum)) }

  /// Waits until the work may begin, and runs it.
  func run<Output>(_ work: () async -> Output) async -> Output {
    let waiting = state.withLock { state -> Promise<Void>? in
      if state.free > 0 {
        state.free -= 1
        return nil
      }
      let promise = Promise<Void>()
      state.waiting.append(promise)
      return promise
    }
    await waiting?.value()
    defer { end() }
    return await work()
  }

  private func end() {
    let next = state.withLock { state -> Promise<Void>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resolve(())
  }
}
