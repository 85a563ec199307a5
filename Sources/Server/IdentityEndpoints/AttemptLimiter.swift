// Limits the attempts to guess a password, per account. After several failures in a row each further attempt must wait,
// twice as long as the one before.
//
// Invariant: the memory is bounded. If it is full, the accounts whose wait has ended are dropped first.

import Identity
import Locking

/// Counts the failed sign-ins of accounts.
package final class AttemptLimiter: Sendable {
  /// An account of which someone tries passwords. It need not exist.
  package struct Key: Hashable, Sendable {
    package var project: String
    package var tenant: String
    /// The address in canonical form.
    package var account: String

    /// Creates a key.
    package init(project: String, tenant: String, account: String) {
      self.project = project
      self.tenant = tenant
      self.account = account
    }
  }

  private struct Record {
    var failures = 0
    /// Milliseconds since the Unix epoch before which attempts are rejected.
    var blockedUntil: Int64 = 0
  }

  /// The failures in a row after which attempts must wait.
  private static let freeFailures = 10
  private static let firstWaitMilliseconds: Int64 = 1000
  private static let maximumWaitMilliseconds: Int64 = 15 * 60 * 1000
  private static let maximumRecords = 100_000

  private let isEnabled: Bool
  private let records = Guarded<[Key: Record]>([:])

  /// Creates a limiter.
  /// - Parameter isEnabled: false for an emulator, whose tests may fail as often as they want.
  package init(isEnabled: Bool) { self.isEnabled = isEnabled }

  /// Rejects an attempt that comes too early after failures.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`.
  func check(_ key: Key, at now: Int64) throws(IdentityError) {
    guard isEnabled else { return }
    let blockedUntil = records.withLock { $0[key]?.blockedUntil ?? 0 }
    guard now >= blockedUntil else {
      throw .rejected(
        "TOO_MANY_ATTEMPTS_TRY_LATER",
        "Access to this account has been temporarily disabled due to many failed login attempts.")
    }
  }

  /// Counts a wrong password.
  func recordFailure(_ key: Key, at now: Int64) {
    guard isEnabled else { return }
    records.withLock { records in
      if records.count >= Self.maximumRecords, records[key] == nil {
        records = records.filter { $0.value.blockedUntil > now }
        if records.count >= Self.maximumRecords { records.removeAll() }
      }
      var record = records[key] ?? Record()
      record.failures += 1
      let excess = record.failures - Self.freeFailures
      if excess >= 0 {
        let wait = Self.firstWaitMilliseconds << Int64(min(excess, 20))
        record.blockedUntil = now + min(wait, Self.maximumWaitMilliseconds)
      }
      records[key] = record
    }
  }

  /// Forgets the failures of an account after its correct password.
  func recordSuccess(_ key: Key) {
    guard isEnabled else { return }
    records.withLock { $0[key] = nil }
  }
}
