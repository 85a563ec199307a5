// Signs in with an address and a password.
//
// Invariant: the password is verified outside of the transaction, which checks that the account still has this password.

import Identity
import JSON

extension IdentityCall {
  /// `accounts:signInWithPassword`.
  func signInWithPassword() async throws -> JSONObject {
    guard allowsPassword else { throw IdentityError.rejected("PASSWORD_LOGIN_DISABLED") }
    guard let address = body.string("email") else { throw IdentityError.rejected("MISSING_EMAIL") }
    guard EmailAddress.isValid(address) else { throw IdentityError.rejected("INVALID_EMAIL") }
    guard let password = body.text("password") else { throw IdentityError.rejected("MISSING_PASSWORD") }
    if body.text("pendingIdToken") != nil {
      throw IdentityError.notImplemented("signInWithPassword does not support pendingIdToken.")
    }
    let email = EmailAddress.canonical(address)
    let found = try await account(email: email, password: password)
    let rehashed =
      found.password?.scheme == services.hasher.scheme ? nil : try await hash(password)
    return try await signIn { transaction, _ in
      guard var account = try transaction.reader.account(found.localID, in: self.tenantID),
        account.password == found.password, account.email == found.email
      else {
        throw self.wrongPassword
      }
      if let rehashed {
        account.password = rehashed
        try transaction.put(account)
      }
      var response: JSONObject = [
        "kind": .string("identitytoolkit#VerifyPasswordResponse"), "registered": .bool(true),
        "localId": .string(account.localID), "email": .string(email),
      ]
      response.set("displayName", account.displayName ?? (self.isEmulator ? nil : ""))
      return .signIn(
        FirstFactor(
          account: account, session: self.newSession(account, provider: "password"), response: response,
          method: "password"))
    }
  }

  private var wrongPassword: IdentityError {
    .rejected(hidesAccounts ? "INVALID_LOGIN_CREDENTIALS" : "INVALID_PASSWORD")
  }

  /// The account with an address and a password.
  ///
  /// In production, a failure for another reason than the password is reported only if the password is correct. Every
  /// wrong password takes the same work. So neither the error nor the time shows which accounts exist.
  private func account(email: String, password: String) async throws -> Account {
    let key = AttemptLimiter.Key(.password, project: projectID, tenant: tenantID ?? "", account: email)
    try services.attemptLimiter.begin(key, at: now)
    var outcome = AttemptLimiter.Outcome.undecided
    defer { services.attemptLimiter.end(key, outcome, at: services.clock.milliseconds) }
    let found = try await read { try $0.account(email: email, in: self.tenantID) }
    guard let found else {
      guard hidesAccounts else { throw IdentityError.rejected("EMAIL_NOT_FOUND") }
      _ = try await verify(password, nil)
      outcome = .wrong
      throw wrongPassword
    }
    if isEmulator, found.isDisabled { throw IdentityError.rejected("USER_DISABLED") }
    guard try await verify(password, found.password) else {
      outcome = .wrong
      throw wrongPassword
    }
    outcome = .correct
    guard !found.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    return found
  }
}
