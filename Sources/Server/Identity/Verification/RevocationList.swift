// The revocation list holds the revocations that can affect unexpired ID tokens, in memory for the verification of
// tokens. The store keeps them for a restart.
//
// Invariant: a revocation stays in the list until every ID token that was issued before it has expired.

import JSON
import Locking

/// A revocation of tokens of one account, or of all accounts of a tenant.
struct Revocation: Sendable, Equatable {
  /// Tokens issued before this time are revoked, in seconds since the Unix epoch.
  var notBefore: Int64
  /// Whether all tokens are revoked.
  var isDisabled: Bool
  /// Seconds since the Unix epoch at which the revocation was made.
  var at: Int64

  var storedForm: JSONObject {
    ["notBefore": .int(notBefore), "disabled": .bool(isDisabled), "at": .int(at)]
  }

  init(notBefore: Int64, isDisabled: Bool, at: Int64) {
    self.notBefore = notBefore
    self.isDisabled = isDisabled
    self.at = at
  }

  init(storedForm object: JSONObject) throws(CorruptRow) {
    guard let notBefore = object["notBefore"]?.int, let at = object["at"]?.int else {
      throw CorruptRow("a revocation is incomplete")
    }
    self.init(notBefore: notBefore, isDisabled: object["disabled"]?.bool ?? false, at: at)
  }
}

/// The revocations of the last hour, or of the last day if tokens of other issuers are accepted.
package final class RevocationList: Sendable {
  struct Subject: Hashable, Sendable {
    var project: String
    var tenant: String
    /// Empty for all accounts of the tenant.
    var localID: String
  }

  /// Seconds for which a revocation is stored: the longest time for which a token can be valid.
  static let storedSeconds = TrustedIssuers.maximumForeignSeconds + marginSeconds
  /// Seconds of tolerance for clocks that differ.
  private static let marginSeconds: Int64 = 300

  private let revocations = Guarded<[Subject: Revocation]>([:])
  private let clock: IdentityClock
  /// Seconds for which a revocation is in memory.
  private let retentionSeconds: Int64
  private let observation: Guarded<AccountEvents.Observation?>

  private init(_ clock: IdentityClock, retentionSeconds: Int64) {
    self.clock = clock
    self.retentionSeconds = retentionSeconds
    observation = Guarded(nil)
  }

  /// Reads the stored revocations of every project, and adds the revocations of later account events.
  /// - Parameter tokenSeconds: the seconds for which an accepted token can be valid.
  package static func open(
    _ store: IdentityStore, clock: IdentityClock = IdentityClock(),
    tokenSeconds: Int64 = IDTokenClaims.lifetimeSeconds
  ) async throws -> RevocationList {
    let list = RevocationList(clock, retentionSeconds: tokenSeconds + marginSeconds)
    let observation = store.events.observe { [weak list] event in list?.add(event) }
    list.observation.withLock { $0 = observation }
    let oldest = clock.milliseconds / 1000 - list.retentionSeconds
    for project in try await store.projectIDs() {
      let rows = try await store.project(project).read { try $0.revocations() }
      list.revocations.withLock { revocations in
        for row in rows where row.revocation.at >= oldest {
          let subject = Subject(project: project, tenant: row.tenant, localID: row.localID)
          if revocations[subject] == nil { revocations[subject] = row.revocation }
        }
      }
    }
    return list
  }

  private func add(_ event: AccountEvent) {
    let now = clock.milliseconds / 1000
    let subject = Subject(
      project: event.projectID, tenant: event.tenantID ?? "", localID: event.localID ?? "")
    let oldest = now - retentionSeconds
    revocations.withLock { revocations in
      revocations[subject] = event.revocation(after: revocations[subject], at: now)
      if revocations.count.isMultiple(of: 1024) {
        revocations = revocations.filter { $0.value.at >= oldest }
      }
    }
  }

  /// Whether a token is revoked.
  /// - Parameter issuedAt: seconds since the Unix epoch.
  func isRevoked(project: String, tenant: String, localID: String, issuedAt: Int64) -> Bool {
    revocations.withLock { revocations in
      guard !revocations.isEmpty else { return false }
      for id in [localID, ""] {
        let subject = Subject(project: project, tenant: tenant, localID: id)
        if let revocation = revocations[subject], revocation.isDisabled || issuedAt < revocation.notBefore {
          return true
        }
      }
      return false
    }
  }
}

extension AccountEvent {
  /// The revocation after an event, given the earlier revocation of the account.
  func revocation(after old: Revocation?, at now: Int64) -> Revocation {
    let notBefore = old?.notBefore ?? 0
    return switch change {
    // A token that was issued in the same second as the deletion may be older than the deletion.
    case .deleted: Revocation(notBefore: now + 1, isDisabled: false, at: now)
    case .disabled: Revocation(notBefore: notBefore, isDisabled: true, at: now)
    case .changed(let validSince):
      Revocation(notBefore: max(notBefore, validSince ?? 0), isDisabled: false, at: now)
    }
  }
}
