// Limits the concurrent work of each client address, so that one client cannot fill a queue that all clients share.

import Locking

/// Counts the work in progress of client addresses.
package final class ConcurrencyLimiter: Sendable {
  /// Maximum units of work of an address in progress: a quarter of the queue of `PasswordHasher`.
  package static let maximumInProgress = 64

  private let isEnabled: Bool
  private let counts = Guarded<[ClientAddress: Int]>([:])

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose clients may start any amount of work.
  package init(isEnabled: Bool) { self.isEnabled = isEnabled }

  /// Begins work, which counts until ``end(_:)``.
  /// - Parameter address: nil if the work is not limited.
  /// - Returns: whether the work may begin.
  package func begin(_ address: ClientAddress?) -> Bool {
    guard isEnabled, let address else { return true }
    return counts.withLock { counts in
      guard counts[address, default: 0] < Self.maximumInProgress else { return false }
      counts[address, default: 0] += 1
      return true
    }
  }

  /// Ends work that began.
  package func end(_ address: ClientAddress?) {
    guard isEnabled, let address else { return }
    counts.withLock { counts in
      guard let count = counts[address] else {
        preconditionFailure("invariant: work ends once, after it has begun")
      }
      counts[address] = count == 1 ? nil : count - 1
    }
  }
}
