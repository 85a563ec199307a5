// Reads accounts, codes and settings from one consistent view of a project's identity database.

import JSON
import OrderedStore

/// A view of a project's identity database. Valid during one call of the store only.
package struct IdentityReader {
  let view: any ReadView

  /// Maximum levels and bytes of a stored row; the store's rows have at most 16 MiB.
  private static let limits = JSONLimits(depth: 64, bytes: 16 << 20)

  init(_ view: any ReadView) { self.view = view }

  // MARK: Accounts

  /// The account with an ID.
  /// - Throws: ``CorruptRow`` for a row that does not belong to this ID; the store's errors.
  package func account(_ localID: String, in tenant: String?) throws -> Account? {
    guard let object = try object(IdentityKeyLayout.key(.account, tenant ?? "", localID)) else { return nil }
    let account = try Account(storedForm: object)
    guard account.hasID(localID), account.tenantID ?? "" == tenant ?? "" else {
      throw CorruptRow("the row of an account has the ID of another account")
    }
    return account
  }

  /// The account with an e-mail address in canonical form.
  package func account(email: String, in tenant: String?) throws -> Account? {
    try account(indexedBy: IdentityKeyLayout.key(.email, tenant ?? "", email), in: tenant)
  }

  /// The account with a phone number.
  package func account(phoneNumber: String, in tenant: String?) throws -> Account? {
    try account(indexedBy: IdentityKeyLayout.key(.phoneNumber, tenant ?? "", phoneNumber), in: tenant)
  }

  /// The account that is linked to a user of a provider.
  package func account(provider: String, rawID: String, in tenant: String?) throws -> Account? {
    try account(indexedBy: IdentityKeyLayout.key(.provider, tenant ?? "", provider, rawID), in: tenant)
  }

  /// The account with a passkey.
  package func account(passkey credentialID: String, in tenant: String?) throws -> Account? {
    try account(indexedBy: IdentityKeyLayout.key(.passkey, tenant ?? "", credentialID), in: tenant)
  }

  /// The accounts that have an e-mail address themselves or through a linked provider. Each account occurs
  /// once.
  package func accounts(ownOrProviderEmail email: String, in tenant: String?) throws -> [Account] {
    var accounts: [Account] = []
    if let account = try account(email: email, in: tenant) { accounts.append(account) }
    var ids: [String] = []
    let prefix = KeyRange(prefix: IdentityKeyLayout.key(.providerEmail, tenant ?? "", email))
    try view.scan(prefix, reverse: false) { _, value, _ in
      ids.append(String(decoding: value, as: UTF8.self))
      return ids.count < 100
    }
    for id in ids where !accounts.contains(where: { $0.hasID(id) }) {
      if let account = try account(id, in: tenant) { accounts.append(account) }
    }
    return accounts
  }

  /// Accounts in the order of their IDs.
  /// - Parameters:
  ///   - id: only accounts after this ID are returned; nil to begin with the first account.
  ///   - limit: maximum number of accounts.
  package func accounts(after id: String?, limit: Int, in tenant: String?) throws -> [Account] {
    var range = KeyRange(prefix: IdentityKeyLayout.key(.account, tenant ?? ""))
    if let id { range.start = IdentityKeyLayout.key(.account, tenant ?? "", id) + [0] }
    var accounts: [Account] = []
    guard limit > 0 else { return [] }
    try view.scan(range, reverse: false) { _, value, _ in
      accounts.append(try Account(storedForm: try Self.object(value)))
      return accounts.count < limit
    }
    return accounts
  }

  /// The number of accounts.
  package func accountCount(in tenant: String?) throws -> Int {
    var count = 0
    let range = KeyRange(prefix: IdentityKeyLayout.key(.account, tenant ?? ""))
    try view.scan(range, reverse: false) { _, _, _ in
      count += 1
      return true
    }
    return count
  }

  private func account(indexedBy key: Key, in tenant: String?) throws -> Account? {
    guard let row = try view.get(key) else { return nil }
    return try account(String(decoding: row.value, as: UTF8.self), in: tenant)
  }

  // MARK: Codes and sessions

  /// The out-of-band code with this text; nil if it is unknown or was used.
  package func code(_ code: String, in tenant: String?) throws -> OutOfBandCode? {
    guard let object = try object(IdentityKeyLayout.key(.code, tenant ?? "", code)) else { return nil }
    return try OutOfBandCode(storedForm: object)
  }

  /// All unused out-of-band codes, in the order of their creation.
  package func codes(in tenant: String?) throws -> [OutOfBandCode] {
    try objects(IdentityKeyLayout.key(.code, tenant ?? ""))
      .map { try OutOfBandCode(storedForm: $0) }
      .sorted { ($0.createdAt, $0.sequence) < ($1.createdAt, $1.sequence) }
  }

  /// The verification of a phone number with this session; nil if it is unknown or completed.
  package func phoneSession(_ session: String, in tenant: String?) throws -> PhoneSession? {
    guard let object = try object(IdentityKeyLayout.key(.phoneSession, tenant ?? "", session)) else {
      return nil
    }
    return try PhoneSession(storedForm: object)
  }

  /// All verifications of phone numbers in progress, in the order of their creation.
  package func phoneSessions(in tenant: String?) throws -> [PhoneSession] {
    try objects(IdentityKeyLayout.key(.phoneSession, tenant ?? ""))
      .map { try PhoneSession(storedForm: $0) }
      .sorted { ($0.createdAt, $0.sequence) < ($1.createdAt, $1.sequence) }
  }

  // MARK: Settings

  /// The settings of the project.
  package func projectSettings() throws -> ProjectSettings {
    try object(IdentityKeyLayout.key(.settings)).map { ProjectSettings(storedForm: $0) } ?? ProjectSettings()
  }

  /// The settings of a tenant; nil if the tenant does not exist.
  package func tenantSettings(_ tenant: String) throws -> TenantSettings? {
    try object(IdentityKeyLayout.key(.tenant, tenant)).map { TenantSettings(storedForm: $0) }
  }

  /// The tenants in the order of their IDs.
  package func tenants(after id: String?, limit: Int) throws -> [TenantSettings] {
    var range = KeyRange(prefix: IdentityKeyLayout.key(.tenant))
    if let id { range.start = IdentityKeyLayout.key(.tenant, id) + [0] }
    var tenants: [TenantSettings] = []
    guard limit > 0 else { return [] }
    try view.scan(range, reverse: false) { _, value, _ in
      tenants.append(TenantSettings(storedForm: try Self.object(value)))
      return tenants.count < limit
    }
    return tenants
  }

  // MARK: Rows

  /// The stored revocations with their accounts.
  func revocations() throws -> [(tenant: String, localID: String, revocation: Revocation)] {
    try objects(IdentityKeyLayout.key(.revocation)).map { object in
      (
        object["tenant"]?.string ?? "", object["localId"]?.string ?? "",
        try Revocation(storedForm: object)
      )
    }
  }

  /// The secret that authenticates sealed tokens: server state that a client stores and returns, such as refresh
  /// tokens. Nil before its first use.
  func sealKey() throws -> [UInt8]? {
    guard let row = try view.get(IdentityKeyLayout.key(.secret)) else { return nil }
    guard row.value.count == TokenSeal.keyBytes else {
      throw CorruptRow("the secret of sealed tokens has a wrong length")
    }
    return row.value
  }

  func object(_ key: Key) throws -> JSONObject? {
    guard let row = try view.get(key) else { return nil }
    return try row.value.withUnsafeBytes { try Self.object($0) }
  }

  func objects(_ prefix: Key) throws -> [JSONObject] {
    var objects: [JSONObject] = []
    try view.scan(KeyRange(prefix: prefix), reverse: false) { _, value, _ in
      objects.append(try Self.object(value))
      return true
    }
    return objects
  }

  static func object(_ bytes: UnsafeRawBufferPointer) throws -> JSONObject {
    guard let object = try JSONValue(json: bytes, limits: limits).object else {
      throw CorruptRow("a row is not a JSON object")
    }
    return object
  }
}
