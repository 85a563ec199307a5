// Creates accounts. Clients can create anonymous accounts and accounts with a password, administrators any account.
// With an ID token, the operation adds an address and a password to the token's account.

import Identity
import JSON

extension IdentityCall {
  /// `accounts:signUp`.
  func signUp() async throws -> JSONObject {
    guard !body.has("idToken"), !isPrivileged else { return try await addOrCreateAccount() }
    // The limiter counts a new account before its password is hashed, so that one client cannot occupy the hasher with
    // sign-ups.
    guard services.newAccountLimiter.admit(client, at: now) else {
      throw IdentityError.rejected(
        "TOO_MANY_ATTEMPTS_TRY_LATER", "Too many accounts were created from this device. Try again later.")
    }
    do { return try await addOrCreateAccount() } catch {
      services.newAccountLimiter.refund(client, at: services.clock.milliseconds)
      throw error
    }
  }

  private func addOrCreateAccount() async throws -> JSONObject {
    let provider = try signUpProvider()
    var email: String?
    if let text = body.string("email"), !text.isEmpty || provider != nil {
      guard EmailAddress.isValid(text) else { throw IdentityError.rejected("INVALID_EMAIL") }
      email = EmailAddress.canonical(text)
    }
    // In production a weak password gets the same error whether or not the address has an account.
    if !isEmulator, let text = body.text("password") { try checkStrength(text) }
    if let email {
      // This check comes before the checks of the password, which is hashed outside of the transaction. The transaction
      // repeats this check.
      let isTaken = try await read { try $0.account(email: email, in: self.tenantID) != nil }
      if isTaken { throw IdentityError.rejected("EMAIL_EXISTS") }
    }
    var password: StoredPassword?
    if let text = body.text("password") {
      try checkStrength(text)
      password = try await hash(text)
    }
    let (newEmail, newPassword, newID) = (email, password, RandomText.identifier(28))
    return try await signIn { transaction, result in
      let reader = transaction.reader
      if let newEmail, try reader.account(email: newEmail, in: self.tenantID) != nil {
        throw IdentityError.rejected("EMAIL_EXISTS")
      }
      var account: Account
      let existing = self.body.has("idToken") ? try self.account(reader) : nil
      if let existing {
        try self.checkMaySetEmail(of: existing.account, to: newEmail, existing.token)
        account = existing.account
      } else {
        let id = self.body.text("localId") ?? newID
        account = self.newAccount(id)
        account.lastLoginAt = self.isPrivileged ? nil : self.now
      }
      try self.applySignUp(to: &account, provider, reader)
      if let newEmail { account.email = newEmail }
      if let newPassword { self.set(newPassword, on: &account) }
      var session = self.newSession(account, provider: provider ?? "")
      if let existing { session.secondFactor = existing.token.secondFactor }
      let isClientSignUp = existing == nil && newEmail != nil && !self.isPrivileged
      if isClientSignUp {
        try self.applyBeforeCreate(result, to: &account, method: "password", session: session)
      }
      try transaction.put(account)
      var response: JSONObject = [
        "kind": .string("identitytoolkit#SignupNewUserResponse"), "localId": .string(account.localID),
      ]
      response.set("displayName", account.displayName)
      response.set("email", account.email)
      guard provider != nil else { return .respond(response) }
      var factor = FirstFactor(
        account: account, session: session, response: response, method: isClientSignUp ? "password" : nil)
      factor.requiresSecondFactor = false
      return .signIn(factor)
    }
  }

  /// Checks that a client may add an address, and with it a way to sign in, to an existing account. An old or stolen
  /// token must not be sufficient to take over the account. Only ``update()`` replaces a stored address.
  func checkMaySetEmail(
    of account: Account, to email: String?, _ token: IDToken
  ) throws(IdentityError) {
    guard !isPrivileged, !isEmulator else { return }
    try requireRecentSignIn(token)
    if let current = account.email, current != email { throw .rejected("OPERATION_NOT_ALLOWED") }
  }

  /// The provider of the session that the operation begins; nil for an administrator's request, which begins no
  /// session.
  private func signUpProvider() throws(IdentityError) -> String? {
    if isPrivileged {
      if body.has("idToken"), body.text("localId") != nil {
        throw .rejected("UNEXPECTED_PARAMETER", "User ID")
      }
      return nil
    }
    guard body.string("localId") == nil else { throw .rejected("UNEXPECTED_PARAMETER", "User ID") }
    guard body.has("idToken") || body.text("password") != nil || body.text("email") != nil else {
      guard allowsAnonymous else { throw .rejected("ADMIN_ONLY_OPERATION") }
      return "anonymous"
    }
    guard body.text("email") != nil else { throw .rejected("MISSING_EMAIL") }
    guard body.text("password") != nil else { throw .rejected("MISSING_PASSWORD") }
    guard allowsPassword else { throw .rejected("OPERATION_NOT_ALLOWED") }
    return "password"
  }

  /// Sets the members of a new account from the body. Anonymous users have no profile. Other clients set name and
  /// photo, and only administrators set all members.
  private func applySignUp(
    to account: inout Account, _ provider: String?, _ reader: IdentityReader
  ) throws {
    guard provider != "anonymous" else { return }
    if let name = body.string("displayName") { account.displayName = name }
    if let url = body.string("photoUrl") { account.photoURL = url }
    account.isEmailVerified = isPrivileged ? body.bool("emailVerified") ?? false : false
    guard isPrivileged else { return }
    if !body.has("idToken"), let id = body.text("localId"), try reader.account(id, in: tenantID) != nil {
      throw IdentityError.rejected("DUPLICATE_LOCAL_ID")
    }
    if body.text("localId").map({ $0.utf8.count > Self.maximumIDBytes }) == true {
      throw IdentityError.rejected("INVALID_LOCAL_ID")
    }
    if let number = body.text("phoneNumber") {
      try checkNewPhoneNumber(number, reader)
      account.phoneNumber = number
    }
    if body.bool("disabled") == true { account.disabled = true }
    if body.has("mfaInfo") {
      account.secondFactors = try enrollments(body.list("mfaInfo"), existing: [], generatesIDs: true)
    }
  }

  /// Maximum bytes of an account's ID. The hosted product allows 128 characters.
  static let maximumIDBytes = 512

  /// Checks a phone number that an account will have.
  /// - Throws: `INVALID_PHONE_NUMBER` or `PHONE_NUMBER_EXISTS`.
  func checkNewPhoneNumber(_ number: String, _ reader: IdentityReader) throws {
    guard PhoneNumber.isValid(number) else {
      throw IdentityError.rejected("INVALID_PHONE_NUMBER", "Invalid format.")
    }
    guard try reader.account(phoneNumber: number, in: tenantID) == nil else {
      throw IdentityError.rejected("PHONE_NUMBER_EXISTS")
    }
  }

  /// Sets a new password, which revokes older tokens.
  func set(_ password: StoredPassword, on account: inout Account) {
    account.password = password
    account.passwordUpdatedAt = now
    account.validSince = nowSeconds
  }
}
