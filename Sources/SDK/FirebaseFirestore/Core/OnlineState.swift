// The online state: whether the client considers the server reachable. Views and listeners depend on it.
//
// unknown --first message--> online
// unknown --one failed attempt, or ten seconds without connection--> offline
// online  --stream lost--> unknown, and the attempt count restarts
//
// Invariant: in `unknown` listeners may still wait for the server. In `offline` they receive results from the
// cache.

import FirestoreModel

enum OnlineState: Sendable, Equatable {
  case unknown, online, offline
}

struct OnlineStateTracker {
  /// The required action on the ten-second timer.
  enum TimerChange { case start, stop }

  static let attemptsBeforeOffline = 1
  static let timeoutSeconds = 10.0

  private(set) var state = OnlineState.unknown
  private var failures = 0
  private(set) var isTimerRunning = false

  /// Called when a watch stream starts.
  mutating func streamStarted() -> TimerChange? {
    guard failures == 0 else { return nil }
    state = .unknown
    isTimerRunning = true
    return .start
  }

  /// Called when the timer of ten seconds fires.
  mutating func timedOut() {
    isTimerRunning = false
    if state == .unknown { state = .offline }
  }

  /// Called when a watch stream has failed.
  mutating func streamFailed() -> TimerChange? {
    if state == .online {
      state = .unknown
      return nil
    }
    failures += 1
    guard failures >= OnlineStateTracker.attemptsBeforeOffline else { return nil }
    state = .offline
    return stopTimer()
  }

  /// Sets the state after another event: the server sent a message, or the app enabled or disabled the
  /// network.
  mutating func set(_ new: OnlineState) -> TimerChange? {
    failures = 0
    state = new
    return stopTimer()
  }

  private mutating func stopTimer() -> TimerChange? {
    guard isTimerRunning else { return nil }
    isTimerRunning = false
    return .stop
  }
}
