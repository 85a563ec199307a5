// Decides whether the credentials of a caller were revoked after they were verified. All databases of an engine share one
// check.
//
// A connection may submit verified credentials just before their revocation. So the batch that authenticates a connection
// checks its new caller, and `RealtimeEngine/revoke(where:)` checks the callers of open connections.
//
// Invariant: a caller whose credentials were revoked before the batch that executes its request has no access.

import Access
import Locking

/// The condition for revoked credentials.
final class RevocationCheck: Sendable {
  private let condition = Guarded<(@Sendable (Principal) -> Bool)?>(nil)
  private let storedCondition = Guarded<(@Sendable (Principal) async throws -> Bool)?>(nil)

  /// Replaces the condition.
  func set(_ isRevoked: @escaping @Sendable (Principal) -> Bool) { condition.withLock { $0 = isRevoked } }

  /// Replaces the condition for stored callers.
  func setStored(_ isRevoked: @escaping @Sendable (Principal) async throws -> Bool) {
    storedCondition.withLock { $0 = isRevoked }
  }

  /// Whether the credentials of a caller that an earlier process stored are revoked. The credentials may have expired
  /// long ago.
  func isStoredRevoked(_ caller: Principal) async throws -> Bool {
    if isRevoked(caller) { return true }
    guard let condition = storedCondition.withLock({ $0 }) else { return false }
    return try await condition(caller)
  }

  /// Whether the credentials of a caller are revoked. False before the first revocation.
  func isRevoked(_ caller: Principal) -> Bool {
    if caller == .nobody { return false }
    guard let condition = condition.withLock({ $0 }) else { return false }
    return condition(caller)
  }
}
