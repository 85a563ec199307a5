// Limits the attempts to guess a password or a second factor, per account. After several failures in a row each further
// attempt must wait, twice as long as the previous attempt.
//
// The limiter counts an attempt before its result is known, because many other attempts may arrive while a hash is
// computed. Each attempt in progress uses one of the account's free failures (`freeFailures`). Once these are used, an
// account may have only one attempt in progress.
//
// Invariant: the memory is bounded. If it is full, the accounts with the fewest failures are dropped first. So an
// attacker who guesses for many accounts cannot end the wait of an account.

package import Identity
import Locking

/// Counts the failed sign-ins of accounts.
package final class AttemptLimiter: Sendable {
  /// The secret that an attempt guesses.
  package enum Factor: Sendable {
    case password
    /// A code that was sent to a phone number, as the first factor.
    case phoneNumber
    case secondFactor
  }

  /// The account and the factor that an attempt guesses. The account need not exist.
  package struct Key: Hashable, Sendable {
    package var factor: Factor
    package var project: String
    package var tenant: String
    /// For passwords the address in canonical form, for second factors the account's ID, otherwise the phone number.
    package var account: String

    /// Creates a key.
    package init(_ factor: Factor, project: String, tenant: String, account: String) {
      self.factor = factor
      self.project = project
      self.tenant = tenant
      self.account = account
    }
  }

  /// The result of an attempt.
  package enum Outcome: Sendable {
    case correct
    case wrong
    /// The server could not check the guess.
    case undecided
  }

  private struct Record {
    /// Failures since the last success.
    var failures = 0
    /// Attempts in progress, whose result is not known yet.
    var pending = 0
    /// The time before which attempts are rejected, in milliseconds since the Unix epoch.
    var blockedUntil: Int64 = 0

    /// Whether an attempt may begin.
    func admits(at now: Int64) -> Bool {
      now >= blockedUntil && (pending == 0 || failures + pending < AttemptLimiter.freeFailures)
    }
  }

  /// The failures in a row after which attempts must wait.
  package static let freeFailures = 10
  private static let firstWaitMilliseconds: Int64 = 1000
  private static let maximumWaitMilliseconds: Int64 = 15 * 60 * 1000
  /// Maximum number of accounts in memory without attempts in progress, of about 200 bytes each.
  package static let maximumRecords = 100_000

  private let isEnabled: Bool
  private let maximumRecords: Int
  private let records = Guarded<[Key: Record]>([:])

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose clients may fail any number of times.
  package init(isEnabled: Bool, maximumRecords: Int = AttemptLimiter.maximumRecords) {
    self.isEnabled = isEnabled
    self.maximumRecords = maximumRecords
  }

  /// Begins an attempt, which counts as a failure until ``end(_:_:at:)``.
  /// - Parameter now: milliseconds since the Unix epoch.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER` for an attempt that comes too early after failures, or while too many others
  ///   are in progress.
  package func begin(_ key: Key, at now: Int64) throws(IdentityError) {
    guard isEnabled else { return }
    let isAdmitted = records.withLock { records in
      if records.count >= maximumRecords, records[key] == nil { Self.shrink(&records) }
      guard records[key, default: Record()].admits(at: now) else { return false }
      records[key, default: Record()].pending += 1
      return true
    }
    guard isAdmitted else {
      throw .rejected(
        "TOO_MANY_ATTEMPTS_TRY_LATER",
        "Access to this account has been temporarily disabled due to many failed login attempts.")
    }
  }

  /// Ends an attempt. A correct attempt resets the failures of the account.
  /// - Parameter now: milliseconds since the Unix epoch.
  package func end(_ key: Key, _ outcome: Outcome, at now: Int64) {
    guard isEnabled else { return }
    records.withLock { records in
      guard var record = records[key], record.pending > 0 else {
        preconditionFailure("invariant: an attempt ends once, after it has begun")
      }
      record.pending -= 1
      switch outcome {
      case .undecided: break
      case .correct: (record.failures, record.blockedUntil) = (0, 0)
      case .wrong:
        record.failures += 1
        let excess = record.failures - Self.freeFailures
        if excess >= 0 {
          let wait = Self.firstWaitMilliseconds << Int64(min(excess, 20))
          record.blockedUntil = now + min(wait, Self.maximumWaitMilliseconds)
        }
      }
      records[key] = record.failures == 0 && record.pending == 0 ? nil : record
    }
  }

  /// Number of accounts in memory.
  package var count: Int { records.withLock { $0.count } }

  /// Drops the half of the accounts that has the fewest failures. Accounts with attempts in progress are kept.
  private static func shrink(_ records: inout [Key: Record]) {
    let idle = records.filter { $0.value.pending == 0 }.sorted { a, b in
      (a.value.failures, a.value.blockedUntil) < (b.value.failures, b.value.blockedUntil)
    }
    for (key, _) in idle.prefix((idle.count + 1) / 2) { records[key] = nil }
  }
}
