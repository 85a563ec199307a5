// Limits the attempts to guess passwords and codes, and to find out which accounts exist, per client address. An attacker
// who tries one password on many accounts is not stopped by the limits per account.
//
// Each address has an allowance of attempts that is restored over time. Addresses may be shared by many users, so the
// allowance is larger than that of an account, and successful sign-ins do not use it. An attempt counts before it is
// decided, and is refunded if it was no guess: many attempts at the same time exceed the allowance no more than others.
//
// Invariant: the memory is bounded. If it is full, addresses with a full allowance are dropped first, then those with the
// fewest attempts, so that an attacker with many addresses cannot restore the allowance of a used one.

package import Identity
import Locking

/// Counts the attempts of client addresses.
package final class AddressLimiter: Sendable {
  private struct Record {
    /// Attempts that were not restored, in milliseconds of restoration.
    var debt: Int64
    /// Milliseconds since the Unix epoch of the latest attempt.
    var at: Int64

    func debt(at now: Int64) -> Int64 { max(0, debt - max(0, now - at)) }
  }

  /// Attempts of an address before it must wait.
  package static let allowance: Int64 = 100
  /// The time in which one attempt is restored.
  package static let restorationMilliseconds: Int64 = 6_000
  /// Maximum number of addresses in memory, of about 100 bytes each.
  package static let maximumRecords = 100_000

  private let isEnabled: Bool
  private let maximumRecords: Int
  private let records = Guarded<[ClientAddress: Record]>([:])

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose tests may fail as often as they want.
  package init(isEnabled: Bool, maximumRecords: Int = AddressLimiter.maximumRecords) {
    self.isEnabled = isEnabled
    self.maximumRecords = maximumRecords
  }

  /// Counts an attempt, or rejects it because its address has used the allowance.
  /// - Parameters:
  ///   - address: nil if the client has no IP address; then the attempt is not limited.
  ///   - now: milliseconds since the Unix epoch.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`.
  package func begin(_ address: ClientAddress?, at now: Int64) throws(IdentityError) {
    guard isEnabled, let address else { return }
    let isAdmitted = records.withLock { records in
      let debt = records[address]?.debt(at: now) ?? 0
      guard debt <= (Self.allowance - 1) * Self.restorationMilliseconds else { return false }
      if records.count >= maximumRecords, records[address] == nil { Self.shrink(&records, at: now) }
      let latest = max(now, records[address]?.at ?? now)
      records[address] = Record(debt: debt + Self.restorationMilliseconds, at: latest)
      precondition(records.count <= max(maximumRecords, 1), "invariant: the addresses in memory are bounded")
      return true
    }
    guard isAdmitted else {
      throw .rejected(
        "TOO_MANY_ATTEMPTS_TRY_LATER",
        "We have blocked all requests from this device due to unusual activity. Try again later.")
    }
  }

  /// Restores the allowance for an attempt that was not a guess.
  package func refund(_ address: ClientAddress?, at now: Int64) {
    guard isEnabled, let address else { return }
    records.withLock { records in
      guard let record = records[address] else { return }
      let debt = record.debt(at: now) - Self.restorationMilliseconds
      records[address] = debt > 0 ? Record(debt: debt, at: max(now, record.at)) : nil
    }
  }

  /// Number of addresses in memory.
  package var count: Int { records.withLock { $0.count } }

  /// Drops the addresses with a full allowance, and then at least half of the others.
  private static func shrink(_ records: inout [ClientAddress: Record], at now: Int64) {
    let maximum = records.count / 2
    records = records.filter { $0.value.debt(at: now) > 0 }
    guard records.count > maximum else { return }
    let kept = records.sorted { $0.value.debt(at: now) > $1.value.debt(at: now) }.prefix(maximum)
    records = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
  }
}
