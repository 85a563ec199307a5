// Changes a project's identity database in one atomic commit, and maintains the indexes of accounts.
//
// Invariant: each indexed property of an account has an index row for its current value, and none for earlier values.
// Two accounts never share an e-mail address, a phone number, a passkey or a user of a provider. Operations check this
// before they store an account, to return the API's error. The transaction itself changes no index row that names
// another account.

import JSON
import OrderedStore

/// A transaction on a project's identity database. Valid during one call of the store only.
package final class IdentityTransaction {
  /// The state including the changes of this transaction.
  package let reader: IdentityReader
  private let writer: any SequencedTransaction
  private(set) var events: [AccountEvent] = []
  private var sequence: Int64 = 0

  init(_ writer: any SequencedTransaction) {
    self.writer = writer
    reader = IdentityReader(writer)
  }

  // MARK: Accounts

  /// Stores an account and replaces the one with the same ID.
  /// - Throws: ``CorruptRow`` if an index row that the account needs names another one; the store's errors.
  package func put(_ account: Account) throws {
    let account = account.withProviderList
    let old = try reader.account(account.localID, in: account.tenantID)
    let (oldKeys, newKeys) = (old.map(Self.indexKeys) ?? [], Self.indexKeys(account))
    for key in oldKeys where !newKeys.contains(key) { try clearIndex(key, of: account) }
    let id = Array(account.localID.utf8)
    for key in newKeys where !oldKeys.contains(key) {
      if let row = try writer.get(key), !row.value.elementsEqual(id) {
        throw CorruptRow("an index row of a value that an account gets names another account")
      }
      try writer.set(key, id)
    }
    let key = IdentityKeyLayout.key(.account, account.tenantID ?? "", account.localID)
    try writer.set(key, JSONValue.object(account.storedForm).json())
    guard let old else { return }
    if account.isDisabled != old.isDisabled || account.validSince != old.validSince {
      try record(account.isDisabled ? .disabled : .changed(validSince: account.validSince), account)
    }
  }

  /// Removes an index row of an account. A row that names another account is kept, because look-ups of that account
  /// need it.
  private func clearIndex(_ key: Key, of account: Account) throws {
    guard let row = try writer.get(key), row.value.elementsEqual(account.localID.utf8) else { return }
    try writer.clear(key)
  }

  /// Removes an account.
  package func remove(_ account: Account) throws {
    for key in Self.indexKeys(account) { try clearIndex(key, of: account) }
    try writer.clear(IdentityKeyLayout.key(.account, account.tenantID ?? "", account.localID))
    try record(.deleted, account)
  }

  /// Removes all accounts of the project itself or of a tenant.
  package func removeAllAccounts(in tenant: String?) throws {
    for kind in IdentityKeyLayout.accountKinds {
      try writer.clear(KeyRange(prefix: IdentityKeyLayout.key(kind, tenant ?? "")))
    }
    try record(AccountEvent(tenantID: tenant, localID: nil, change: .deleted))
  }

  private func record(_ change: AccountEvent.Change, _ account: Account) throws {
    try record(AccountEvent(tenantID: account.tenantID, localID: account.localID, change: change))
  }

  /// Stores the revocation of an event, and publishes the event after the commit.
  private func record(_ event: AccountEvent) throws {
    let key = IdentityKeyLayout.key(.revocation, event.tenantID ?? "", event.localID ?? "")
    let old = try reader.object(key).map { try Revocation(storedForm: $0) }
    let now = Int64(clamping: writer.commitVersion.microseconds / 1_000_000)
    var row = event.revocation(after: old, at: now).storedForm
    row["tenant"] = .string(event.tenantID ?? "")
    row["localId"] = .string(event.localID ?? "")
    try set(key, row)
    events.append(event)
    try removeExpired(.revocation, after: key) { _, writtenAt in
      Int64(clamping: writtenAt.microseconds / 1_000_000) < now - RevocationList.storedSeconds
    }
  }

  /// Maximum rows that one removal of expired rows reads.
  private static let maximumScannedRows = 64

  /// Removes a few expired rows of a kind, so that their number is bounded. The scan begins at a new row and continues
  /// at the first row of the kind. The last components of the keys are random, so the scans eventually reach all rows.
  private func removeExpired(
    _ kind: IdentityKeyLayout.Kind, after key: Key,
    isExpired: (_ row: UnsafeRawBufferPointer, _ writtenAt: Version) throws -> Bool
  ) throws {
    let all = KeyRange(prefix: IdentityKeyLayout.key(kind))
    var (after, before) = (all, all)
    after.start = key
    before.end = key
    var expired: [Key] = []
    var visited = 0
    for range in [after, before] where visited < Self.maximumScannedRows {
      try reader.view.scan(range, reverse: false) { key, row, writtenAt in
        visited += 1
        if try isExpired(row, writtenAt) { expired.append(Array(key)) }
        return visited < Self.maximumScannedRows
      }
    }
    for key in expired { try writer.clear(key) }
  }

  private static func indexKeys(_ account: Account) -> [Key] {
    let tenant = account.tenantID ?? ""
    var keys: [Key] = []
    if let email = account.email { keys.append(IdentityKeyLayout.key(.email, tenant, email)) }
    if let number = account.phoneNumber { keys.append(IdentityKeyLayout.key(.phoneNumber, tenant, number)) }
    for provider in account.providers ?? [] {
      keys.append(IdentityKeyLayout.key(.provider, tenant, provider.id, provider.rawID))
      if let email = provider.email {
        let key = IdentityKeyLayout.key(.providerEmail, tenant, email, account.localID)
        if !keys.contains(key) { keys.append(key) }
      }
    }
    for passkey in account.passkeys {
      keys.append(IdentityKeyLayout.key(.passkey, tenant, passkey.credentialID))
    }
    return keys
  }

  // MARK: Codes and sessions

  /// Stores a new out-of-band code.
  /// - Parameter now: removes a few codes that have expired at this time, in milliseconds since the Unix epoch; nil if codes
  ///   do not expire.
  package func put(_ code: OutOfBandCode, in tenant: String?, removingExpiredAt now: Int64?) throws {
    var code = code
    sequence += 1
    code.sequence = Int64(clamping: writer.commitVersion.microseconds) + sequence
    let key = IdentityKeyLayout.key(.code, tenant ?? "", code.code)
    try writer.set(key, JSONValue.object(code.storedForm).json())
    guard let now else { return }
    try removeExpired(.code, after: key) { row, _ in
      try OutOfBandCode(storedForm: IdentityReader.object(row)).isExpired(at: now)
    }
  }

  /// Removes an out-of-band code, because it was used or has expired.
  package func removeCode(_ code: String, in tenant: String?) throws {
    try writer.clear(IdentityKeyLayout.key(.code, tenant ?? "", code))
  }

  /// Stores a verification of a phone number.
  /// - Parameter now: removes a few verifications that have expired at this time, in milliseconds since the Unix epoch; nil
  ///   if they do not expire.
  package func put(_ session: PhoneSession, in tenant: String?, removingExpiredAt now: Int64?) throws {
    var session = session
    if session.sequence == 0 {
      sequence += 1
      session.sequence = Int64(clamping: writer.commitVersion.microseconds) + sequence
    }
    let key = IdentityKeyLayout.key(.phoneSession, tenant ?? "", session.session)
    try writer.set(key, JSONValue.object(session.storedForm).json())
    guard let now else { return }
    try removeExpired(.phoneSession, after: key) { row, _ in
      try PhoneSession(storedForm: IdentityReader.object(row)).isExpired(at: now)
    }
  }

  /// Removes a verification of a phone number.
  package func removePhoneSession(_ session: String, in tenant: String?) throws {
    try writer.clear(IdentityKeyLayout.key(.phoneSession, tenant ?? "", session))
  }

  // MARK: Settings

  /// Stores the settings of the project.
  package func put(_ settings: ProjectSettings) throws {
    try writer.set(IdentityKeyLayout.key(.settings), JSONValue.object(settings.storedForm).json())
  }

  /// Stores the settings of a tenant.
  package func put(_ settings: TenantSettings) throws {
    let key = IdentityKeyLayout.key(.tenant, settings.id)
    try writer.set(key, JSONValue.object(settings.storedForm).json())
  }

  /// Removes a tenant with its accounts, codes and sessions.
  package func removeTenant(_ id: String) throws {
    try removeAllAccounts(in: id)
    try writer.clear(KeyRange(prefix: IdentityKeyLayout.key(.code, id)))
    try writer.clear(KeyRange(prefix: IdentityKeyLayout.key(.phoneSession, id)))
    try writer.clear(IdentityKeyLayout.key(.tenant, id))
  }

  // MARK: Rows

  func set(_ key: Key, _ object: JSONObject) throws {
    try writer.set(key, JSONValue.object(object).json())
  }

  func set(_ key: Key, bytes: [UInt8]) throws { try writer.set(key, bytes) }

  func clear(_ key: Key) throws { try writer.clear(key) }
}
