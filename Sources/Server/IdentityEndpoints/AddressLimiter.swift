// Limits the attempts per client address to guess passwords and codes, and to find out which accounts exist. The limits
// per account do not stop an attacker who tries one password on many accounts.
//
// Each address has an allowance of attempts that is restored over time. Addresses may be shared by many users, so the
// allowance is larger than that of an account, and successful sign-ins do not use it. The limiter counts an attempt
// before the server checks it, and refunds it if it was not a guess. So concurrent attempts cannot exceed the
// allowance.

package import Identity

/// Counts the attempts of client addresses.
package final class AddressLimiter: Sendable {
  /// Attempts of an address before it must wait.
  package static let allowance: Int64 = 100
  /// Milliseconds after which an address regains one attempt.
  package static let restorationMilliseconds: Int64 = 6_000
  /// Maximum number of addresses in memory, of about 100 bytes each.
  package static let maximumRecords = 100_000

  private let attempts: AllowanceLimiter<ClientAddress>

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose clients may fail any number of times.
  package init(isEnabled: Bool, maximumRecords: Int = AddressLimiter.maximumRecords) {
    attempts = AllowanceLimiter(
      isEnabled: isEnabled, allowance: Self.allowance,
      restorationMilliseconds: Self.restorationMilliseconds, maximumRecords: maximumRecords)
  }

  /// Counts an attempt, or rejects it because its address has used the allowance.
  /// - Parameters:
  ///   - address: nil if the client has no IP address. Its attempts are not limited.
  ///   - now: milliseconds since the Unix epoch.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`.
  package func begin(_ address: ClientAddress?, at now: Int64) throws(IdentityError) {
    guard attempts.admit(address, at: now) else {
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
