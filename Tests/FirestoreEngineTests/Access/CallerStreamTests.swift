// Tests that streams end when the credentials of their callers expire or are revoked.

import Access
import FirestoreModel
import Locking
import Testing

@testable import FirestoreEngine

@Suite("Streams that end with their credentials", .timeLimit(.minutes(1)))
struct CallerStreamTests {
  /// A stream that ends when the test calls `completeEnd`.
  private final class TestStream: CallerStream {
    private struct State {
      var error: FirestoreError?
      var ending: CheckedContinuation<Void, Never>?
      var isEnded = false
    }

    let caller: Principal
    private let state = Guarded(State())

    init(_ id: String, expiry: Int64? = nil) {
      caller = Principal(.user(User(id: id, claims: .none)), expiry: expiry)
    }

    var error: FirestoreError? { state.withLock { $0.error } }
    var isEnding: Bool { state.withLock { $0.ending != nil } }
    var isEnded: Bool { state.withLock { $0.isEnded } }

    func invalidate(with error: FirestoreError) { state.withLock { $0.error = error } }

    func endInvalidated() async {
      await withCheckedContinuation { ending in state.withLock { $0.ending = ending } }
    }

    /// Lets the end of the stream complete.
    func completeEnd() {
      let ending = state.withLock { state in
        state.isEnded = true
        defer { state.ending = nil }
        return state.ending
      }
      ending?.resume()
    }
  }

  /// Adds streams whose credentials expire together, lets them expire, and waits until the first stream begins to end.
  private func addExpiringStreams(_ streams: CallerStreams, _ clock: ManualClock) async throws -> [TestStream]
  {
    let expiry = clock.wallTime() / 1_000_000 + 5
    let expiring = (0..<50).map { _ in TestStream("expiring", expiry: expiry) }
    for stream in expiring { streams.add(stream) }
    try await eventually("the timer waits") { clock.sleepers == 1 }
    clock.advance(by: 6_000_000)
    try await eventually("a stream ends") { expiring.contains(where: \.isEnding) }
    return expiring
  }

  @Test("streams whose credentials expire together end one after another, with pauses, and the timer stops")
  func oneByOne() async throws {
    let clock = ManualClock()
    let streams = CallerStreams(clock: clock)
    let later = TestStream("later")
    streams.add(later)
    let expiring = try await addExpiringStreams(streams, clock)
    for number in 1...expiring.count {
      try await eventually("stream \(number) ends") { expiring.contains(where: \.isEnding) }
      let ending = expiring.filter(\.isEnding)
      #expect(ending.count == 1)
      #expect(ending.allSatisfy { $0.error == CallerStreams.expired })
      #expect(expiring.count(where: \.isEnded) == number - 1)
      // The pause before the next end is as long as this end took.
      clock.advance(by: 500)
      for stream in ending { stream.completeEnd() }
      try await eventually("the pause begins") { clock.sleepers == 1 }
      clock.advance(by: 499)
      #expect(clock.sleepers == 1)
      clock.advance(by: 1)
    }
    #expect(clock.sleepers == 0)
    #expect(later.error == nil)
    for stream in expiring { streams.remove(stream) }
    #expect(streams.count == 1)
  }

  @Test("a revocation invalidates streams immediately, and does not wait for many expired streams")
  func revocation() async throws {
    let clock = ManualClock()
    let streams = CallerStreams(clock: clock)
    let (revoked, other) = (TestStream("revoked", expiry: .max), TestStream("other", expiry: .max))
    let expiring = try await addExpiringStreams(streams, clock)
    streams.add(revoked)
    streams.add(other)
    streams.revoke { $0.user?.id == "revoked" }
    #expect(revoked.error?.code == .unauthenticated)
    for stream in expiring where stream.isEnding { stream.completeEnd() }
    try await eventually("the revoked stream ends") { revoked.isEnding }
    #expect(expiring.count(where: \.isEnded) == 1)
    #expect(other.error == nil)
    revoked.completeEnd()
    while expiring.contains(where: { !$0.isEnded }) {
      try await eventually("the next stream ends") { expiring.contains(where: \.isEnding) }
      for stream in expiring where stream.isEnding { stream.completeEnd() }
    }
  }

  @Test("a stream that opens after its credentials were revoked ends")
  func lateStream() async throws {
    let streams = CallerStreams(clock: ManualClock())
    streams.revoke { $0.user?.id == "revoked" }
    let (revoked, other) = (TestStream("revoked"), TestStream("other"))
    streams.add(revoked)
    streams.add(other)
    try await eventually("the stream ends") { revoked.isEnding }
    #expect(other.error == nil)
    revoked.completeEnd()
  }
}
