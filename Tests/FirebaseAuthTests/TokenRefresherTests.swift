// Tests the token refresher: which requests share a refresh.

import Foundation
import Locking
import Testing

@testable import FirebaseAuth

/// A refresh that ends when the test calls `open`.
private final class Gate: Sendable {
  private struct State {
    var started = 0
    var waiting: [CheckedContinuation<String, any Error>] = []
  }

  private let state = Guarded(State())
  /// The number of started refreshes, after each start.
  let starts = Recorder<Int>()

  func refresh() async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      let number = state.withLock { state in
        state.started += 1
        state.waiting.append(continuation)
        return state.started
      }
      starts.record(number)
    }
  }

  /// Ends the oldest running refresh.
  func open(_ result: Result<String, any Error>) {
    let first = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
    first?.resume(with: result)
  }

  var started: Int { state.withLock { $0.started } }
}

@Suite("Shared token refreshes", .timeLimit(.minutes(1))) struct TokenRefresherTests {
  @Test("requests during a refresh share it; forced requests share the next refresh")
  func sharing() async throws {
    let gate = Gate()
    let refresher = TokenRefresher { try await gate.refresh() }
    let first = Task { try await refresher.run(isForced: true) }
    #expect(await gate.starts.next() == 1)
    // The refresh is in flight. These requests share it or the next one.
    async let joined = refresher.run(isForced: false)
    async let forced = refresher.run(isForced: true)
    async let forcedAgain = refresher.run(isForced: true)
    // Every request must have chosen a refresh before the first refresh ends.
    while refresher.waiterCount < 4 { await Task.yield() }
    gate.open(.success("one"))
    #expect(try await first.value == "one")
    #expect(await gate.starts.next() == 2)
    gate.open(.success("two"))
    #expect(try await joined == "one")
    let results = try await [forced, forcedAgain]
    #expect(results == ["two", "two"] && gate.started == 2)
  }

  @Test("an error is thrown to all callers that share the refresh, and the next request starts a new refresh")
  func failure() async throws {
    struct Failed: Error {}
    let gate = Gate()
    let refresher = TokenRefresher { try await gate.refresh() }
    let first = Task { try await refresher.run(isForced: false) }
    #expect(await gate.starts.next() == 1)
    gate.open(.failure(Failed()))
    await #expect(throws: Failed.self) { try await first.value }
    let second = Task { try await refresher.run(isForced: false) }
    #expect(await gate.starts.next() == 2)
    gate.open(.success("two"))
    #expect(try await second.value == "two")
  }
}
