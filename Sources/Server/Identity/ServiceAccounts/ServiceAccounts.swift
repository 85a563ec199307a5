// The service accounts of a server, in memory and in the store. All are read at the start, because the verification of a
// token must not wait for the disk.
//
// Invariant: a revoked key verifies nothing as soon as its revocation is durable.

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

    mutating func set(_ account: ServiceAccount) {
      remove(account.email)
      accounts[account.email] = account
      for key in account.keys { signers[key.id] = Signer(account: account, key: key) }
    }

    mutating func remove(_ email: String) {
      for key in accounts[email]?.keys ?? [] { signers[key.id] = nil }
      accounts[email] = nil
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
    accounts.state.withLock { state in for account in stored { state.set(account) } }
    return accounts
  }

  /// The accounts in the order of their addresses.
  package var all: [ServiceAccount] {
    state.withLock { $0.accounts.values.sorted { $0.email < $1.email } }
  }

  /// The signer with a key; nil if it is unknown or revoked.
  func signer(_ keyID: String) -> Signer? { state.withLock { $0.signers[keyID] } }

  /// Whether an account exists and was not revoked.
  func contains(_ email: String) -> Bool { state.withLock { $0.accounts[email] != nil } }

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
    let account = try await database.write { transaction in
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
      return account
    }
    state.withLock { $0.set(account) }
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
    let remaining = try await database.write { transaction -> ServiceAccount? in
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
        return nil
      }
      try transaction.set(row, account.storedForm)
      return account
    }
    let observers = state.withLock { state in
      if let remaining { state.set(remaining) } else { state.remove(email) }
      return state.observers
    }
    for observer in observers { observer() }
  }
}
