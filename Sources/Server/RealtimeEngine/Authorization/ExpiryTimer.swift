// Wakes a database when the credentials of a caller expire, so that its listens end even if nothing is written.
//
// Batches themselves compare expiries with the clock. So the timer determines only when an idle database notices an
// expiry.

import Locking

/// The timer of one database.
final class ExpiryTimer: Sendable {
  private struct State {
    var seconds: Int64 = .max
    var task: Task<Void, Never>?
    var isStopped = false
  }

  private let state = Guarded(State())
  /// The clock in milliseconds since the Unix epoch.
  private let now: @Sendable () -> Int64
  private let due: @Sendable () -> Void

  /// Maximum seconds of one sleep of the timer, so that it notices a change of the clock.
  private static let maximumSleep: Int64 = 3_600

  /// - Parameter due: called when an expiry has passed.
  init(now: @escaping @Sendable () -> Int64, due: @escaping @Sendable () -> Void) {
    self.now = now
    self.due = due
  }

  /// Schedules the next wake-up, unless an earlier one is scheduled.
  ///
  /// - Parameter seconds: the expiry in seconds since 1970.
  func schedule(_ seconds: Int64) {
    let previous = state.withLock { state -> Task<Void, Never>? in
      guard !state.isStopped, seconds < state.seconds else { return nil }
      state.seconds = seconds
      defer { state.task = Task { await self.run(seconds) } }
      return state.task
    }
    previous?.cancel()
  }

  /// Ends the timer, which otherwise retains itself until the next expiry.
  func stop() {
    let task = state.withLock { state in
      state.isStopped = true
      return state.task
    }
    task?.cancel()
  }

  private func run(_ seconds: Int64) async {
    while now() / 1_000 < seconds {
      let remaining = min(seconds - now() / 1_000, ExpiryTimer.maximumSleep)
      do { try await Task.sleep(for: .seconds(remaining)) } catch { return }
    }
    let isDue = state.withLock { state -> Bool in
      guard state.seconds == seconds, !state.isStopped else { return false }
      state.seconds = .max
      return true
    }
    if isDue { due() }
  }
}
