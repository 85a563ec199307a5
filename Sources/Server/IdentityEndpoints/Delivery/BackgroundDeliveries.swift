// Delivers e-mails in the background, after the response to their request. So the time of a response does not show
// whether an e-mail was sent.
//
// Invariant: at most `maximumInProgress` deliveries are in progress. A further request fails before its address is looked up.

package import Identity
import Locking
package import Logging

/// The deliveries that are in progress.
package final class BackgroundDeliveries: Sendable {
  /// Maximum deliveries in progress. A mail command or a relay may take seconds for each.
  package static let maximumInProgress = 64

  private let count = Guarded(0)
  private let log: Logger

  /// Creates an empty set of deliveries.
  /// - Parameter log: receives the errors, because no client waits for a delivery.
  package init(log: Logger) { self.log = log }

  /// Reserves a delivery, which ``run(_:)`` or ``release()`` ends.
  /// - Throws: UNAVAILABLE if too many are in progress.
  package func reserve() throws(IdentityError) {
    let isReserved = count.withLock { count in
      guard count < Self.maximumInProgress else { return false }
      count += 1
      return true
    }
    guard isReserved else { throw .unavailable("Too many e-mails are being sent.") }
  }

  /// Ends a reservation without a delivery.
  package func release() {
    count.withLock { count in
      precondition(count > 0, "invariant: a delivery is released once, after its reservation")
      count -= 1
    }
  }

  /// Runs a reserved delivery in the background.
  package func run(_ deliver: @escaping @Sendable () async throws -> Void) {
    Task {
      do { try await deliver() } catch {
        log.error("a code could not be delivered", metadata: ["error": "\(error)"])
      }
      release()
    }
  }
}
