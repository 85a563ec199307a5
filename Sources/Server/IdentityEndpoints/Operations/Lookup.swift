// Returns and deletes accounts. A user can access only its own account, an administrator any account.

import Identity
import JSON

extension IdentityCall {
  /// Maximum keys of one lookup, as in the hosted product.
  private static let maximumLookups = 100

  /// `accounts:lookup`.
  func lookup() async throws -> JSONObject {
    var response: JSONObject = ["kind": .string("identitytoolkit#GetAccountInfoResponse")]
    let form = passwordForm
    if !isPrivileged {
      guard body.has("idToken") else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
      let info = try await read { try self.account($0).account.userInfo(for: .user, password: form) }
      response["users"] = .array([.object(info)])
      return response
    }
    let keyCount =
      body.list("localId").count + body.list("email").count + body.list("phoneNumber").count
      + body.list("federatedUserId").count
    guard isEmulator || keyCount <= Self.maximumLookups else {
      throw IdentityError.rejected("USER_LOOKUP_LIMIT_EXCEEDED")
    }
    let users = try await read { reader in
      var accounts: [Account] = []
      func add(_ account: Account?) {
        guard let account, !accounts.contains(where: { $0.hasID(account.localID) }) else { return }
        accounts.append(account)
      }
      for id in self.body.strings("localId") { add(try reader.account(id, in: self.tenantID)) }
      for email in self.body.strings("email") {
        add(try reader.account(email: EmailAddress.canonical(email), in: self.tenantID))
      }
      for number in self.body.strings("phoneNumber") {
        add(try reader.account(phoneNumber: number, in: self.tenantID))
      }
      for user in self.body.list("federatedUserId") {
        guard let provider = user["providerId"]?.string, let rawID = user["rawId"]?.string else { continue }
        add(try reader.account(provider: provider, rawID: rawID, in: self.tenantID))
      }
      return accounts.map { JSONValue.object($0.userInfo(for: .administrator, password: form)) }
    }
    if !users.isEmpty { response["users"] = .array(users) }
    return response
  }

  /// `accounts:delete`.
  func deleteAccount() async throws -> JSONObject {
    try await write { transaction in
      if self.isPrivileged {
        guard let id = self.body.text("localId") else { throw IdentityError.rejected("MISSING_LOCAL_ID") }
        guard let account = try transaction.reader.account(id, in: self.tenantID) else {
          throw IdentityError.rejected("USER_NOT_FOUND")
        }
        try transaction.remove(account)
      } else {
        guard self.body.has("idToken") else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
        let (account, token) = try self.account(transaction.reader)
        try self.requireRecentSignIn(token)
        try transaction.remove(account)
      }
    }
    return ["kind": .string("identitytoolkit#DeleteAccountResponse")]
  }

  /// Seconds after a sign-in within which a client may make sensitive changes, as in the hosted product.
  private static let recentSignInSeconds: Int64 = 300

  /// Rejects a sensitive change if the user's sign-in is too long ago.
  /// - Throws: `CREDENTIAL_TOO_OLD_LOGIN_AGAIN`.
  func requireRecentSignIn(_ token: IDToken) throws(IdentityError) {
    guard !isEmulator, nowSeconds - token.signedInAt > Self.recentSignInSeconds else { return }
    throw .rejected("CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
  }
}
