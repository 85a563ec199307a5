// The service accounts of a server, in memory and in the store. All are read at the start, because the verification of a
// token must not wait for the disk.
//
// Invariant: once the revocation of a key is durable, the key verifies no token.

package import Access
package import JSON
import Locking

/// The service accounts of all projects.
package final class ServiceAccounts: Sendable {
  /// A key with its account.
  struct Signer: Sendable {
    var account: ServiceAccount
    var key: ServiceAccount.Key
  }

  /// Maximum service accounts, and maximum keys of each.
  package static let maximumAccounts = 1000
  package static let maximumKeys = 10

  private struct State {
    var accounts: [String: ServiceAccount] = [:]
    var signers: [String: Signer] = [:]
    var observers: [@Sendable () -> Void] = []
    /// The number of transactions that have begun.
    var transactions = 0
    /// For each account, the number of the transaction whose result is in memory.
    var applied: [String: Int] = [:]

    /// Sets an account, or removes it if it is nil. Transactions run one at a time, but their results may arrive in
    /// another order. The result of an earlier transaction must not restore a revoked key.
    mutating func set(_ account: ServiceAccount?, _ email: String, transaction: Int) {
      guard transaction >= applied[email] ?? 0 else { return }
      applied[email] = transaction
      for key in accounts[email]?.keys ?? [] { signers[key.id] = nil }
      accounts[email] = account
      guard let account else { return }
      for key in account.keys { signers[key.id] = Signer(account: account, key: key) }
    }

    mutating func begin() -> Int {
      transactions += 1
      return transactions
    }
  }

  private let database: IdentityDatabase
  private let clock: IdentityClock
  private let state = Guarded(State())

  private init(_ database: IdentityDatabase, _ clock: IdentityClock) {
    self.database = database
    self.clock = clock
  }

  /// Reads the stored accounts.
  package static func open(
    _ store: IdentityStore, clock: IdentityClock = IdentityClock()
  ) async throws -> ServiceAccounts {
    let database = try await store.server()
    let accounts = ServiceAccounts(database, clock)
    let stored = try await database.read { reader in
      try reader.objects(IdentityKeyLayout.key(.serviceAccount)).map { try ServiceAccount(storedForm: $0) }
    }
    accounts.state.withLock { state in
      for account in stored { state.set(account, account.email, transaction: 0) }
    }
    return accounts
  }

  /// The accounts in the order of their addresses.
  package var all: [ServiceAccount] {
    state.withLock { $0.accounts.values.sorted { $0.email < $1.email } }
  }

  /// The signer with a key; nil if it is unknown or revoked.
  func signer(_ keyID: String) -> Signer? { state.withLock { $0.signers[keyID] } }

  /// Whether credentials of an account were revoked, because their key or the account was revoked.
  /// - Parameters:
  ///   - email: the account; nil for credentials that belong to no service account.
  ///   - keyID: the key from which the credentials derive; nil if it is unknown.
  func isRevoked(email: String?, keyID: String?) -> Bool {
    guard let email else { return false }
    return state.withLock { state in
      guard let keyID else { return state.accounts[email] == nil }
      return state.signers[keyID]?.account.email != email
    }
  }

  /// Registers an observer of revocations. It must be quick and must not block.
  package func observe(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Creates a key, and its account unless it exists.
  /// - Parameter name: the account's name: lower-case letters, digits and hyphens.
  /// - Returns: the contents of the account's file. The server does not keep the private key.
  /// - Throws: ``IdentityError`` with advice.
  package func create(
    name: String, project: String, role: ServiceRole, tokenURI: String
  ) async throws -> JSONObject {
    guard ServiceAccount.isValidName(name) else {
      throw IdentityError.rejected(
        "INVALID_NAME", "A name has 1 to 63 lower-case letters, digits and hyphens.")
    }
    let now = clock.milliseconds / 1000
    let key = try SigningKey.make(at: now)
    let email = ServiceAccount.email(name: name, project: project)
    let (account, number) = try await database.write { transaction in
      let number = self.state.withLock { $0.begin() }
      let row = IdentityKeyLayout.key(.serviceAccount, email)
      var account =
        try transaction.reader.object(row).map { try ServiceAccount(storedForm: $0) }
        ?? ServiceAccount(
          email: email, project: project, role: role, tokenURI: tokenURI, keys: [], createdAt: now)
      guard account.keys.isEmpty || account.role == role else {
        throw IdentityError.rejected(
          "ROLE_MISMATCH", "The account \(email) has the role \(account.role.rawValue). Choose another name.")
      }
      guard account.keys.count < Self.maximumKeys, self.all.count < Self.maximumAccounts else {
        throw IdentityError.rejected("TOO_MANY_CREDENTIALS", "Revoke unused credentials first.")
      }
      account.role = role
      account.tokenURI = tokenURI
      account.keys.append(.init(id: key.id, publicKey: key.publicKey, createdAt: now))
      try transaction.set(row, account.storedForm)
      return (account, number)
    }
    state.withLock { $0.set(account, email, transaction: number) }
    return [
      "type": .string("service_account"), "project_id": .string(project), "private_key_id": .string(key.id),
      "private_key": .string(key.privatePEM), "client_email": .string(email),
      "client_id": .string(ProjectNumber.of(email)), "auth_uri": .string(tokenURI),
      "token_uri": .string(tokenURI), "universe_domain": .string("googleapis.com"),
    ]
  }

  /// Revokes one key of an account, or the account with all of its keys.
  /// - Throws: ``IdentityError`` if there is no such account or key.
  package func revoke(email: String, keyID: String?) async throws {
    let (remaining, number) = try await database.write { transaction -> (ServiceAccount?, Int) in
      let number = self.state.withLock { $0.begin() }
      let row = IdentityKeyLayout.key(.serviceAccount, email)
      guard var account = try transaction.reader.object(row).map({ try ServiceAccount(storedForm: $0) })
      else {
        throw IdentityError.rejected("NOT_FOUND", "There is no service account \(email).")
      }
      if let keyID {
        guard account.keys.contains(where: { $0.id == keyID }) else {
          throw IdentityError.rejected("NOT_FOUND", "The account \(email) has no key \(keyID).")
        }
        account.keys.removeAll { $0.id == keyID }
      }
      if keyID == nil || account.keys.isEmpty {
        try transaction.clear(row)
        return (nil, number)
      }
      try transaction.set(row, account.storedForm)
      return (account, number)
    }
    let observers = state.withLock { state in
      state.set(remaining, email, transaction: number)
      return state.observers
    }
    for observer in observers { observer() }
  }
}
