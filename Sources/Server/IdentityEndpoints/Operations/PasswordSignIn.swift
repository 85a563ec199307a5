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
    let key = AttemptLimiter.Key(project: projectID, tenant: tenantID ?? "", account: email)
    try services.attempts.check(key, at: now)
    let found = try await read { try $0.account(email: email, in: self.tenantID) }
    guard let found else {
      if hidesAccounts {
        // The hash takes the time of a wrong password, so that the time does not reveal which accounts exist.
        _ = try await services.hasher.verify(password, nil)
        services.attempts.recordFailure(key, at: now)
        throw IdentityError.rejected("INVALID_LOGIN_CREDENTIALS")
      }
      throw IdentityError.rejected("EMAIL_NOT_FOUND")
    }
    guard !found.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    let isCorrect = try await services.hasher.verify(password, found.password)
    guard isCorrect else {
      services.attempts.recordFailure(key, at: now)
      throw IdentityError.rejected(hidesAccounts ? "INVALID_LOGIN_CREDENTIALS" : "INVALID_PASSWORD")
    }
    services.attempts.recordSuccess(key)
    let rehashed =
      found.password?.scheme == services.hasher.scheme ? nil : try await services.hasher.hash(password)
    return try await signIn { transaction, _ in
      guard var account = try transaction.reader.account(found.localID, in: self.tenantID),
        account.password == found.password, account.email == found.email
      else {
        throw IdentityError.rejected(self.hidesAccounts ? "INVALID_LOGIN_CREDENTIALS" : "INVALID_PASSWORD")
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
}
