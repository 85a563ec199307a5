// Changes a project's identity database in one atomic commit, and maintains the indexes of accounts.
//
// Invariant: an index row exists exactly for the current value of the account that it names. Two accounts never share
// an e-mail address, a phone number, a passkey or a user of a provider.

import JSON
import OrderedStore

/// A transaction on a project's identity database. Valid during one call of the store only.
package final class IdentityTransaction {
  /// The state with this transaction's own changes.
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
  package func put(_ account: Account) throws {
    let account = account.normalized
    let old = try reader.account(account.localID, in: account.tenantID)
    let (oldKeys, newKeys) = (old.map(Self.indexKeys) ?? [], Self.indexKeys(account))
    for key in oldKeys where !newKeys.contains(key) { try writer.clear(key) }
    let id = Array(account.localID.utf8)
    for key in newKeys where !oldKeys.contains(key) { try writer.set(key, id) }
    let key = IdentityKeyLayout.key(.account, account.tenantID ?? "", account.localID)
    try writer.set(key, JSONValue.object(account.storedForm).json())
    guard let old else { return }
    if account.isDisabled != old.isDisabled || account.validSince != old.validSince {
      record(account.isDisabled ? .disabled : .changed(validSince: account.validSince), account)
    }
  }

  /// Removes an account.
  package func remove(_ account: Account) throws {
    for key in Self.indexKeys(account) { try writer.clear(key) }
    try writer.clear(IdentityKeyLayout.key(.account, account.tenantID ?? "", account.localID))
    record(.deleted, account)
  }

  /// Removes all accounts of the project itself or of a tenant.
  package func removeAllAccounts(in tenant: String?) throws {
    for kind in IdentityKeyLayout.accountKinds {
      try writer.clear(KeyRange(prefix: IdentityKeyLayout.key(kind, tenant ?? "")))
    }
    events.append(AccountEvent(tenantID: tenant, localID: nil, change: .deleted))
  }

  private func record(_ change: AccountEvent.Change, _ account: Account) {
    events.append(AccountEvent(tenantID: account.tenantID, localID: account.localID, change: change))
  }

  private static func indexKeys(_ account: Account) -> [Key] {
    let tenant = account.tenantID ?? ""
    var keys: [Key] = []
    if let email = account.email { keys.append(IdentityKeyLayout.key(.email, tenant, email)) }
    if let email = account.initialEmail { keys.append(IdentityKeyLayout.key(.initialEmail, tenant, email)) }
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
  package func put(_ code: OutOfBandCode, in tenant: String?) throws {
    var code = code
    sequence += 1
    code.sequence = Int64(clamping: writer.commitVersion.microseconds) + sequence
    let key = IdentityKeyLayout.key(.code, tenant ?? "", code.code)
    try writer.set(key, JSONValue.object(code.storedForm).json())
  }

  /// Removes an out-of-band code, because it was used or has expired.
  package func removeCode(_ code: String, in tenant: String?) throws {
    try writer.clear(IdentityKeyLayout.key(.code, tenant ?? "", code))
  }

  /// Stores a verification of a phone number.
  package func put(_ session: PhoneSession, in tenant: String?) throws {
    var session = session
    if session.sequence == 0 {
      sequence += 1
      session.sequence = Int64(clamping: writer.commitVersion.microseconds) + sequence
    }
    let key = IdentityKeyLayout.key(.phoneSession, tenant ?? "", session.session)
    try writer.set(key, JSONValue.object(session.storedForm).json())
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
