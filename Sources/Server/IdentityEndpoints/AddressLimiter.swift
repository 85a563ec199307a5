// Limits the attempts to guess passwords and codes, and to find out which accounts exist, per client address. An attacker
// who tries one password on many accounts is not stopped by the limits per account.
//
// Each address has an allowance of attempts that is restored over time. Addresses may be shared by many users, so the
// allowance is larger than that of an account, and successful sign-ins do not use it. An attempt counts before it is
// decided, and is refunded if it was no guess: many attempts at the same time exceed the allowance no more than others.

package import Identity

/// Counts the attempts of client addresses.
package final class AddressLimiter: Sendable {
  /// Attempts of an address before it must wait.
  package static let allowance: Int64 = 100
  /// The time in which one attempt is restored.
  package static let restorationMilliseconds: Int64 = 6_000
  /// Maximum number of addresses in memory, of about 100 bytes each.
  package static let maximumRecords = 100_000

  private let attempts: AllowanceLimiter<ClientAddress>

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose tests may fail as often as they want.
  package init(isEnabled: Bool, maximumRecords: Int = AddressLimiter.maximumRecords) {
    attempts = AllowanceLimiter(
      isEnabled: isEnabled, allowance: Self.allowance,
      restorationMilliseconds: Self.restorationMilliseconds, maximumRecords: maximumRecords)
  }

  /// Counts an attempt, or rejects it because its address has used the allowance.
  /// - Parameters:
  ///   - address: nil if the client has no IP address; then the attempt is not limited.
  ///   - now: milliseconds since the Unix epoch.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`.
  package func begin(_ address: ClientAddress?, at now: Int64) throws(IdentityError) {
    guard attempts.begin(address, at: now) else {
      throw .rejected(
        "TOO_MANY_ATTEMPTS_TRY_LATER",
        "We have blocked all requests from this device due to unusual activity. Try again later.")
    }
  }

  /// Restores the allowance for an attempt that was not a guess.
  package func refund(_ address: ClientAddress?, at now: Int64) { attempts.refund(address, at: now) }

  /// Number of addresses in memory.
  package var count: Int { attempts.count }
}
