// Sends codes by e-mail, and completes the actions that they confirm: password reset and e-mail link sign-in. The action
// codes of `accounts:update` are in `Update.swift`.

import Identity
package import JSON
import Ports

extension IdentityCall {
  /// `accounts:sendOobCode`.
  func sendCode() async throws -> JSONObject {
    guard let type = body.string("requestType"), type != "OOB_REQ_TYPE_UNSPECIFIED" else {
      throw IdentityError.rejected("MISSING_REQ_TYPE")
    }
    let returnsLink = body.bool("returnOobLink") == true
    if returnsLink, !isPrivileged { throw IdentityError.rejected("INSUFFICIENT_PERMISSION") }
    if returnsLink, !isEmulator, services.actionPage == nil {
      throw IdentityError.notImplemented("This server has no actionUrl for links.")
    }
    let continueURL = body.text("continueUrl")
    if let continueURL, !AbsoluteURL.isValid(continueURL) {
      throw IdentityError.rejected(
        "INVALID_CONTINUE_URI", "((expected an absolute URI with valid scheme and host))")
    }
    guard let purpose = OutOfBandCode.Purpose(rawValue: type), purpose != .recoverEmail else {
      throw IdentityError.notImplemented("The request type \(type) is not implemented.")
    }
    // The time of the response and errors of the delivery must not show whether an address has an account. So the
    // response does not wait for the delivery, and the server does the same work for an unknown address.
    let isPrivate =
      hidesAccounts && !isPrivileged && !isEmulator && [.passwordReset, .changeEmail].contains(purpose)
    if isPrivate { try services.deliveries.reserve() }
    let created: (recipient: Recipient, code: OutOfBandCode)
    do {
      if isPrivate { try services.delivery.checkSendsEmail() }
      created = try await write { transaction in
        let recipient = try self.recipient(purpose, returnsLink: returnsLink, transaction.reader)
        if !self.isPrivileged { try self.countMessage(to: recipient.newEmail ?? recipient.email) }
        let code = self.makeCode(
          purpose, email: recipient.email, newEmail: recipient.newEmail, localID: recipient.localID,
          continueURL: continueURL)
        if isPrivate || !recipient.isHidden {
          try transaction.put(code, in: self.tenantID, removingExpiredAt: self.removalTime)
        }
        return (recipient, code)
      }
    } catch {
      if isPrivate { services.deliveries.release() }
      throw error
    }
    let (recipient, code) = created
    var response: JSONObject = [
      "kind": .string("identitytoolkit#GetOobConfirmationCodeResponse"), "email": .string(recipient.email),
    ]
    if isPrivate {
      services.deliveries.run { [services, language] in
        if !recipient.isHidden { try await services.deliver(code, language: language) }
      }
    } else if !recipient.isHidden {
      if returnsLink {
        response["oobCode"] = .string(code.code)
        response["oobLink"] = .string(code.link)
      } else {
        try await services.deliver(code, language: language)
      }
    }
    return response
  }

  /// The addresses and the account for which a code is made.
  private struct Recipient: Sendable {
    var email: String
    /// The new address that the code confirms.
    var newEmail: String?
    /// The account that the code changes.
    var localID: String?
    /// Whether no code can be sent, and the response must not show the reason.
    var isHidden = false
  }

  private func recipient(
    _ purpose: OutOfBandCode.Purpose, returnsLink: Bool, _ reader: IdentityReader
  ) throws -> Recipient {
    switch purpose {
    case .signIn:
      guard allowsEmailLink else { throw IdentityError.rejected("OPERATION_NOT_ALLOWED") }
      return Recipient(email: try requestedEmail())
    case .passwordReset:
      let email = try requestedEmail()
      guard try reader.account(email: email, in: tenantID) != nil else {
        if hidesAccounts { return Recipient(email: email, isHidden: true) }
        throw IdentityError.rejected("EMAIL_NOT_FOUND")
      }
      return Recipient(email: email)
    case .verifyEmail: return try ownRecipient(returnsLink: returnsLink, reader)
    case .changeEmail, .recoverEmail:
      guard let text = body.text("newEmail") else { throw IdentityError.rejected("MISSING_NEW_EMAIL") }
      guard EmailAddress.isValid(text) else { throw IdentityError.rejected("INVALID_NEW_EMAIL") }
      let newEmail = EmailAddress.canonical(text)
      var recipient = try ownRecipient(returnsLink: returnsLink, reader)
      recipient.newEmail = newEmail
      if try reader.account(email: newEmail, in: tenantID) != nil {
        guard hidesAccounts, !isEmulator, !isPrivileged else { throw IdentityError.rejected("EMAIL_EXISTS") }
        recipient.isHidden = true
      }
      return recipient
    }
  }

  private func requestedEmail() throws(IdentityError) -> String {
    guard let text = body.text("email") else { throw .rejected("MISSING_EMAIL") }
    guard EmailAddress.isValid(text) else { throw .rejected("INVALID_EMAIL") }
    return EmailAddress.canonical(text)
  }

  /// The recipient whose account the ID token names. An administrator that requests a link may name the account by its
  /// address instead.
  private func ownRecipient(returnsLink: Bool, _ reader: IdentityReader) throws -> Recipient {
    if returnsLink, body.text("idToken") == nil {
      let email = try requestedEmail()
      guard let account = try reader.account(email: email, in: tenantID) else {
        throw IdentityError.rejected("USER_NOT_FOUND")
      }
      return Recipient(email: email, localID: account.localID)
    }
    let account = try account(reader).account
    guard let email = account.email else { throw IdentityError.rejected("MISSING_EMAIL") }
    return Recipient(email: email, localID: account.localID)
  }

  /// Makes a code with its link.
  func makeCode(
    _ purpose: OutOfBandCode.Purpose, email: String, newEmail: String? = nil, localID: String? = nil,
    continueURL: String? = nil
  ) -> OutOfBandCode {
    let code = RandomText.code(54)
    let key = target["key"].flatMap { isEmulator || $0.isEmpty ? nil : $0 } ?? "fake-api-key"
    var parameters = [("mode", purpose.mode), ("lang", language), ("oobCode", code), ("apiKey", key)]
    if let continueURL { parameters.append(("continueUrl", continueURL)) }
    if let tenantID { parameters.append(("tenantId", tenantID)) }
    let link = services.actionURL(base: baseURL) + "?" + FormText.encode(parameters)
    return OutOfBandCode(
      code: code, purpose: purpose, email: email, newEmail: newEmail, localID: localID, link: link,
      createdAt: now)
  }

  /// Returns the stored code whose text the client sent.
  /// - Throws: `INVALID_OOB_CODE`, or in production `EXPIRED_OOB_CODE`.
  func validCode(_ text: String, _ reader: IdentityReader) throws -> OutOfBandCode {
    guard let code = try reader.code(text, in: tenantID) else {
      throw IdentityError.rejected("INVALID_OOB_CODE")
    }
    if !isEmulator, code.isExpired(at: now) { throw IdentityError.rejected("EXPIRED_OOB_CODE") }
    return code
  }

  /// Runs `accounts:resetPassword` for a page of the emulator.
  package func runResetPassword() async throws -> JSONObject { try await resetPassword() }

  /// `accounts:resetPassword`. Without a new password, the operation only describes the code.
  func resetPassword() async throws -> JSONObject {
    guard allowsPassword else { throw IdentityError.rejected("PASSWORD_LOGIN_DISABLED") }
    guard let text = body.text("oobCode") else { throw IdentityError.rejected("MISSING_OOB_CODE") }
    var password: StoredPassword?
    if let newPassword = body.text("newPassword") {
      let code = try await read { try self.validCode(text, $0) }
      guard code.purpose == .passwordReset else { throw IdentityError.rejected("INVALID_OOB_CODE") }
      try checkStrength(newPassword)
      password = try await hash(newPassword)
    }
    let newPassword = password
    return try await write { transaction in
      let code = try self.validCode(text, transaction.reader)
      if let newPassword {
        guard code.purpose == .passwordReset,
          var account = try transaction.reader.account(email: code.email, in: self.tenantID)
        else { throw IdentityError.rejected("INVALID_OOB_CODE") }
        if !self.isEmulator { self.removeUnprovenCredentials(of: &account) }
        self.set(newPassword, on: &account)
        account.isEmailVerified = true
        // Someone else may have linked a provider before the owner of the address proved the ownership.
        account.providers = []
        try transaction.put(account)
        try transaction.removeCode(text, in: self.tenantID)
      }
      var response: JSONObject = [
        "kind": .string("identitytoolkit#ResetPasswordResponse"),
        "requestType": .string(code.purpose.rawValue),
      ]
      // The holder of a sign-in link must know the address, so that a stolen link alone is useless.
      if code.purpose != .signIn { response["email"] = .string(code.email) }
      response.set("newEmail", code.newEmail)
      return response
    }
  }

  /// `accounts:signInWithEmailLink`.
  func signInWithEmailLink() async throws -> JSONObject {
    guard allowsEmailLink else { throw IdentityError.rejected("OPERATION_NOT_ALLOWED") }
    guard let address = body.text("email") else { throw IdentityError.rejected("MISSING_EMAIL") }
    guard let text = body.text("oobCode") else { throw IdentityError.rejected("MISSING_OOB_CODE") }
    let (email, newID) = (EmailAddress.canonical(address), RandomText.identifier(28))
    return try await signIn { transaction, result in
      let code = try self.validCode(text, transaction.reader)
      guard code.purpose == .signIn else { throw IdentityError.rejected("INVALID_OOB_CODE") }
      guard code.email == email else {
        throw IdentityError.rejected(
          "INVALID_EMAIL", "The email provided does not match the sign-in email address.")
      }
      let existing = self.body.has("idToken") ? try self.account(transaction.reader) : nil
      let caller = existing?.account
      let owner = try transaction.reader.account(email: email, in: self.tenantID)
      if let owner {
        guard !owner.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
        if let caller, !owner.hasID(caller.localID) { throw IdentityError.rejected("EMAIL_EXISTS") }
      } else if let existing {
        try self.checkMaySetEmail(of: existing.account, to: email, existing.token)
      }
      let isNew = owner == nil && caller == nil
      var account = owner ?? caller ?? self.newAccount(newID)
      // A caller with a session of this account has already proven to know its credentials.
      if !self.isEmulator, owner != nil, caller == nil { self.removeUnprovenCredentials(of: &account) }
      account.email = email
      account.isEmailVerified = true
      account.usesEmailLink = true
      let session = self.newSession(account, provider: "password")
      if isNew {
        account.lastLoginAt = self.now
        try self.applyBeforeCreate(result, to: &account, method: "emailLink", session: session)
      }
      try transaction.put(account)
      try transaction.removeCode(text, in: self.tenantID)
      var factor = FirstFactor(
        account: account, session: session,
        response: [
          "kind": .string("identitytoolkit#EmailLinkSigninResponse"), "email": .string(email),
          "localId": .string(account.localID), "isNewUser": .bool(isNew),
        ], method: "emailLink")
      factor.requiresSecondFactor = caller == nil
      return .signIn(factor)
    }
  }
}
