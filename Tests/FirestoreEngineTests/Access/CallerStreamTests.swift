// Tests of the end of streams whose callers' credentials expire or are revoked.

import Access
import FirestoreModel
import Locking
import Testing

@testable import FirestoreEngine

@Suite("Streams that end with their credentials", .timeLimit(.minutes(1)))
struct CallerStreamTests {
  /// Records the events of a stream.
  private final class TestStream: CallerStream {
    let caller: Principal
    private let state = Guarded((error: FirestoreError?.none, isEnded: false))

    init(_ id: String, expiry: Int64? = nil) {
      caller = Principal(.user(User(id: id, claims: .none)), expiry: expiry)
    }

    var error: FirestoreError? { state.withLock { $0.error } }
    var isEnded: Bool { state.withLock { $0.isEnded } }

    func invalidate(with error: FirestoreError) { state.withLock { $0.error = error } }
    func endInvalidated() { state.withLock { $0.isEnded = true } }
  }

  private static let count = 10 * CallerStreams.sliceCount

  /// Adds streams whose credentials have expired, and waits until the first slice has ended.
  private func expire(_ streams: CallerStreams, _ clock: ManualClock) async throws -> [TestStream] {
    let expiry = clock.wallTime() / 1_000_000 + 5
    let expiring = (0..<Self.count).map { _ in TestStream("expiring", expiry: expiry) }
    for stream in expiring { streams.add(stream) }
    try await eventually("the timer waits") { clock.sleepers == 1 }
    clock.advance(by: 6_000_000)
    try await waitForSlices(1, expiring, clock)
    return expiring
  }

  private func waitForSlices(_ number: Int, _ streams: [TestStream], _ clock: ManualClock) async throws {
    let sleepers = number * CallerStreams.sliceCount < Self.count ? 1 : 0
    try await eventually("slice \(number) ends") {
      streams.count(where: \.isEnded) == number * CallerStreams.sliceCount && clock.sleepers == sleepers
    }
  }

  @Test("streams whose credentials expire together end in slices with pauses, and the timer stops")
  func slices() async throws {
    let clock = ManualClock()
    let streams = CallerStreams(clock: clock)
    let later = TestStream("later")
    streams.add(later)
    let expiring = try await expire(streams, clock)
    for number in 2...10 {
      clock.advance(by: CallerStreams.pause)
      try await waitForSlices(number, expiring, clock)
    }
    #expect(expiring.allSatisfy { $0.error == CallerStreams.expired })
    #expect(later.error == nil)
    for stream in expiring { streams.remove(stream) }
    #expect(streams.count == 1)
  }

  @Test("a revocation invalidates streams at once, and does not wait for many expired streams")
  func revocation() async throws {
    let clock = ManualClock()
    let streams = CallerStreams(clock: clock)
    let (revoked, other) = (TestStream("revoked", expiry: .max), TestStream("other", expiry: .max))
    let expiring = try await expire(streams, clock)
    streams.add(revoked)
    streams.add(other)
    try await eventually("the timer and the pause wait") { clock.sleepers == 2 }
    streams.revoke { $0.user?.id == "revoked" }
    #expect(revoked.error?.code == .unauthenticated)
    clock.advance(by: CallerStreams.pause)
    try await eventually("the revoked stream ends") { revoked.isEnded }
    #expect(expiring.contains { !$0.isEnded })
    #expect(other.error == nil)
  }

  @Test("a stream that opens after its credentials were revoked ends")
  func lateStream() async throws {
    let streams = CallerStreams(clock: ManualClock())
    streams.revoke { $0.user?.id == "revoked" }
    let (revoked, other) = (TestStream("revoked"), TestStream("other"))
    streams.add(revoked)
    streams.add(other)
    try await eventually("the stream ends") { revoked.isEnded }
    #expect(other.error == nil)
  }
}
