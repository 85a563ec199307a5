// One call of an Identity operation: its caller, project, tenant and body, and the parts of the server that it uses.

package import Identity
import JSON
package import Ports

/// A call of an Identity operation.
package struct IdentityCall: Sendable {
  package let services: IdentityServices
  package let database: IdentityDatabase
  /// The tenant; nil for the project itself.
  package let tenantID: String?
  /// Whether the caller is an administrator of the project.
  package let isPrivileged: Bool
  package let body: RequestBody
  package let target: RequestTarget
  /// The last element of the resource's path, such as a tenant's ID; nil for none.
  package let resource: String?
  /// The address that the client used, such as `http://127.0.0.1:9099`.
  package let baseURL: String
  /// The language of messages to the user.
  package let language: String
  /// The settings of the project at the start of the call.
  package let project: ProjectSettings
  /// The settings of the tenant at the start of the call; nil for the project itself.
  package let tenant: TenantSettings?
  /// The ID token of the body, which operations read only if they need it.
  package let idToken: Result<IDToken, IdentityError>
  /// The secret that authenticates the project's sealed tokens: server state that clients return, such as refresh
  /// tokens.
  package let seal: TokenSeal
  /// Milliseconds since the Unix epoch at the start of the call.
  package let now: Int64
  /// The client whose work is limited; nil for administrators and clients without an IP address.
  package var client: ClientAddress?

  /// The ID of the project.
  package var projectID: String { database.projectID }
  /// Seconds since the Unix epoch at the start of the call.
  package var nowSeconds: Int64 { now / 1000 }
  /// Whether the server runs as an emulator.
  package var isEmulator: Bool { services.isEmulator }
  /// A day ago, in milliseconds since the Unix epoch. Codes that expired before this time are removed. Until its
  /// removal, an expired code is rejected with the error for expired codes. Nil in an emulator, whose codes do not
  /// expire.
  package var removalTime: Int64? { isEmulator ? nil : now - 86_400_000 }

  // MARK: Settings

  package var allowsPassword: Bool { tenant?.allowsPassword ?? project.allowsPassword ?? true }
  package var allowsEmailLink: Bool { tenant?.allowsEmailLink ?? project.allowsEmailLink ?? true }
  package var allowsAnonymous: Bool { tenant?.allowsAnonymous ?? project.allowsAnonymous ?? true }
  /// Whether at most one account may have an address.
  package var hasOneAccountPerEmail: Bool { !project.allowsDuplicateEmails }
  /// Whether responses hide which addresses have accounts.
  package var hidesAccounts: Bool { project.hidesAccounts ?? !isEmulator }
  package var multiFactor: MultiFactorSettings { tenant?.multiFactor ?? project.multiFactor ?? .phone }
  /// How UserInfo messages represent password hashes.
  package var passwordForm: Account.PasswordForm { isEmulator ? .stored : .redacted }

  // MARK: Database

  /// Reads a consistent state of the project.
  package func read<Value: Sendable>(
    _ body: @escaping @Sendable (IdentityReader) throws -> Value
  ) async throws -> Value { try await database.read(body) }

  /// Runs a transaction on the project.
  package func write<Value: Sendable>(
    _ body: @escaping @Sendable (IdentityTransaction) throws -> Value
  ) async throws -> Value { try await database.write(body) }

  /// The account of the body's ID token.
  /// - Throws: the error of the token, or of the account.
  package func account(_ reader: IdentityReader) throws -> (account: Account, token: IDToken) {
    let token = try idToken.get()
    return (try reader.account(of: token, in: tenantID), token)
  }

  // MARK: Limits

  /// Counts a message to an e-mail address or phone number.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`.
  func countMessage(to recipient: String) throws(IdentityError) {
    guard services.recipientLimiter.admit(recipient, at: now) else {
      throw .rejected("TOO_MANY_ATTEMPTS_TRY_LATER", "Too many messages were sent to this recipient.")
    }
  }

  /// Runs work that hashes a password, within the limit of the client.
  private func withHashLimit<Value: Sendable>(
    _ work: () async throws(IdentityError) -> Value
  ) async throws(IdentityError) -> Value {
    guard services.hashLimiter.begin(client) else {
      throw .rejected("TOO_MANY_ATTEMPTS_TRY_LATER", "Too many passwords are being verified.")
    }
    defer { services.hashLimiter.end(client) }
    return try await work()
  }

  /// Hashes a new password.
  func hash(_ password: String) async throws(IdentityError) -> StoredPassword {
    try await withHashLimit { () async throws(IdentityError) -> StoredPassword in
      try await services.hasher.hash(password)
    }
  }

  /// Whether a password matches a stored one; the stored password is nil if the address has no account.
  func verify(_ password: String, _ stored: StoredPassword?) async throws(IdentityError) -> Bool {
    try await withHashLimit { () async throws(IdentityError) -> Bool in
      try await services.hasher.verify(password, stored)
    }
  }

  // MARK: Passwords

  /// Minimum characters of a password.
  package static let minimumPasswordLength = 6
  /// Maximum bytes of a password.
  package static let maximumPasswordBytes = 4096

  /// Checks the strength of a new password.
  /// - Throws: `WEAK_PASSWORD`.
  package func checkStrength(_ password: String) throws(IdentityError) {
    // JavaScript clients count UTF-16 units, so the official servers do as well.
    guard password.utf16.count >= Self.minimumPasswordLength else {
      throw .rejected("WEAK_PASSWORD", "Password should be at least 6 characters")
    }
    guard password.utf8.count <= Self.maximumPasswordBytes else {
      throw .rejected("PASSWORD_DOES_NOT_MEET_REQUIREMENTS", "Password should be at most 4096 bytes")
    }
  }
}
