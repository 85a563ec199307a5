// The token refresher: refreshes the tokens of one user.
//
// Requests that arrive while a refresh is in flight share its result. A forced request does not: the refresh
// in flight may have begun before the change for which the app forces it, such as new custom claims. All
// forced requests that arrive during a refresh share one further refresh.
//
// Invariant: at most one refresh is in flight and at most one is waiting.

import Locking

/// Refreshes the tokens of one user, and shares each refresh between concurrent callers.
final class TokenRefresher: Sendable {
  private struct RefreshInFlight {
    let number: Int
    let task: Task<String, any Error>
  }

  private struct State {
    var current: RefreshInFlight?
    var next: RefreshInFlight?
    var count = 0
    var waiters = 0
  }

  private let state = Guarded(State())
  private let refresh: @Sendable () async throws -> String

  /// Makes a refresher.
  ///
  /// - Parameter refresh: requests new tokens, stores them and returns the ID token.
  init(_ refresh: @escaping @Sendable () async throws -> String) {
    self.refresh = refresh
  }

  /// Refreshes the tokens, or waits for a refresh that other callers started.
  ///
  /// - Parameter isForced: whether the refresh must begin after this call.
  /// - Returns: the ID token.
  func run(isForced: Bool) async throws -> String {
    let flight = state.withLock { state in
      state.waiters += 1
      if let current = state.current {
        if !isForced { return current }
        if let next = state.next { return next }
        let next = start(&state, after: current)
        state.next = next
        return next
      }
      let flight = start(&state, after: nil)
      state.current = flight
      return flight
    }
    defer { state.withLock { $0.waiters -= 1 } }
    return try await flight.task.value
  }

  /// The number of callers that wait for a refresh.
  var waiterCount: Int { state.withLock { $0.waiters } }

  private func start(_ state: inout State, after previous: RefreshInFlight?) -> RefreshInFlight {
    state.count += 1
    let number = state.count
    let task = Task {
      _ = await previous?.task.result
      defer { finish(number) }
      return try await refresh()
    }
    return RefreshInFlight(number: number, task: task)
  }

  private func finish(_ number: Int) {
    state.withLock { state in
      if state.current?.number == number {
        state.current = state.next
        state.next = nil
      }
    }
  }
}
