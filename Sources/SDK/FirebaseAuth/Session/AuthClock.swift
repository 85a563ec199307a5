// The clock of an `Auth`: the current time and delays. Tests replace it.

import Foundation

/// The clock for the expiration of tokens and for scheduled refreshes.
struct AuthClock: Sendable {
  /// The current time.
  let now: @Sendable () -> Date
  /// Waits for a number of seconds; throws when the task is cancelled.
  let sleep: @Sendable (TimeInterval) async throws -> Void

  /// The system's clock.
  static let system = AuthClock(
    now: { Date() },
    sleep: { try await Task.sleep(nanoseconds: UInt64(max(0, $0) * 1e9)) })
}
