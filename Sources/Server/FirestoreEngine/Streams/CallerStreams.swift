// Ends the streams of callers whose credentials have expired or were revoked.
//
// One timer serves all streams: once a second it takes the streams whose credentials have expired. Many credentials may
// expire in the same second, and the end of a stream takes time on its event loop. So streams end one after another, each after
// a pause of the time that the previous one took: half of the time remains for other requests.
//
// Invariant: a revoked stream is invalidated before `revoke` returns, and sends nothing afterwards, even while it is queued
// to end. Expired credentials are also checked by each stream before it sends.

import Access
import FirestoreModel
import Locking

/// The open streams whose callers have credentials.
package final class CallerStreams: Sendable {
  private struct State {
    var streams: [ObjectIdentifier: any CallerStream] = [:]
    /// The streams by the second since 1970 in which their credentials expire.
    var expiries: [Int64: Set<ObjectIdentifier>] = [:]
    /// Streams that are queued to end. The stream that was added last ends first, so that a revocation does not wait for many
    /// expired streams.
    var ending: [(stream: any CallerStream, error: FirestoreError)] = []
    var isTimerRunning = false
    var isEnding = false
    var isRevoked: (@Sendable (Principal) -> Bool)?
  }

  private static let second: UInt64 = 1_000_000

  /// The error of expired credentials. Clients open the stream again with a fresh token.
  static let expired = FirestoreError.unauthenticated("The credentials of this stream have expired.")
  private static let revoked = FirestoreError.unauthenticated("The credentials of this stream were revoked.")

  private let clock: any EngineClock
  private let state = Guarded(State())

  init(clock: any EngineClock) { self.clock = clock }

  /// Adds a stream. Ends it if its credentials were revoked after they were verified.
  package func add(_ stream: any CallerStream) {
    let caller = stream.caller
    guard caller != .nobody else { return }
    let (isRevoked, startsTimer) = state.withLock { state in
      state.streams[ObjectIdentifier(stream)] = stream
      var startsTimer = false
      if let expiry = caller.expiry {
        state.expiries[expiry, default: []].insert(ObjectIdentifier(stream))
        startsTimer = !state.isTimerRunning
        state.isTimerRunning = true
      }
      return (state.isRevoked, startsTimer)
    }
    if startsTimer { startTimer() }
    if let isRevoked, isRevoked(caller) {
      stream.invalidate(with: Self.revoked)
      end([stream], with: Self.revoked)
    }
  }

  /// Removes a stream that has ended. Does nothing if it was not added.
  package func remove(_ stream: any CallerStream) {
    let id = ObjectIdentifier(stream)
    state.withLock { state in
      guard state.streams.removeValue(forKey: id) != nil, let expiry = stream.caller.expiry else { return }
      state.expiries[expiry]?.remove(id)
      if state.expiries[expiry]?.isEmpty == true { state.expiries[expiry] = nil }
    }
  }

  /// The number of open streams of callers with credentials.
  var count: Int { state.withLock { $0.streams.count } }

  /// Ends the streams of callers whose credentials are revoked. They send nothing more once this returns.
  /// - Parameter isRevoked: whether a caller's credentials are revoked. Must cover all revocations so far, because it also
  ///   checks streams that open later.
  func revoke(where isRevoked: @escaping @Sendable (Principal) -> Bool) {
    let streams = state.withLock { state in
      state.isRevoked = isRevoked
      return Array(state.streams.values)
    }
    let revoked = streams.filter { isRevoked($0.caller) }
    for stream in revoked { stream.invalidate(with: Self.revoked) }
    end(revoked, with: Self.revoked)
  }

  // MARK: Expiry

  /// Ends expired streams at the start of each second, while there are streams whose credentials expire.
  private func startTimer() {
    Task { [weak self, clock] in
      while true {
        let elapsed = UInt64(clamping: clock.wallTime()) % Self.second
        do { try await clock.sleep(until: clock.now() + Self.second - elapsed) } catch { return }
        guard let streams = self, streams.endExpired() else { return }
      }
    }
  }

  /// Ends the streams whose credentials have expired. Returns false if no other credentials will expire.
  private func endExpired() -> Bool {
    let now = clock.wallTime()
    let (expired, isTimerRunning) = state.withLock { state -> ([any CallerStream], Bool) in
      var expired: [any CallerStream] = []
      for (expiry, ids) in state.expiries where Principal(.nobody, expiry: expiry).hasExpired(at: now) {
        expired += ids.compactMap { state.streams[$0] }
        state.expiries[expiry] = nil
      }
      state.isTimerRunning = !state.expiries.isEmpty
      return (expired, state.isTimerRunning)
    }
    end(expired, with: Self.expired)
    return isTimerRunning
  }

  // MARK: Ending

  private func end(_ streams: [any CallerStream], with error: FirestoreError) {
    guard !streams.isEmpty else { return }
    let starts = state.withLock { state in
      state.ending += streams.map { ($0, error) }
      defer { state.isEnding = true }
      return !state.isEnding
    }
    if starts { Task { await self.endOneByOne() } }
  }

  /// Ends the queued streams. Each waits for the event loop of the previous one, so that no loop's queue fills up.
  private func endOneByOne() async {
    while let (stream, error) = nextEnding() {
      let start = clock.now()
      stream.invalidate(with: error)
      await stream.endInvalidated()
      let end = clock.now()
      // A cancelled sleep only shortens the pause.
      try? await clock.sleep(until: end + (end - start))
    }
  }

  private func nextEnding() -> (stream: any CallerStream, error: FirestoreError)? {
    state.withLock { state in
      precondition(state.isEnding, "invariant: one task ends the streams")
      let next = state.ending.popLast()
      state.isEnding = next != nil
      return next
    }
  }
}
