// Updates accounts. A user can change its profile, address, password and providers; an administrator can change
// everything. The holder of an action code can change the address that the code confirms.

import Identity
package import JSON

extension IdentityCall {
  /// The state of one update.
  private struct UpdateState {
    var account: Account
    /// The provider of the caller's session; nil for an administrator.
    var provider: String?
    var token: IDToken?
    var newEmail: String?
    var revokesTokens = false
    /// The address before its change, empty if there was none; nil if the update does not change the address.
    var previousEmail: String?
  }

  /// Runs `accounts:update` for a page of the emulator.
  package func runUpdate() async throws -> JSONObject { try await update() }

  /// `accounts:update`.
  func update() async throws -> JSONObject {
    if isPrivileged {
      guard body.text("localId") != nil else { throw IdentityError.rejected("MISSING_LOCAL_ID") }
    } else {
      guard body.text("idToken") != nil || body.text("oobCode") != nil else {
        throw IdentityError.rejected("INVALID_REQ_TYPE", "Unsupported request parameters.")
      }
      guard !body.has("customAttributes") else { throw IdentityError.rejected("INSUFFICIENT_PERMISSION") }
    }
    if let text = body.text("customAttributes") { try CustomAttributes.validate(text) }
    if let code = body.text("oobCode") { return try await applyCode(code) }
    if !isPrivileged, body.has("disableUser") { throw IdentityError.rejected("OPERATION_NOT_ALLOWED") }
    let password = try await newPassword()
    let result = try await write { transaction -> (JSONObject, TokenGrant?, OutOfBandCode?) in
      var state = try self.updateTarget(transaction.reader)
      try self.changeEmail(&state, transaction.reader)
      if let password {
        state.account.password = password
        state.account.passwordUpdatedAt = self.now
        state.provider = state.provider == nil ? nil : "password"
        state.revokesTokens = true
      }
      if self.body.has("validSince") { state.revokesTokens = true }
      if state.revokesTokens { state.account.validSince = self.nowSeconds }
      try self.changeProfile(&state)
      if self.isPrivileged { try self.changeAsAdministrator(&state, transaction.reader) }
      self.deleteAttributes(&state.account)
      self.deleteProviders(&state.account)
      try self.linkProvider(&state.account, transaction.reader)
      try transaction.put(state.account)
      var recovery: OutOfBandCode?
      if let initial = state.account.initialEmail, state.previousEmail != nil, state.provider != "anonymous" {
        let code = self.makeCode(.recoverEmail, email: initial, localID: state.account.localID)
        try transaction.put(code, in: self.tenantID, removingExpiredAt: self.removalTime)
        recovery = code
      }
      var grant: TokenGrant?
      if state.revokesTokens, let provider = state.provider, let token = state.token {
        let session = self.continuedSession(token, provider: provider)
        grant = try self.grant(session, &state.account, in: transaction)
      }
      return (self.updateResponse(state.account, newEmail: state.newEmail), grant, recovery)
    }
    // The change is committed, so an e-mail that cannot be sent must not hide its success.
    if let recovery = result.2 { services.deliverInBackground(recovery, language: language) }
    var response = result.0
    try await add(result.1, to: &response)
    return response
  }

  /// The hash of the new password; nil if the body has none. Checks the caller before the password.
  private func newPassword() async throws -> StoredPassword? {
    guard let text = body.text("password") else { return nil }
    // In production a weak password gets the same error whether or not the new address has an account.
    if !isEmulator { try checkStrength(text) }
    try await read { reader in
      var state = try self.updateTarget(reader)
      try self.changeEmail(&state, reader)
    }
    try checkStrength(text)
    return try await hash(text)
  }

  private func updateTarget(_ reader: IdentityReader) throws -> UpdateState {
    if isPrivileged {
      guard let account = try reader.account(body.text("localId") ?? "", in: tenantID) else {
        throw IdentityError.rejected("USER_NOT_FOUND")
      }
      return UpdateState(account: account)
    }
    let (account, token) = try account(reader)
    if body.text("password") != nil || body.text("email") != nil { try requireRecentSignIn(token) }
    return UpdateState(account: account, provider: token.provider, token: token)
  }

  private func changeEmail(_ state: inout UpdateState, _ reader: IdentityReader) throws {
    guard let text = body.text("email") else { return }
    guard EmailAddress.isValid(text) else { throw IdentityError.rejected("INVALID_EMAIL") }
    let email = EmailAddress.canonical(text)
    state.newEmail = email
    guard email != state.account.email else { return }
    if !isPrivileged, hidesAccounts, !isEmulator, state.account.email != nil {
      // The hosted product requires a proof that the user owns the new address: VERIFY_AND_CHANGE_EMAIL.
      throw IdentityError.rejected(
        "OPERATION_NOT_ALLOWED", "Please verify the new email before changing email.")
    }
    guard try reader.account(email: email, in: tenantID) == nil else {
      throw IdentityError.rejected("EMAIL_EXISTS")
    }
    state.previousEmail = state.account.email ?? ""
    if state.provider != "anonymous", let old = state.account.email, state.account.initialEmail == nil {
      state.account.initialEmail = old
    }
    state.account.email = email
    state.account.isEmailVerified = false
    state.revokesTokens = true
  }

  private func changeProfile(_ state: inout UpdateState) throws {
    if let name = body.string("displayName") { state.account.displayName = name }
    if let url = body.string("photoUrl") { state.account.photoURL = url }
    for id in body.strings("deletePasskey") {
      state.account.passkeys.removeAll { $0.credentialID == id }
    }
  }

  private func changeAsAdministrator(_ state: inout UpdateState, _ reader: IdentityReader) throws {
    if let disabled = body.bool("disableUser") { state.account.disabled = disabled }
    if let number = body.text("phoneNumber"), number != state.account.phoneNumber {
      try checkNewPhoneNumber(number, reader)
      state.account.phoneNumber = number
    }
    if let isVerified = body.bool("emailVerified") { state.account.isEmailVerified = isVerified }
    if let text = body.string("customAttributes") { state.account.customAttributes = text }
    if let time = body.int("createdAt") { state.account.createdAt = time }
    if let time = body.int("lastLoginAt") { state.account.lastLoginAt = time }
    if let time = body.int("validSince") { state.account.validSince = time }
    if let multiFactor = body.object("mfa") {
      state.account.secondFactors = try enrollments(
        multiFactor["enrollments"]?.array ?? [], existing: state.account.secondFactors, generatesIDs: false)
    }
  }

  private func deleteAttributes(_ account: inout Account) {
    for attribute in body.strings("deleteAttribute") {
      switch attribute {
      case "DISPLAY_NAME": account.displayName = nil
      case "PHOTO_URL": account.photoURL = nil
      case "PASSWORD": account.password = nil
      case "EMAIL": removeEmail(&account)
      case "PROVIDER": account.providers = []
      default: break
      }
    }
  }

  private func removeEmail(_ account: inout Account) {
    account.email = nil
    account.isEmailVerified = nil
    account.usesEmailLink = false
  }

  private func deleteProviders(_ account: inout Account) {
    for provider in body.strings("deleteProvider") {
      switch provider {
      case "password":
        removeEmail(&account)
        account.password = nil
      case "phone": account.phoneNumber = nil
      default: account.providers?.removeAll { $0.id == provider }
      }
      account.providers = account.providers ?? []
    }
  }

  private func linkProvider(_ account: inout Account, _ reader: IdentityReader) throws {
    guard let info = body.object("linkProviderUserInfo") else { return }
    guard let id = info["providerId"]?.string, !id.isEmpty else {
      throw IdentityError.rejected("MISSING_PROVIDER_ID")
    }
    guard let rawID = info["rawId"]?.string, !rawID.isEmpty else {
      throw IdentityError.rejected("MISSING_RAW_ID")
    }
    // Only an administrator is trusted to know a user of another provider.
    guard isPrivileged || isEmulator else { throw IdentityError.rejected("OPERATION_NOT_ALLOWED") }
    if let owner = try reader.account(provider: id, rawID: rawID, in: tenantID),
      !owner.hasID(account.localID)
    {
      throw IdentityError.rejected("FEDERATED_USER_ID_ALREADY_LINKED")
    }
    account.link(Account.Provider(info, id: id, rawID: rawID))
  }

  // MARK: Action codes

  private func applyCode(_ text: String) async throws -> JSONObject {
    typealias Applied = (response: JSONObject, recovery: OutOfBandCode?)
    let result = try await write { transaction -> Result<Applied, IdentityError> in
      let reader = transaction.reader
      let code = try self.validCode(text, reader)
      let newEmail: String?
      switch code.purpose {
      case .verifyEmail: newEmail = nil
      case .changeEmail: newEmail = code.newEmail
      case .recoverEmail: newEmail = code.email
      case .passwordReset, .signIn:
        throw IdentityError.notImplemented(
          "accounts:update does not accept codes of \(code.purpose.rawValue).")
      }
      var account = try self.account(of: code, reader)
      try transaction.removeCode(text, in: self.tenantID)
      var recovery: OutOfBandCode?
      if let newEmail, newEmail != account.email {
        if try reader.account(email: newEmail, in: self.tenantID) != nil {
          // The transaction commits also in this case, because it has removed the used code.
          return .failure(.rejected("EMAIL_EXISTS"))
        }
        // The owner of a proven address can undo the change. The holder of an unproven address has no right
        // to the account.
        if !self.isEmulator, code.purpose == .changeEmail, account.isEmailVerified == true {
          let initial = account.initialEmail ?? code.email
          account.initialEmail = initial
          let undo = self.makeCode(.recoverEmail, email: initial, localID: account.localID)
          try transaction.put(undo, in: self.tenantID, removingExpiredAt: self.removalTime)
          recovery = undo
        }
        // The user who changed the address may have set the password before. The owner has proven the address and can
        // set another one. Google's emulator keeps the password.
        if !self.isEmulator, code.purpose == .recoverEmail { account.password = nil }
        account.email = newEmail
        account.validSince = self.nowSeconds
      }
      account.isEmailVerified = true
      try transaction.put(account)
      return .success((self.updateResponse(account, newEmail: newEmail), recovery))
    }
    let applied = try result.get()
    if let recovery = applied.recovery { services.deliverInBackground(recovery, language: language) }
    return applied.response
  }

  /// The account that a code changes.
  ///
  /// In production a code is valid only for the account for which it was made, because another account may have its
  /// address now. A change of the address needs the rights of the session that requested it, so the code ends with that
  /// session. An undo remains valid without the session, because an attacker can end sessions. It ends when another
  /// user proves ownership of the address.
  private func account(of code: OutOfBandCode, _ reader: IdentityReader) throws -> Account {
    let found: Account?
    if code.purpose == .recoverEmail {
      found = try code.localID.flatMap { try reader.account($0, in: tenantID) }
      guard found?.initialEmail == code.email else { throw IdentityError.rejected("INVALID_OOB_CODE") }
    } else {
      found = try reader.account(email: code.email, in: tenantID)
    }
    guard let account = found, isEmulator || code.localID.map(account.hasID) == true else {
      throw IdentityError.rejected("INVALID_OOB_CODE")
    }
    if !isEmulator, code.purpose == .changeEmail, code.createdAt / 1000 < account.validSince ?? 0 {
      throw IdentityError.rejected("INVALID_OOB_CODE")
    }
    return account
  }

  private func updateResponse(_ account: Account, newEmail: String?) -> JSONObject {
    var response: JSONObject = [
      "kind": .string("identitytoolkit#SetAccountInfoResponse"), "localId": .string(account.localID),
    ]
    response.set("email", account.email)
    response.set("emailVerified", account.isEmailVerified)
    response.set("displayName", account.displayName)
    response.set("photoUrl", account.photoURL)
    response.set("newEmail", newEmail)
    if let providers = account.providerInfo { response["providerUserInfo"] = .array(providers) }
    if let password = account.password {
      response.set("passwordHash", isEmulator ? password.hash : "UkVEQUNURUQ=")
    }
    return response
  }
}

extension Account.Provider {
  /// Reads a ProviderUserInfo message.
  init(_ info: JSONObject, id: String, rawID: String) {
    self.init(id: id, rawID: rawID)
    federatedID = info["federatedId"]?.string
    displayName = info["displayName"]?.string
    photoURL = info["photoUrl"]?.string
    email = (info["email"]?.string).map(EmailAddress.canonical)
    phoneNumber = info["phoneNumber"]?.string
    screenName = info["screenName"]?.string
  }
}
